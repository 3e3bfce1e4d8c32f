"""The bridge that all adapters share: late records, other loops, ends of loops, and what is loaded when."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from tests.frameworks.memories import in_process
from tests.waits import HANG_S

from keepsaid.errors import KeyConflict, StoreError
from keepsaid.frameworks.bridge import MemoryBridge, run_key
from keepsaid.frameworks.pydantic_ai import Memory
from keepsaid.interfaces.sdk.agents import AgentMemory


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[AgentMemory]:
    async with in_process(tmp_path) as memory_of:
        yield memory_of("ann")


class Gate:
    """Makes calls when it is opened, or raises."""

    def __init__(self, error: Exception | None = None) -> None:
        self.opens, self.done = asyncio.Event(), asyncio.Event()
        self.calls: list[str] = []
        self._error = error

    async def ask(self, name: str, _fields: Mapping[str, object]) -> dict[str, Any]:
        await self.opens.wait()
        self.calls.append(name)
        self.done.set()
        if self._error is not None:
            raise self._error
        return {}


class LogNotice(logging.Handler):
    """Says when something is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.set()


async def test_a_record_that_takes_longer_than_the_budget_goes_on() -> None:
    gate = Gate()
    bridge = MemoryBridge(AgentMemory(gate.ask), budget_s=0.01)
    await bridge.record("room", "key", ("user", "hello"))
    assert "0.01 s" in bridge.degraded
    assert gate.calls == []
    gate.opens.set()
    async with asyncio.timeout(HANG_S):
        await gate.done.wait()
    assert gate.calls == ["record"]


async def test_a_record_that_fails_after_the_budget_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "keepsaid.frameworks")
    gate = Gate(StoreError("the disk refuses"))
    bridge = MemoryBridge(AgentMemory(gate.ask), budget_s=0.01)
    await bridge.record("room", "key", ("user", "hello"))
    logged = LogNotice()
    logging.getLogger("keepsaid.frameworks").addHandler(logged)
    try:
        gate.opens.set()
        async with asyncio.timeout(HANG_S):
            await logged.seen.wait()
    finally:
        logging.getLogger("keepsaid.frameworks").removeHandler(logged)
    assert "disk" in bridge.degraded
    assert StoreError.code in caplog.text
    assert "hello" not in caplog.text


async def test_a_read_that_takes_longer_is_cancelled() -> None:
    gate = Gate()
    bridge = MemoryBridge(AgentMemory(gate.ask), budget_s=0.01)
    assert await bridge.block("room", "hello") == ""
    others = [one for one in asyncio.all_tasks() if one is not asyncio.current_task()]
    async with asyncio.timeout(HANG_S):
        await asyncio.gather(*others, return_exceptions=True)
    gate.opens.set()
    assert gate.calls == []


async def test_another_answer_under_a_key_is_no_failure() -> None:
    gate = Gate(KeyConflict("used before"))
    gate.opens.set()
    bridge = MemoryBridge(AgentMemory(gate.ask))
    await bridge.record("room", "key", ("user", "hello"), ("assistant", "hi"))
    assert bridge.degraded == ""
    await bridge.record("room", "key", ("user", "  "), ("assistant", ""))
    assert gate.calls == ["record"]


async def test_a_failure_is_forgotten_with_the_next_call_that_succeeds(memory: AgentMemory) -> None:
    bridge = MemoryBridge(memory)
    await bridge.record("", "key", ("user", "hello"))
    assert "conversation" in bridge.degraded
    await bridge.record("room", "key", ("user", "hello"))
    assert bridge.degraded == ""


async def test_a_loop_of_its_own_asks_the_loop_of_memory(memory: AgentMemory) -> None:
    """As `run_sync` of pydantic-ai does, a thread runs a loop."""
    capability = Memory(memory, budget_s=HANG_S)
    agent = Agent(TestModel(), capabilities=[capability])

    def program() -> None:
        asyncio.run(agent.run("My cat is called Miso.", conversation_id="thread"))

    await asyncio.to_thread(program)
    assert capability.degraded == ""
    said = (await memory.transcript("thread"))["messages"]
    assert said[0]["text"] == "My cat is called Miso."


def test_a_memory_whose_loop_ended_is_left_out() -> None:
    async def ask(_name: str, _fields: Mapping[str, object]) -> dict[str, Any]:
        return {}

    async def opened() -> AgentMemory:
        return AgentMemory(ask, asyncio.get_running_loop())

    bridge = MemoryBridge(asyncio.run(opened()))
    assert bridge.block_sync("room", "hello") == ""
    assert "loop" in bridge.degraded
    assert asyncio.run(bridge.block("room", "hello")) == ""


def test_a_key_is_of_all_its_parts() -> None:
    assert run_key("a", "b") == run_key("a", "b")
    assert len({run_key("a", "b"), run_key("ab"), run_key("a", "b", ""), run_key("b", "a"), run_key("\ud800")}) == 5


LOADED = "import sys; print(sorted(name for name in sys.modules if name.split('.')[0] in {names}))"


@pytest.mark.parametrize(
    ("module", "never"),
    [
        ("keepsaid", "agents langchain langchain_core langgraph llama_index pydantic_ai"),
        ("keepsaid.frameworks", "agents langchain langchain_core langgraph llama_index pydantic_ai"),
        ("keepsaid.frameworks.blocking", "apsw agents langchain_core llama_index pydantic_ai"),
        ("keepsaid.frameworks.pydantic_ai", "apsw agents langchain_core llama_index"),
        ("keepsaid.frameworks.langgraph", "apsw agents langchain llama_index pydantic_ai"),
    ],
)
def test_nothing_is_loaded_before_it_is_used(module: str, never: str) -> None:
    script = f"import {module}; {LOADED.format(names=never.split())}"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
