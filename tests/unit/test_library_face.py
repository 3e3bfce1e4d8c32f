"""The library's face: ask and hear the reply, answerers of one's own, memory looked up and changed, plain calls."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from tests.waits import HANG_S

from keepsaid import AgentPrompt, BlockingKeepsaid, Episode, InputError, Keepsaid, Message
from keepsaid.testing.model_script import Call, Say, Script
from keepsaid.testing.model_server import ModelServer

SETTINGS = {"models": {"chat": "none"}, "buffer": {"window_ms": 0}}
LANTERN = Episode("The brass lantern hangs in the boathouse.", "Ann", "harbour", 1_000)


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("KEEPSAID_")]:
        monkeypatch.delenv(name)


@pytest.fixture
async def ks(tmp_path: Path) -> AsyncIterator[Keepsaid]:
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as opened:
        yield opened


class Echo:
    """Answers with what was said; keeps the prompts."""

    def __init__(self) -> None:
        self.prompts: list[AgentPrompt] = []

    async def __call__(self, prompt: AgentPrompt) -> str:
        self.prompts.append(prompt)
        return f"you said: {prompt.text}"


async def test_a_function_answers_with_what_memory_brings_to_mind(tmp_path: Path) -> None:
    echo, pieces = Echo(), list[str]()
    async with Keepsaid.open(tmp_path, settings=SETTINGS, agent=echo) as ks, asyncio.timeout(HANG_S):
        await ks.memory.add("The brass lantern hangs in the boathouse.")
        first = await ks.ask("hello")
        asked = Message("Where is the brass lantern?", "owner", "me", channel="terminal", direct=True)
        second = await ks.ask(asked, pieces.append)
        assert (await ks.why(second.turn))["id"] == second.turn
    assert (first.text, first.state) == ("you said: hello", "done")
    assert "".join(pieces) == second.text
    assert "Where is the brass lantern?" in second.text
    [_, prompt] = echo.prompts
    assert "boathouse" in prompt.recalled
    assert prompt.messages[-1] == ("user", prompt.text)


def test_a_plain_function_will_do_and_what_it_said_before_is_in_the_next_prompt(tmp_path: Path) -> None:
    prompts: list[AgentPrompt] = []

    def answer(prompt: AgentPrompt) -> str:
        prompts.append(prompt)
        return f"answer {len(prompts)}"

    with BlockingKeepsaid(Keepsaid.open(tmp_path, settings=SETTINGS, agent=answer)) as ks:
        assert [ks.ask(text).text for text in ("one", "two")] == ["answer 1", "answer 2"]
    assert ("assistant", "answer 1") in prompts[1].messages


async def test_a_function_that_fails_is_asked_again(tmp_path: Path) -> None:
    tried: list[str] = []

    def answer(prompt: AgentPrompt) -> str:
        tried.append(prompt.text)
        if len(tried) == 1:
            raise OSError("the service is away")
        return "there it is"

    async with Keepsaid.open(tmp_path, settings=SETTINGS, agent=answer) as ks, asyncio.timeout(HANG_S):
        assert (await ks.ask("hello")).text == "there it is"
    assert len(tried) == 2


async def test_an_agent_of_pydantic_ai_answers_with_its_own_tools(tmp_path: Path) -> None:
    script = Script(Call("tide", {"place": "Porto"}), Say("High tide is at noon."))
    async with ModelServer(script) as server:
        client = AsyncOpenAI(api_key="none", base_url=server.url, max_retries=0)
        agent = Agent(OpenAIChatModel("any", provider=OpenAIProvider(openai_client=client)), name="harbour")
        asked: list[str] = []

        @agent.tool_plain
        def tide(place: str) -> str:
            """When the tide is high."""
            asked.append(place)
            return "noon"

        async with Keepsaid.open(tmp_path, settings=SETTINGS, agent=agent) as ks, asyncio.timeout(HANG_S):
            reply = await ks.ask("When is high tide?")
        await client.close()
    assert (reply.text, asked) == ("High tide is at noon.", ["Porto"])
    assert "When is high tide?" in server.requests[0].last("user")


@pytest.mark.parametrize("agent", [3, "agent", Echo])
def test_what_cannot_answer_is_refused(tmp_path: Path, agent: Any) -> None:
    with pytest.raises(InputError, match="agent must be"):
        Keepsaid.open(tmp_path, agent=agent)


async def test_memory_is_looked_up_put_right_and_forgotten(ks: Keepsaid) -> None:
    memory = await ks.memory.add("The ferry leaves at nine.", "fact")
    assert (await ks.memory.get(memory)).text == "The ferry leaves at nine."
    later = await ks.memory.edit(memory, "The ferry leaves at ten.")
    assert [one.text for one in await ks.memory.history(later)][-1] == "The ferry leaves at ten."
    await ks.memory.pin(later)
    with pytest.raises(InputError, match=f"{memory} was replaced by {later}; use {later}"):
        await ks.memory.pin(memory)
    assert (await ks.memory.get(memory)).state == "superseded"
    found = await ks.memory.get(later)
    assert (found.pinned, found.kind, found.state, found.scope) == (True, "fact", "active", "person:owner")
    assert found.said.tzinfo is UTC
    assert later in [one.id for one in await ks.memory.list(["fact"])]
    looked = await ks.memory.forget(later, dry_run=True)
    assert (looked.id, looked.state, looked.counts["memories"]) == ("", "preview", 1)
    gone = await ks.memory.forget(later, undo_for="1h")
    with pytest.raises(InputError, match="there is no memory"):
        await ks.memory.get(later)
    done = await ks.events.wait_for("memory.forgotten", gone.id, HANG_S / 4)
    assert done is not None
    await ks.memory.undo(gone.id)
    assert (await ks.memory.get(later)).text == "The ferry leaves at ten."


DAY = datetime(2026, 5, 4, tzinfo=UTC)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, {"Ann", "Ben"}),
        ({"person": "ben"}, {"Ben"}),
        ({"since": DAY}, {"Ben"}),
        ({"until": DAY}, {"Ann"}),
        ({"until": int(DAY.timestamp() * 1_000)}, {"Ann"}),
        ({"kind": "fact"}, set[str]()),
        ({"archived": True}, set[str]()),
    ],
)
async def test_a_search_keeps_within_its_filters(ks: Keepsaid, filters: dict[str, Any], found: set[str]) -> None:
    later = datetime(2026, 6, 1, tzinfo=UTC)
    await ks.memory.record([LANTERN, Episode("Another lantern is in the attic.", "Ben", "attic", later)])
    assert {one.speaker for one in await ks.memory.search("lantern", **filters)} == found


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        (lambda ks: ks.memory.search("x", kind="rumour"), "there is no kind"),
        (lambda ks: ks.memory.search("x", since=DAY, until=1), "since must not be later"),
        (lambda ks: ks.memory.search("x", since=datetime(2026, 5, 4)), "knows its zone"),  # noqa: DTZ001
        (lambda ks: ks.memory.search("x", archived=True, kind="fact"), "what was archived"),
        (lambda ks: ks.memory.list(["rumour"]), "there is no kind"),
        (lambda ks: ks.memory.get("mem_nothing"), "there is no memory"),
        (lambda ks: ks.memory.forget(), "name ids, or a person"),
        (lambda ks: ks.memory.forget(text="nobody said this"), "nothing that is stored has that id or text"),
        (lambda ks: ks.memory.undo("fgt_nothing"), "cannot be undone"),
    ],
)
async def test_what_cannot_be_done_is_said(ks: Keepsaid, wrong: Callable[[Keepsaid], Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        await wrong(ks)


async def test_who_answers_by_batches_is_waited_for(ks: Keepsaid) -> None:
    async def work() -> None:
        async for batch in ks.inbox.batches("me"):
            await batch.done("by hand")
            return

    asked = asyncio.create_task(ks.ask("hello"))
    await asyncio.wait_for(work(), HANG_S)
    assert (await asyncio.wait_for(asked, HANG_S)).text == "by hand"


def test_plain_calls_raise_what_they_would_and_close(tmp_path: Path) -> None:
    with BlockingKeepsaid(Keepsaid.open(tmp_path, settings=SETTINGS)) as ks:
        receipt = ks.put(Message("hello", "ann", "room"))
        assert not receipt.duplicate
        [kept] = ks.memory.record([LANTERN])
        assert [one.id for one in ks.memory.search("lantern")] == [kept]
        with pytest.raises(InputError, match="there is no memory"):
            ks.memory.get("mem_nothing")
    with BlockingKeepsaid(Keepsaid.open(tmp_path, settings=SETTINGS)) as ks:
        assert ks.memory.get(kept).text == LANTERN.text


async def test_what_was_just_forgotten_can_be_undone_at_once(ks: Keepsaid) -> None:
    memory = await ks.memory.add("The brass lantern hangs in the boathouse.")
    request = await ks.memory.forget(memory, undo_for="30d")
    assert await ks.memory.search("lantern") == ()
    await ks.memory.undo(request.id)
    assert [found.id for found in await ks.memory.search("lantern")] == [memory]


async def test_an_episode_without_a_time_is_refused(ks: Keepsaid) -> None:
    with pytest.raises(InputError, match="said_at"):
        await ks.memory.record([Episode("hello", "Ann", "room", None)])  # type: ignore[arg-type]
    assert await ks.memory.list() == ()
