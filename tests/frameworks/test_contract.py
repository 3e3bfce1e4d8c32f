"""What every adapter that shows memory to a model is promised to do, with each framework and each memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import pytest_asyncio
from tests.frameworks.langchain_rig import LangchainRig
from tests.frameworks.llamaindex_rig import LlamaindexRig
from tests.frameworks.memories import BROKEN, FACES, MemoryOf
from tests.frameworks.openai_agents_rig import OpenAiAgentsRig
from tests.frameworks.pydantic_ai_rig import PydanticAiRig
from tests.frameworks.rigs import RigOf, Way, noted
from tests.waits import HANG_S

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    # workflows of LlamaIndex look at each attribute of a pydantic model, old ones too
    pytest.mark.filterwarnings("ignore:The `__(fields|fields_set)__` attribute is deprecated"),
    pytest.mark.filterwarnings("ignore:The `model_(computed_)?fields"),
    pytest.mark.filterwarnings("ignore:Accessing the 'model_(computed_)?fields' attribute on the instance"),
]

RIGS: Mapping[str, RigOf] = {
    "langchain": LangchainRig,
    "llamaindex": LlamaindexRig,
    "openai-agents": OpenAiAgentsRig,
    "pydantic-ai": PydanticAiRig,
}
STATEFUL = ("openai-agents",)
"""Frameworks whose history is in the memory itself: there a run that ended cannot begin as it began."""
CAT, WHICH = "My cat is called Miso.", "What is my cat called?"
HEAD = "Recalled from memory"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=FACES)
async def memory_of(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[MemoryOf]:
    async with FACES[request.param](tmp_path_factory.mktemp("home")) as given:
        yield given


@pytest.fixture(params=RIGS)
def framework(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


async def said_in(memory_of: MemoryOf, conversation: str, name: str = "ann") -> list[tuple[str, str]]:
    """What was recorded of a conversation, as roles and texts."""
    return [(one["role"], one["text"]) for one in (await memory_of(name).transcript(conversation))["messages"]]


@pytest.mark.parametrize("way", Way)
async def test_a_run_is_shown_what_was_said_in_an_earlier_one(memory_of: MemoryOf, framework: str, way: Way) -> None:
    """In another conversation of the same person; what is shown is kept nowhere, and only the talk is recorded."""
    memory, rig_of = memory_of("ann"), RIGS[framework]
    first, second = f"{framework} {way} 1", f"{framework} {way} 2"
    told = await rig_of(memory, first).run(CAT, way)
    assert told.answer == noted(CAT)
    rig = rig_of(memory, second)
    asked = await rig.run(WHICH, way)
    assert asked.answer == noted(WHICH)
    assert rig.degraded == ""
    assert HEAD in asked.shown
    assert "Miso" in asked.shown
    assert HEAD not in asked.history
    assert "Miso" not in asked.history
    more = await rig.run("Thank you.", way)
    assert HEAD not in more.history
    assert await said_in(memory_of, first) == [("user", CAT), ("assistant", noted(CAT))]
    expected = [WHICH, noted(WHICH), "Thank you.", noted("Thank you.")]
    assert [text for _, text in await said_in(memory_of, second)] == expected
    for hit in (await memory.recall(HEAD, 50))["hits"]:
        assert HEAD not in hit["memory"]["text"]


async def test_a_run_that_is_retried_is_recorded_once(memory_of: MemoryOf, framework: str) -> None:
    rig, conversation = RIGS[framework](memory_of("ann"), f"{framework} retry"), f"{framework} retry"
    await rig.run("The heron nests behind the mill.")
    await rig.fail("It came back in March.")
    for again in (False,) if framework in STATEFUL else (False, True, True):
        await rig.run("It came back in March.", again=again)
    texts = [text for role, text in await said_in(memory_of, conversation) if role == "user"]
    assert texts == ["The heron nests behind the mill.", "It came back in March."]
    assert rig.degraded == ""


async def test_two_people_know_nothing_of_each_other(memory_of: MemoryOf, framework: str) -> None:
    rig_of, conversation = RIGS[framework], f"{framework} vault"
    await rig_of(memory_of("ann"), conversation).run("The safe opens with the name of my aunt Philomena.")
    asked = await rig_of(memory_of("bob"), conversation).run("How does the safe of my aunt open?")
    assert "Philomena" not in asked.shown
    assert "Philomena" not in str(await said_in(memory_of, conversation, "bob"))


async def test_runs_at_the_same_time_are_kept_apart(memory_of: MemoryOf, framework: str) -> None:
    rig_of, names = RIGS[framework], [f"{framework} parallel {n}" for n in range(6)]
    people = ["ann" if n % 2 else "bob" for n in range(6)]
    rigs = [rig_of(memory_of(who), name) for who, name in zip(people, names, strict=True)]
    texts = [f"My locker {framework} has the number {n}70{n}." for n in range(6)]
    ran = await asyncio.gather(*(rig.run(text) for rig, text in zip(rigs, texts, strict=True)))
    assert [one.answer for one in ran] == [noted(text) for text in texts]
    for who, name, text in zip(people, names, texts, strict=True):
        assert await said_in(memory_of, name, who) == [("user", text), ("assistant", noted(text))]


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("way", [Way.PLAIN, Way.STREAM])
async def test_memory_that_fails_is_left_out_and_the_run_goes_on(
    framework: str, fault: str, way: Way, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "keepsaid.frameworks")
    async with BROKEN[fault](tmp_path) as memory, asyncio.timeout(HANG_S):
        rig = RIGS[framework](memory, "broken")
        ran = await rig.run(CAT, way)
        assert ran.answer == noted(CAT)
        assert HEAD not in ran.shown
        assert rig.degraded
    assert "memory is left out of a run" in caplog.text
    assert "Miso" not in caplog.text
