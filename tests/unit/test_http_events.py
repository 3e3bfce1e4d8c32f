"""Stages of a message as server-sent events: each once, with its reason, and on from where a reader left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.unit.http_cast import Site, site

from keepsaid.domain.ids import read
from keepsaid.testing.model_script import Refuse, Say, Script
from keepsaid.testing.model_server import ModelServer


def kinds(events: list[dict[str, str]]) -> list[str]:
    return [event["event"] for event in events]


async def path_of(running: Site, text: str = "hello") -> str:
    """Where a new message tells of itself."""
    return f"/v1/messages/{(await running.say(text)).json()['id']}/events"


async def test_every_stage_is_told_once_and_has_an_id(tmp_path: Path) -> None:
    async with site(tmp_path) as running:
        put = (await running.say("hello")).json()
        events = [event for event in await running.stages(put["id"]) if event["event"] != "delta"]
    assert kinds(events) == ["received", "batched", "settled"]
    assert [event["id"] for event in events] == ["received", "batched", "settled-done-1"]
    received, batched, settled = (json.loads(event["data"]) for event in events)
    assert (received["id"], received["number"]) == (put["id"], 1)
    assert (batched["verdict"], batched["reason"]) == ("forward", "no rule matched; routes.default is forward")
    assert settled["replies"][0]["text"].startswith("No model is set")


async def test_who_comes_back_is_told_what_is_new(tmp_path: Path) -> None:
    async with site(tmp_path) as running:
        put = (await running.say("hello")).json()
        await running.settled(put["id"])
        assert kinds(await running.stages(put["id"], "received")) == ["batched", "settled"]
        assert kinds(await running.stages(put["id"], "batched")) == ["settled"]
        assert kinds(await running.stages(put["id"], "waiting-1")) == ["settled"]
        assert kinds(await running.stages(put["id"], "nonsense")) == ["received", "batched", "settled"]


async def test_who_has_seen_the_end_is_sent_away_and_has_pulled_the_reply(tmp_path: Path) -> None:
    async with site(tmp_path) as running:
        path = await path_of(running)
        seen = {"Last-Event-ID": "settled-done-1"}
        while (await running.client.head(path)).status_code == 200:
            if running.rows("SELECT state FROM reply") == [("pending",)]:
                break
        response = await running.client.get(path, headers=seen)
        assert (response.status_code, response.content) == (204, b"")
        assert running.rows("SELECT state, detail FROM reply") == [("sent", "pulled")]
        again = await running.client.get(path, headers={"Last-Event-ID": "settled-dead-1"})
    assert "event: settled" in again.text


async def test_a_wait_is_told_once_with_its_reason(tmp_path: Path) -> None:
    async with ModelServer(Script(Refuse(503), Say("hello"))) as server:
        models = {"chat": "openai/scripted", "base_url": server.url, "api_key": "k"}
        async with site(tmp_path, models=models) as running:
            put = (await running.say("hello")).json()
            events = [event for event in await running.stages(put["id"]) if event["event"] != "delta"]
    assert kinds(events) == ["received", "batched", "waiting", "settled"]
    assert [event["id"] for event in events[2:]] == ["waiting-1", "settled-done-2"]
    assert "trying again" in json.loads(events[2]["data"])["text"]


async def test_who_comes_late_is_told_what_it_waits_for(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as running:
        put = (await running.say("hello")).json()
        with running.database(writing=True) as db:
            while not db.execute("SELECT 1 FROM batch").fetchall():
                await running.client.get(f"/v1/messages/{put['id']}")
            db.execute(
                "UPDATE batch SET deferrals = 1, fence = 1, error = 'the model is away', ready_at = 4102444800000"
            )
        told = await first(running, put["id"], 3)
    assert [name for name, _ in told] == ["received", "batched", "waiting"]
    assert told[2][1]["text"] == "the model is away; trying again at 2100-01-01T00:00:00.000Z"
    assert told[2][1]["next_try_at"] == "2100-01-01T00:00:00.000Z"


async def first(running: Site, message_id: str, count: int) -> list[tuple[str, dict[str, Any]]]:
    """The first events about a message that is not settled."""
    told: list[tuple[str, dict[str, Any]]] = []
    name = ""
    async with running.client.stream("GET", f"/v1/messages/{message_id}/events") as response:
        async for line in response.aiter_lines():
            field, _, value = line.partition(": ")
            name = value if field == "event" else name
            if field == "data":
                told.append((name, json.loads(value)))
            if len(told) == count:
                break
    return told


async def test_a_requeued_message_is_told_to_its_next_end(tmp_path: Path) -> None:
    async with site(tmp_path, routes={"default": "drop"}) as running:
        put = (await running.say("hello")).json()
        (end,) = (await running.stages(put["id"]))[-1:]
        story = json.loads(end["data"])
        assert end["id"] == "settled-dropped-0"
        assert read("batch", story["batch"]["id"])
        path = f"/v1/batches/{story['batch']['id']}/requeue"
        await running.client.post(path, json={"reason": "wanted"}, headers=running.owner)
        again = await running.stages(put["id"], end["id"])
    assert [event["id"] for event in again if event["event"] != "delta"] == ["settled-done-1"]


async def test_a_look_at_the_head_pulls_nothing(tmp_path: Path) -> None:
    async with site(tmp_path) as running:
        put = (await running.say("hello")).json()
        while running.rows("SELECT state FROM reply") != [("pending",)]:
            await running.client.head(f"/v1/messages/{put['id']}")
        response = await running.client.head(f"/v1/messages/{put['id']}/events")
        assert response.headers["content-type"].startswith("text/event-stream")
        assert running.rows("SELECT state FROM reply") == [("pending",)]
