"""What comes to mind over a lane's turns: shown again or not, over restarts, and stored nowhere but in traces."""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.waits import HANG_S

from keepsaid.adapters.models.memory_calls import SUMMARY_TOOL
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.context import HEADINGS
from keepsaid.domain.memory import GLOBAL, Kind, NewMemory
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.prompt import ToolCall
from keepsaid.domain.turn import ModelAnswer
from keepsaid.ports.model import Delta, ModelRequest

SECRET = "quetzalcoatl"
ASKED = "What is the codeword of vault seven?"
KNOWN = NewMemory("codeword", Kind.FACT, f"The codeword of vault seven is {SECRET}.", GLOBAL, Trust.OWNER)
OWL = NewMemory("owl", Kind.FACT, "The owl in the barn eats mice.", GLOBAL, Trust.OWNER)
OWNER = Origin("terminal", "default", "terminal:me", "me", "Ana", direct=True, trust=Trust.OWNER)


@dataclass
class Obedient:
    """Answers as it was told: it never repeats what it was reminded of. Summarises when asked."""

    prompts: list[ModelRequest] = field(default_factory=list)
    summarised: list[str] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    search: str = ""
    name: str = "test/model"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        tools = {tool.name: tool for tool in request.tools}
        if SUMMARY_TOOL in tools:
            self.summarised.append(repr(request.prompt))
            told = json.dumps({name: [f"the {name} so far"] for name in HEADINGS})
            return ModelAnswer("", (ToolCall("c", SUMMARY_TOOL, told),))
        self.prompts.append(request)
        if self.search:
            self.found.append(await tools["memory_search"].run({"query": self.search}))
        return ModelAnswer("I know it, and keep it to myself.")

    @property
    def seen(self) -> list[tuple[int, int]]:
        """By turn: how often the secret stood in what was recalled, and in the history."""
        return [
            (one.prompt.recalled.count(SECRET), sum(record.text.count(SECRET) for record in one.prompt.history))
            for one in self.prompts
        ]


def config(**sections: dict[str, Any]) -> Config:
    """Windows of no time, nobody but turns asks the model, and a deadline that a busy machine keeps."""
    memory = {"deadline_ms": 10_000, "embedder": "none", **sections.pop("memory", {})}
    alone: dict[str, dict[str, Any]] = {"bulletin": {"enabled": False}, "collection": {"extractor": "none"}}
    standing: dict[str, dict[str, Any]] = {"buffer": {"window_ms": 0}, **alone}
    return Config(memory=memory, **standing, **sections)


@asynccontextmanager
async def talking(home: Path, settings: Config, model: Obedient) -> AsyncIterator[Instance]:
    """An instance at work that knows the secret."""
    async with asyncio.timeout(HANG_S), opened(Home.at(home), settings, model) as instance:
        await instance.memories.keep([KNOWN], 1)
        await instance.start()
        yield instance


async def say(instance: Instance, text: str, origin: Origin = OWNER, topic: str | None = None) -> None:
    """Say something and wait until it is answered."""
    received = await instance.receive(Inbound(origin, Content(text.encode(), text), topic=topic))
    with instance.hub.listening(received.id) as told:
        story = await instance.operations.story(received.id)
        while story is None or story.state != "done":
            await told.get()
            story = await instance.operations.story(received.id)


