"""The agent's memory tools end to end: a served home and a scripted model; done with the turn, or not at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import Site, site

from keepsaid.domain.ids import show
from keepsaid.domain.memory import Kind, Memory, conversation_scope
from keepsaid.domain.message import Lane, Trust
from keepsaid.testing.model_script import Call, Hang, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid_testkit.contracts.memories import AUDIT, sample

ROOM = Lane("http", "default", "room", "root:room")


@asynccontextmanager
async def served(folder: Path, script: Script) -> AsyncIterator[tuple[Site, ModelServer]]:
    """A home that asks a scripted model."""
    async with ModelServer(script) as model:
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"}
        rest: dict[str, Any] = {
            "collection": {"extractor": "none"},
            "turns": {"shutdown_timeout_s": 0},
            "bulletin": {"enabled": False},
        }
        async with site(folder, models=models, **rest) as one:
            yield one, model


async def facts(one: Site) -> list[Memory]:
    """What is known once everything due is recorded."""
    await one.instance.recorder.catch_up()
    return list(await one.instance.memories.find(AUDIT, (Kind.FACT,), 9))


async def known(one: Site) -> str:
    """A fact that the room hears; its name."""
    fact = sample("city", "Ann lives in Rome", scope=conversation_scope(ROOM), trust=Trust.KNOWN)
    [id_] = await one.instance.memories.keep([fact], 1)
    return show("memory", id_)


async def test_what_the_agent_saves_is_kept_with_its_turn_and_told_in_why(tmp_path: Path) -> None:
    script = Script(Call("memory_save", {"text": "Ann lives in Porto"}), Say("noted"))
    async with served(tmp_path, script) as (one, _):
        story = await one.settled((await one.say("I live in Porto now")).json()["id"])
        [fact] = await facts(one)
        assert (fact.text, fact.new.scope, fact.new.trust) == (
            "Ann lives in Porto",
            conversation_scope(ROOM),
            Trust.KNOWN,
        )
        assert ("turn", story["turn"]) in [
            (source.kind, show("turn", int(source.ref))) for source in fact.new.sources[:1]
        ]
        why = await one.client.get(f"/v1/turns/{story['turn']}", headers=one.owner)
        assert "memory_save" in why.text


@pytest.mark.parametrize(
    ("tool", "more", "texts"),
    [
        ("memory_correct", {"text": "Ann lives in Porto"}, ["Ann lives in Porto"]),
        ("memory_confirm", {}, ["Ann lives in Rome"]),
        ("memory_forget", {}, ["Ann lives in Rome"]),
    ],
)
async def test_a_memory_is_put_right_confirmed_or_kept_until_its_owner_says_so(
    tmp_path: Path, tool: str, more: dict[str, str], texts: list[str]
) -> None:
    script = Script()
    async with served(tmp_path, script) as (one, model):
        script.then(Call(tool, {"id": await known(one), **more}), Say("done"))
        await one.settled((await one.say("no, it is Porto")).json()["id"])
        stands = [fact for fact in await facts(one) if fact.valid_to is None]
        assert [fact.text for fact in stands] == texts
        assert not model.requests[-1].last("tool").startswith("error"), model.requests[-1].last("tool")


async def test_nothing_of_a_turn_that_ends_without_an_answer_is_kept(tmp_path: Path) -> None:
    script = Script(Call("memory_save", {"text": "Ann lives in Porto"}), default=Hang())
    async with served(tmp_path, script) as (one, model):
        await one.say("I live in Porto now")
        await model.wait_for(2)
        await one.instance.stop()
        assert await facts(one) == []
