"""`/incognito`: nothing that is said meanwhile is found by a search, extracted, or seen in another lane."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tests.unit.test_remember import OWNER, say

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.memory import Kind
from keepsaid.domain.message import Content, Inbound
from keepsaid.domain.prompt import ToolCall
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid.services.memories import OWNER_HEARS, SearchRequest

SECRET = "zebraquix"
ELSEWHERE = replace(OWNER, conversation="work")


_CONFIG = Config(server={"port": 0}, collection={"extractor": "rules"})


@dataclass
class Echoing:
    """Repeats all that it was shown, and stores it with its tool where it has one; keeps every prompt."""

    shown: list[str] = field(default_factory=list)
    tools: list[tuple[str, ...]] = field(default_factory=list)
    name = "test/echoing"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        delta("")
        prompt = request.prompt
        seen = " ".join((prompt.system, *(record.text for record in prompt.history), prompt.user))
        self.shown.append(seen)
        self.tools.append(tuple(tool.name for tool in request.tools))
        if not request.exchange and "memory_save" in self.tools[-1] and SECRET in prompt.user:
            return ModelAnswer("", (ToolCall("1", "memory_save", '{"text": "I said ' + SECRET + '"}'),), Usage(9, 3))
        return ModelAnswer(f"you said {prompt.user}", usage=Usage(9, 3), model=self.name)


@asynccontextmanager
async def running(home: Path, model: Echoing) -> AsyncIterator[Instance]:
    async with opened(Home.at(home), _CONFIG, model) as instance:
        await instance.start()
        yield instance


def _message(text: str) -> Inbound:
    return Inbound(OWNER, Content(text.encode(), text), priority=10)


async def everything_learned(instance: Instance) -> None:
    """Record and extract whatever is due, as `memory extract run` does."""
    await instance.recorder.catch_up()
    await instance.collecting.mark(None)
    await instance.collecting.read_all()


async def hits(instance: Instance, words: str = SECRET) -> list[str]:
    """What searches find of some words, in active and in archived memories, and in the list of all."""
    found = [
        hit.memory.text
        for archived in (False, True)
        for hit in (await instance.services.search.search(SearchRequest(words, 20, archived=archived))).hits
    ]
    return [*found, *(one.text for one in await instance.memories.find(OWNER_HEARS, (), 500))]


async def test_a_secret_stays_in_its_lane_also_afterwards(tmp_path: Path) -> None:
    model = Echoing()
    async with running(tmp_path, model) as instance:
        await say(instance, "remember that my cat is called Minka")
        assert (await say(instance, "/incognito")).startswith("Incognito is on.")
        assert await say(instance, f"remember that my cat is called {SECRET}") == (
            f"you said remember that my cat is called {SECRET}"
        )
        assert "memory_save" not in model.tools[-1]
        assert "task" not in " ".join(model.tools[-1])
        assert (await say(instance, f"/remember {SECRET} is mine")).startswith("Nothing said here is remembered")
        await say(instance, "and what did I say?")
        assert SECRET in model.shown[-1], "in its lane the model sees it"
        await everything_learned(instance)
        await say(instance, f"what do you know of {SECRET[:5]}?", ELSEWHERE)
        assert SECRET not in model.shown[-1]
        assert (await say(instance, "/incognito off")).startswith("Incognito is off.")
        assert await say(instance, "/incognito off") == "Incognito is not on here."
        await say(instance, "hello again")
        assert SECRET not in model.shown[-1]
    async with running(tmp_path, model) as instance:
        await everything_learned(instance)
        shown = len(model.shown)
        await say(instance, "what did I say in incognito?", ELSEWHERE)
        await say(instance, "what did I say before?")
        await everything_learned(instance)
        assert all(SECRET not in one for one in model.shown[shown:])
        found = await hits(instance)
        assert [one for one in found if SECRET in one] == []
        facts = await instance.memories.find(OWNER_HEARS, [Kind.FACT], 9)
        assert any("Minka" in one.text for one in facts), "what was said before is extracted"
        assert any("hello again" in one for one in found), "what was said after is remembered"


async def test_words_beside_the_commands_are_incognito_too(tmp_path: Path) -> None:
    model = Echoing()
    async with running(tmp_path, model) as instance:
        await say(instance, "/incognito")
        line, *_ = await instance.operations.lanes(1)
        assert line.incognito
        await say(instance, "/pause")
        sent = await instance.receive(_message(f"I am {SECRET}"))
        await say(instance, "/incognito off")
        await say(instance, "/resume")
        with instance.hub.listening(sent.id) as heard:
            while (story := await instance.operations.story(sent.id)) is None or story.state != "done":
                await heard.get()
        await say(instance, "hello again")
        assert SECRET not in model.shown[-1]
        await everything_learned(instance)
        assert [one for one in await hits(instance) if SECRET in one] == []
