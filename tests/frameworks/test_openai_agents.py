"""The session of openai-agents is recorded talk: it is read again, cut to a limit, withdrawn, and survives a fault."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agents.memory import Session as SessionProtocol
from tests.frameworks.memories import down, in_process
from tests.frameworks.openai_agents_rig import OpenAiAgentsRig
from tests.frameworks.rigs import Way, noted

from keepsaid.frameworks.openai_agents import Session
from keepsaid.interfaces.sdk.agents import AgentMemory


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[AgentMemory]:
    async with in_process(tmp_path) as memory_of:
        yield memory_of("ann")


def texts(items: Any) -> list[str]:
    return [one["content"] for one in items]


async def test_it_is_a_session(memory: AgentMemory) -> None:
    assert isinstance(Session(memory, "room"), SessionProtocol)


async def test_another_session_reads_the_same_talk(memory: AgentMemory) -> None:
    rig = OpenAiAgentsRig(memory, "room")
    for said in ("one", "two", "three"):
        await rig.run(said, Way.TOOL)
    again = Session(memory, "room")
    every = [text for said in ("one", "two", "three") for text in (said, noted(said))]
    assert texts(await again.get_items()) == every
    assert texts(await again.get_items(3)) == every[-3:]
    assert await again.get_items(0) == []
    assert texts(await again.get_items(50)) == every
    assert texts(await Session(memory, "other").get_items()) == []


async def test_what_is_popped_is_withdrawn_for_every_session_and_stays_recorded(memory: AgentMemory) -> None:
    rig = OpenAiAgentsRig(memory, "room")
    await rig.run("one")
    await rig.run("two")
    assert await rig.session.pop_item() == {"role": "assistant", "content": noted("two")}
    assert await rig.session.pop_item() == {"role": "user", "content": "two"}
    for session in (rig.session, Session(memory, "room")):
        assert texts(await session.get_items()) == ["one", noted("one")]
    recorded = [one["text"] for one in (await memory.transcript("room"))["messages"]]
    assert recorded[:4] == ["one", noted("one"), "two", noted("two")]
    ran = await rig.run("two, again")
    assert ran.answer == noted("two, again")
    assert texts(await rig.session.get_items()) == ["one", noted("one"), "two, again", noted("two, again")]


async def test_nothing_is_withdrawn_where_there_is_nothing(memory: AgentMemory) -> None:
    session = Session(memory, "room")
    assert await session.pop_item() is None
    await session.clear_session()
    assert (await memory.transcript("room"))["messages"] == []
    await session.add_items([{"role": "user", "content": "unanswered"}])
    assert await session.pop_item() == {"role": "user", "content": "unanswered"}
    assert (await memory.transcript("room"))["messages"] == []


async def test_a_cleared_session_begins_empty(memory: AgentMemory) -> None:
    rig = OpenAiAgentsRig(memory, "room")
    await rig.run("one")
    await rig.session.clear_session()
    assert await Session(memory, "room").get_items() == []
    await rig.run("two")
    assert texts(await Session(memory, "room").get_items()) == ["two", noted("two")]


async def test_a_session_without_memory_keeps_nothing_and_says_so(tmp_path: Path) -> None:
    async with down(tmp_path) as memory:
        session = Session(memory, "room")
        assert await session.get_items() == []
        assert session.degraded
        assert await session.pop_item() is None
        await session.clear_session()
