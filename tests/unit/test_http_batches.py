"""Batches leased over HTTP: each is settled once, by whoever holds its newest lease, whatever dies or comes late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import Site, refused, site
from tests.waits import HANG_S

WORKERS = {"answered_by": "workers"}


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Site]:
    """A server whose batches are for workers."""
    async with site(tmp_path, turns=WORKERS) as made:
        yield made


async def call(running: Site, path: str, **fields: object) -> Any:
    """What a worker is answered; anything but success fails the test."""
    response = await running.client.post(path, json=fields, headers=running.owner)
    assert response.status_code == 200, response.text
    return response.json()


async def lease(running: Site, **fields: object) -> list[dict[str, Any]]:
    """The batches that a worker gets once there are any."""
    async with asyncio.timeout(HANG_S):
        while not (found := (await call(running, "/v1/batches:lease", wait_s=60, **fields))["batches"]):
            pass
    return list(found)


async def routed(running: Site, text: str, room: str) -> None:
    """Ann says something, and it is in a batch."""
    put = (await running.say(text, room)).json()
    async with asyncio.timeout(HANG_S):
        while (await running.client.get(f"/v1/messages/{put['id']}")).json()["batch"] is None:
            pass


def of(batch: dict[str, Any]) -> str:
    """The path of a lease."""
    return f"/v1/batches/{batch['id']}/{batch['fence']}"


async def test_a_worker_leases_a_batch_and_its_reply_is_the_answer(running: Site) -> None:
    put = (await running.say("hello")).json()
    [batch] = await lease(running)
    [message] = batch["messages"]
    assert (message["id"], message["text"], message["sender"]) == (put["id"], "hello", "ann")
    assert (batch["channel"], batch["conversation"], batch["lease_s"]) == ("http", "room", 60)
    told = await call(running, f"{of(batch)}/done", reply="hello, Ann", worker="one")
    story = await running.settled(put["id"])
    assert (story["state"], [reply["text"] for reply in story["replies"]]) == ("done", ["hello, Ann"])
    assert (told["state"], told["reply"], told["duplicate"]) == ("done", story["replies"][0]["id"], False)


async def test_a_batch_that_is_done_twice_has_one_reply(running: Site) -> None:
    """As when the first answer to the worker was lost."""
    put = (await running.say("hello")).json()
    [batch] = await lease(running)
    await call(running, f"{of(batch)}/done", reply="the first")
    assert (await call(running, f"{of(batch)}/done", reply="the second"))["duplicate"]
    assert await call(running, f"{of(batch)}/fail", reason="too late") == {"state": "done"}
    assert [reply["text"] for reply in (await running.settled(put["id"]))["replies"]] == ["the first"]


async def test_what_is_not_renewed_in_time_is_leased_again_and_the_former_worker_is_refused(running: Site) -> None:
    put = (await running.say("hello")).json()
    [slow] = await lease(running, lease_s=1)
    assert await call(running, "/v1/batches:lease") == {"batches": []}
    [again] = await lease(running, lease_s=600)
    assert again["id"] == slow["id"]
    assert again["fence"] > slow["fence"]
    assert (slow["attempts"], again["attempts"]) == (0, 1), "a worker that dies of a batch is given it three times"
    for step in ("done", "fail", "renew"):
        response = await running.client.post(f"{of(slow)}/{step}", json={"reply": "late"}, headers=running.owner)
        assert refused(response, 409)["code"] == "KS-LEASE"
    await call(running, f"{of(again)}/done", reply="in time")
    assert [reply["text"] for reply in (await running.settled(put["id"]))["replies"]] == ["in time"]


async def test_a_lease_that_is_renewed_lasts(running: Site) -> None:
    await running.say("hello")
    [batch] = await lease(running, lease_s=1)
    assert await call(running, f"{of(batch)}/renew", lease_s=600) == {"lease_s": 600}
    [until] = running.rows("SELECT lease_until FROM batch WHERE state = 'leased'")
    assert until[0] > running.instance.clock.steady_ms() + 500_000


async def test_a_batch_that_fails_comes_again_and_is_dead_after_the_third_time(running: Site) -> None:
    put = (await running.say("hello")).json()
    told = []
    for _ in range(3):
        [batch] = await lease(running)
        told.append((batch["attempts"], (await call(running, f"{of(batch)}/fail", reason="no luck"))["state"]))
    assert told == [(0, "queued"), (1, "queued"), (2, "dead")]
    story = await running.settled(put["id"])
    assert (story["state"], story["batch"]["error"]) == ("dead", "no luck")


async def test_a_lane_is_answered_in_order_and_lanes_side_by_side(running: Site) -> None:
    for text, room in (("one", "a"), ("two", "b")):
        await routed(running, text, room)
    first = await lease(running, limit=8)
    assert sorted(one["conversation"] for one in first) == ["a", "b"]
    await routed(running, "three", "a")
    assert await call(running, "/v1/batches:lease", limit=8) == {"batches": []}
    [one] = [batch for batch in first if batch["conversation"] == "a"]
    await call(running, f"{of(one)}/done")
    [after] = await lease(running, limit=8)
    assert [message["text"] for message in after["messages"]] == ["three"]


async def test_after_a_stop_leases_are_void_and_the_batch_comes_again(tmp_path: Path) -> None:
    async with site(tmp_path, turns=WORKERS) as before:
        put = (await before.say("hello")).json()
        [batch] = await lease(before)
    async with site(tmp_path, turns=WORKERS) as after:
        [again] = await lease(after)
        response = await after.client.post(f"{of(batch)}/done", json={"reply": "late"}, headers=after.owner)
        assert refused(response, 409)["code"] == "KS-LEASE"
        assert (again["id"], again["attempts"]) == (batch["id"], 0)
        await call(after, f"{of(again)}/done", reply="in time")
        assert [reply["text"] for reply in (await after.settled(put["id"]))["replies"]] == ["in time"]


async def test_a_runtime_that_answers_itself_leases_nothing(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        told = refused(await one.client.post("/v1/batches:lease", headers=one.owner), 422)
        assert told["hint"] == "keepsaid config set turns.answered_by workers"
        assert (await one.settled((await one.say("hello")).json()["id"]))["state"] == "done"


@pytest.mark.parametrize(
    ("path", "fields", "status"),
    [
        (":lease", {"limit": 0}, 400),
        (":lease", {"limit": 65}, 400),
        (":lease", {"lease_s": 0}, 400),
        (":lease", {"lease_s": 3_601}, 400),
        (":lease", {"lease_s": True}, 400),
        (":lease", {"wait_s": -1}, 400),
        (":lease", {"wait_s": "1"}, 400),
        ("/bat_zz/1/done", {}, 404),
        ("/bat_0000000000001/one/done", {}, 404),
        ("/bat_0000000000001/99999999999999999999/done", {}, 404),
        ("/bat_0000000000001/1/done", {"reply": 5}, 400),
        ("/bat_0000000000001/1/done", {}, 409),
        ("/bat_0000000000001/1/renew", {"lease_s": 0}, 400),
        ("/bat_0000000000001/1/renew", {}, 409),
        ("/bat_0000000000001/1/fail", {"reason": ["a"]}, 400),
    ],
)
async def test_what_makes_no_sense_is_refused(running: Site, path: str, fields: dict[str, object], status: int) -> None:
    refused(await running.client.post(f"/v1/batches{path}", json=fields, headers=running.owner), status)


async def test_workers_need_the_operators_token(running: Site) -> None:
    assert (await running.client.post("/v1/batches:lease")).status_code == 401
