"""Long requests at a stop: what works in steps ends at the next one and tells how far it came; nothing is an error."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.unit.http_cast import Site, refused, site
from tests.waits import HANG_S

from keepsaid.interfaces.http import responses
from keepsaid.ports import runtime
from keepsaid.testing.model_script import Hang, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid_testkit.contracts.memories import sample

_LONG_AGO = 1_000_000_000_000


class Held:
    """The first commit of a kind, held back just before it is made, until it is let go."""

    def __init__(self, kind: str) -> None:
        self._name = f"commit.{kind}.before"
        self._loop = asyncio.get_running_loop()
        self.reached = asyncio.Event()
        self.released = threading.Event()

    def __call__(self, name: str) -> None:
        if name == self._name and not self.released.is_set():
            self._loop.call_soon_threadsafe(self.reached.set)
            assert self.released.wait(HANG_S), "nobody let the commit go on"


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """However slow the machine, a step has time to end; leave no point armed; nothing of it was an error."""
    monkeypatch.setattr(responses, "_GRACE_S", 60)
    yield
    runtime.arm(None)
    told = [record for when in ("setup", "call") for record in caplog.get_records(when)]
    assert [record.message for record in told if record.levelno >= logging.ERROR] == []


async def asked(one: Site, path: str, body: dict[str, Any], kind: str) -> httpx2.Response:
    """What a request is answered whose commit of that kind is held until a stop has begun."""
    held = Held(kind)
    runtime.arm(held)
    answer = asyncio.create_task(one.client.post(path, json=body, headers=one.owner))
    await held.reached.wait()
    stop = asyncio.create_task(one.instance.stop())
    await one.instance.halt.wait()
    held.released.set()
    await stop
    return await answer


@pytest.mark.parametrize(
    ("path", "body", "kind", "told"),
    [
        ("/v1/memories/maintain", {}, "Maintain", {"over": False, "steps": 1}),
        ("/v1/prune", {}, "Prune", {"over": False}),
        ("/v1/collection/run", {}, "MarkUnprocessed", {"marked": 0}),
        ("/v1/forget", {"filter": "number 77", "yes": True}, "HideMemories", {"how": "filter"}),
    ],
)
async def test_what_works_in_steps_ends_at_its_next_one_and_tells_how_far_it_came(
    path: str, body: dict[str, Any], kind: str, told: dict[str, Any], tmp_path: Path
) -> None:
    async with site(tmp_path) as one:
        facts = [sample(f"f{n}", f"fact number {n}", said_at=_LONG_AGO) for n in range(200)]
        await one.instance.memories.keep(facts, _LONG_AGO)
        response = await asked(one, path, body, kind)
    assert response.status_code == 200, response.text
    assert {name: response.json()[name] for name in told} == told
    assert response.json()["stopping"] is True


async def test_what_has_no_steps_is_broken_off_with_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(responses, "_GRACE_S", 0.1)
    lane = {"channel": "http", "account": "default", "conversation": "room", "key": "root:room"}
    models = {"chat": "openai/scripted", "api_key": "k"}
    script = Script(Say("aye"), Say("aye"), Hang())
    async with ModelServer(script) as model, httpx2.AsyncClient(trust_env=False, timeout=HANG_S) as waiting:
        models["base_url"] = model.url
        rules = {"extractor": "rules"}
        async with site(tmp_path, models=models, compaction={"keep": 1}, collection=rules) as one:
            for text in ("we sold the boat", "what else?"):
                await one.settled((await one.say(text)).json()["id"])
            url, body = f"{one.address.url}/v1/lanes/compact", {**lane, "now": True}
            calling = asyncio.create_task(waiting.post(url, json=body, headers=one.owner))
            await model.wait_for(3)
            await one.instance.stop()
        assert refused(await calling, 503)["code"] == "KS-HOME-STOPPING"
