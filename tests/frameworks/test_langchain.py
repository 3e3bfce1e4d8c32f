"""The middleware of LangChain in plain calls, with a checkpointer, and on the loop of memory, which it never blocks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from tests.frameworks.langchain_rig import NotingModel
from tests.frameworks.memories import SETTINGS, in_process, running, token_of
from tests.frameworks.rigs import noted

from keepsaid import BlockingKeepsaid, HomeBusy, Keepsaid
from keepsaid.frameworks.blocking import opened
from keepsaid.frameworks.bridge import MemoryCalls
from keepsaid.frameworks.langchain import Middleware

CAT, WHICH = "My cat is called Miso.", "What is my cat called?"


def talk(memory: MemoryCalls) -> tuple[Middleware, NotingModel, Any]:
    middleware, model = Middleware(memory), NotingModel(shown=[])
    agent: Any = create_agent(model, middleware=[middleware], checkpointer=InMemorySaver())
    for thread, text in (("one", CAT), ("two", WHICH)):
        config = {"configurable": {"thread_id": thread}}
        answer = agent.invoke({"messages": [HumanMessage(text)]}, config)["messages"][-1]
        assert answer.text == noted(text)
        assert "Recalled" not in str(agent.get_state(config))
    return middleware, model, agent


def test_a_plain_program_opens_a_home(tmp_path: Path) -> None:
    with BlockingKeepsaid(Keepsaid.open(tmp_path, settings=SETTINGS)) as ks:
        middleware, model, _ = talk(ks.agent("ann"))
        assert middleware.degraded == ""
        assert "Miso" in str(model.shown[-1])


async def test_a_plain_program_asks_a_running_instance(tmp_path: Path) -> None:
    async with running(tmp_path) as url:

        def program() -> tuple[Middleware, NotingModel, Any]:
            with opened(Keepsaid.connect(url=url, key=token_of("ann"))) as memory:
                return talk(memory)

        middleware, model, _ = await asyncio.to_thread(program)
        assert middleware.degraded == ""
        assert "Miso" in str(model.shown[-1])
        async with Keepsaid.connect(url=url, key=token_of("ann")) as memory:
            said = (await memory.transcript("two"))["messages"]
        assert [one["text"] for one in said] == [WHICH, noted(WHICH)]


async def test_a_thread_beside_the_loop_of_memory_is_served(tmp_path: Path) -> None:
    async with in_process(tmp_path) as memory_of:
        middleware, model, agent = await asyncio.to_thread(talk, memory_of("ann"))
        assert middleware.degraded == ""
        assert "Miso" in str(model.shown[-1])
        again = {"configurable": {"thread_id": "two"}}
        await agent.ainvoke({"messages": [HumanMessage("Thank you.")]}, again)
        said = (await memory_of("ann").transcript("two"))["messages"]
        assert [one["text"] for one in said] == [WHICH, noted(WHICH), "Thank you.", noted("Thank you.")]


async def test_a_plain_call_on_the_loop_of_memory_goes_on_without_it(tmp_path: Path) -> None:
    async with in_process(tmp_path) as memory_of:
        middleware, model, _ = talk(memory_of("ann"))
        assert "async" in middleware.degraded
        assert "Recalled" not in str(model.shown[-1])


def test_what_cannot_be_opened_raises(tmp_path: Path) -> None:
    with opened(Keepsaid.open(tmp_path, settings=SETTINGS)) as ks:
        with pytest.raises(HomeBusy), opened(Keepsaid.open(tmp_path, settings=SETTINGS)):
            pass
        assert ks.agent("ann").loop is not None