def stored(file: Path, word: str) -> list[str]:
    """Where a word stands in a database: tables and columns, those of traces unpacked."""
    found: list[str] = []
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [str(row[0]) for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        if table.startswith(("memory_text", "memory_term")):
            continue
        for row in db.execute(f'SELECT * FROM "{table}"'):
            whole = " ".join(_read(table, value) for value in row)
            if word in whole:
                found.append(table)
    db.close()
    return sorted(set(found))


def _read(table: str, value: object) -> str:
    if isinstance(value, bytes):
        return (zlib.decompress(value) if table == "trace" else value).decode("utf-8", "replace")
    return str(value)


@pytest.mark.parametrize("again", [{}, {"history_blocks": 2}, {"reinject_turns": 2}])
async def test_what_came_to_mind_is_stored_in_traces_alone(tmp_path: Path, again: dict[str, int]) -> None:
    model = Obedient()
    settings = config(memory=dict(again), compaction={"messages": 4, "keep": 2})
    async with talking(tmp_path, settings, model) as instance:
        for n in range(5):
            await say(instance, f"{ASKED} That is the question number {n}.")
        await instance.compactor.settled()
        await say(instance, ASKED)
        while await instance.recorder.catch_up():
            pass
    home = Home.at(tmp_path)
    assert model.prompts[0].prompt.recalled.count(SECRET) == 1
    assert model.summarised, "nothing was summarised"
    assert SECRET not in "".join(model.summarised)
    assert stored(home.store("buffer.db"), SECRET) == ["trace"]
    assert stored(home.store("buffer.db"), "[Relevant to this message]") == ["trace"]
    assert set(stored(home.store("memory.db"), SECRET)) <= {"memory", "memory_piece", "term_df"}
    assert stored(home.store("memory.db"), "[Relevant to this message]") == []
    with apsw.Connection(str(home.store("memory.db"))) as db:
        assert db.execute("SELECT count(*) FROM memory WHERE text LIKE ?", (f"%{SECRET}%",)).fetchall() == [(1,)]


async def test_a_block_is_seen_in_its_own_turn_and_its_memories_come_again(tmp_path: Path) -> None:
    model = Obedient()
    async with talking(tmp_path, config(), model) as instance:
        for text in (ASKED, "hello there", ASKED):
            await say(instance, text)
    assert model.seen == [(1, 0), (0, 0), (1, 0)]


async def test_for_some_turns_a_memory_is_not_given_again_also_after_a_restart(tmp_path: Path) -> None:
    model, settings = Obedient(), config(memory={"reinject_turns": 2})
    for _ in range(4):
        async with talking(tmp_path, settings, model) as instance:
            await say(instance, ASKED)
    assert model.seen == [(1, 0), (0, 0), (0, 0), (1, 0)]


async def test_earlier_blocks_are_shown_again_and_their_memories_not_given_twice(tmp_path: Path) -> None:
    model, settings = Obedient(), config(memory={"history_blocks": 1})
    for n in range(3):
        async with talking(tmp_path, settings, model) as instance:
            await say(instance, ASKED)
            if n == 1:
                await instance.memories.keep(
                    [NewMemory("owl", Kind.FACT, "The owl eats mice.", GLOBAL, Trust.OWNER)], 2
                )
                await say(instance, "What does the owl in the barn eat?")
    assert model.seen == [(1, 0), (0, 1), (0, 1), (1, 0)], "the owl's block took the place of the first"
    history = [record.text for record in model.prompts[1].prompt.history]
    assert re.match(r"\[Context from memory \w{8}\]\n\[Relevant to this message\]\n", history[0])
    assert history[1:] == [ASKED, "I know it, and keep it to myself."]


@pytest.mark.parametrize(("cross", "found", "recalled"), [("never", 0, 0), ("explicit", 1, 0), ("always", 1, 1)])
async def test_topics_that_share_words_are_kept_apart(tmp_path: Path, cross: str, found: int, recalled: int) -> None:
    said = f"The greenhouse robot stopped at valve nine, says {SECRET}."
    asked = "Why did the greenhouse robot stop at valve nine?"
    model = Obedient(search="greenhouse robot valve")
    place = Origin("telegram", "bot", "telegram:chat:42", "7", "Ana", trust=Trust.KNOWN)
    settings = config(lanes={"cross": cross}, channels={"telegram": {"answer": "always"}})
    async with asyncio.timeout(HANG_S), opened(Home.at(tmp_path), settings, model) as instance:
        await instance.start()
        await say(instance, said, place, topic="1")
        while await instance.recorder.catch_up():
            pass
        await say(instance, asked, place, topic="2")
    assert model.found[-1].count(SECRET) == found
    assert model.prompts[-1].prompt.recalled.count(SECRET) == recalled
