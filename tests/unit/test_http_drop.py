"""A batch that waits is dropped and brought back beside a running instance, over HTTP and by the commands."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import Site, site
from tests.waits import HANG_S

from keepsaid.interfaces.cli.program import run


async def queued(running: Site) -> dict[str, Any]:
    """A message whose batch waits, for nobody answers."""
    put = (await running.say("hello")).json()
    async with asyncio.timeout(HANG_S):
        while True:
            story: dict[str, Any] = (await running.client.get(f"/v1/messages/{put['id']}")).json()
            if story["batch"] is not None:
                return story


async def test_a_batch_is_dropped_and_queued_again_over_http(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as running:
        story = await queued(running)
        path = f"/v1/batches/{story['batch']['id']}"
        told = []
        for verb in ("drop", "drop", "requeue"):
            response = await running.client.post(f"{path}/{verb}", json={"reason": f"{verb} it"}, headers=running.owner)
            state = (await running.client.get(f"/v1/messages/{story['id']}")).json()
            told.append((response.json(), state["state"], state["batch"]["verdict"], state["batch"]["reason"]))
    assert told == [
        ({"dropped": True}, "dropped", "drop", "drop it"),
        ({"dropped": False}, "dropped", "drop", "drop it"),
        ({"requeued": True}, "batched", "forward", "requeue it"),
    ]


async def test_the_answering_of_a_message_is_stopped(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as running:
        story = await queued(running)
        told = []
        for _ in range(2):
            response = await running.client.post(f"/v1/messages/{story['id']}/stop", headers=running.owner)
            told.append(response.json())
        after = (await running.client.get(f"/v1/messages/{story['id']}")).json()
        stranger = await running.client.post(f"/v1/messages/{story['id']}/stop")
    assert told == [{"stopped": True}, {"stopped": False}]
    assert (after["state"], after["batch"]["reason"]) == ("dropped", "stopped by the person who asked")
    assert stranger.status_code == 401


async def test_a_message_that_was_just_stored_is_stopped(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as running:
        for number in range(20):
            put = (await running.say(f"hello {number}")).json()
            response = await running.client.post(f"/v1/messages/{put['id']}/stop", headers=running.owner)
            assert response.json() == {"stopped": True}
        gone = await running.client.post("/v1/messages/msg_1000000000000/stop", headers=running.owner)
    assert gone.json() == {"stopped": False}


async def test_the_commands_do_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def ran(*arguments: str) -> dict[str, Any]:
        await asyncio.to_thread(run, ["--json", "--home", str(tmp_path), "inbox", *arguments])
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told

    async with site(tmp_path, answering=False) as running:
        story = await queued(running)
        assert (await ran("why", story["id"]))["waits_for"] == "for a place"
        assert (await ran("drop", story["id"], "--reason", "not for us"))["dropped"] is True
        chronicle = await ran("why", story["batch"]["id"])
        assert (chronicle["state"], chronicle["batch"]["reason"]) == ("dropped", "not for us")
        assert chronicle["batch"]["ended_at"] is not None
        assert "it is dropped" in (await ran("drop", story["id"], "--reason", "again"))["error"]["what"]
        assert (await ran("requeue", story["batch"]["id"]))["requeued"] is True
        assert "is not dead, dropped or in review" in (await ran("requeue", story["batch"]["id"]))["error"]["what"]
        assert (await ran("why", story["id"]))["state"] == "queued"
