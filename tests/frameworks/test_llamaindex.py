"""The block of LlamaIndex: what leaves the window is recorded once, a chat engine too, and a block can be cut."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from llama_index.core.base.llms.types import ChatMessage
from tests.frameworks.memories import down, in_process
from tests.frameworks.rigs import noted

from keepsaid.frameworks.llamaindex import Block
from keepsaid.interfaces.sdk.agents import AgentMemory


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[AgentMemory]:
    async with in_process(tmp_path) as memory_of:
        yield memory_of("ann")


def exchanges(*said: str) -> list[ChatMessage]:
    pairs = [(ChatMessage(role="user", content=one), ChatMessage(role="assistant", content=noted(one))) for one in said]
    return [message for pair in pairs for message in pair]


async def recorded(memory: AgentMemory, session: str = "s") -> Sequence[str]:
    return [one["text"] for one in (await memory.transcript(session))["messages"]]


async def test_what_leaves_the_window_is_recorded_once(memory: AgentMemory) -> None:
    block = Block(memory)
    await block.aput(exchanges("one", "two"), from_short_term_memory=True, session_id="s")
    await block.aget([*exchanges("two", "three"), ChatMessage(role="user", content="four")], session_id="s")
    await block.aput(exchanges("two", "three"), from_short_term_memory=True, session_id="s")
    every = [text for one in ("one", "two", "three") for text in (one, noted(one))]
    assert await recorded(memory) == every
    # another process, which knows nothing of what this one did
    await Block(memory).aget(exchanges("three", "four"), session_id="s")
    assert await recorded(memory) == [*every, "four", noted("four")]


async def test_the_same_words_said_twice_are_recorded_twice(memory: AgentMemory) -> None:
    block = Block(memory)
    for said in (["yes"], ["yes", "yes"], ["yes", "yes", "yes"]):
        await block.aget(exchanges(*said), session_id="s")
    assert await recorded(memory) == ["yes", noted("yes")] * 3


async def test_another_answer_to_the_same_is_not_recorded(memory: AgentMemory) -> None:
    block = Block(memory)
    await block.aget(exchanges("one"), session_id="s")
    other = [ChatMessage(role="user", content="one"), ChatMessage(role="assistant", content="Something else.")]
    await block.aget([*other, *exchanges("two")], session_id="s")
    assert (await recorded(memory))[:2] == ["one", noted("one")]
    assert "two" in await recorded(memory)


async def test_a_block_is_cut_to_what_fits(memory: AgentMemory) -> None:
    block = Block(memory, name="past", priority=2)
    assert (block.name, block.priority) == ("past", 2)
    assert await block.atruncate("x" * 100, 10) == "x" * 60
    assert await block.atruncate("x" * 100, 30) is None


async def test_a_block_that_could_not_read_the_record_adds_nothing(tmp_path: Path) -> None:
    async with down(tmp_path) as memory:
        block = Block(memory)
        assert await block.aget(exchanges("one"), session_id="s") == ""
        assert block.degraded
