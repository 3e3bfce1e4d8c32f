"""The library beside a running instance: what it asks that instance for, and what it refuses by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.acceptance.program import Program

from keepsaid import HomeBusy, InputError, Keepsaid, KeyConflict, Message

SETTINGS = {"server": {"port": 0}, "buffer": {"window_ms": 0}}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A home without a model."""
    here = Program(tmp_path, {"KEEPSAID_MODELS__CHAT": "none"})
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text(json.dumps(SETTINGS), "utf-8")
    return here


async def test_beside_a_running_instance_it_asks_that(program: Program) -> None:
    """Messages, answers, the status, turns and memory of agents; what was put before counts, and comes back after."""
    cat = Message("My cat is called Miso.", "ann", "kitchen", external_id="1", direct=True)
    async with Keepsaid.open(program.home) as ks:
        first = await ks.inbox.put(cat)
        await ks.agent("ann").save("The ladder stands behind the greenhouse")
    with program.serving():
        async with Keepsaid.open(program.home) as ks:
            again = await ks.inbox.put(cat)
            assert (again.id, again.duplicate) == (first.id, True)
            with pytest.raises(KeyConflict):
                await ks.inbox.put(Message("My cat is called Tofu.", "ann", "kitchen", external_id="1", direct=True))
            reply = await ks.ask(Message("Where is the ladder?", "ann", "kitchen", direct=True))
            assert reply.state == "done"
            assert (await ks.why(reply.turn))["id"] == reply.turn
            assert (await ks.status())["messages"] >= 2
            found = await ks.agent("ann").recall("where is the ladder?")
            assert [hit["memory"]["text"] for hit in found["hits"]][:1] == ["The ladder stands behind the greenhouse"]
            assert (await ks.agent("bob").recall("where is the ladder?"))["hits"] == []


async def test_what_needs_the_instance_itself_is_refused_by_name(program: Program) -> None:
    with program.serving():
        async with Keepsaid.open(program.home) as ks:
            for refused in (lambda: ks.memory, lambda: ks.events, lambda: ks.inbox.batches("worker")):
                with pytest.raises(InputError, match="needs that process itself") as told:
                    refused()
                assert told.value.hint
            with pytest.raises(InputError):
                await ks.why("trn_0000000000001")
        with pytest.raises(HomeBusy):
            await Keepsaid.open(program.home, answering=True).__aenter__()
        with pytest.raises(HomeBusy):
            await Keepsaid.open(program.home, settings={"models": {"chat": "none"}}).__aenter__()
    with pytest.raises(InputError, match="not open"):
        await ks.status()
