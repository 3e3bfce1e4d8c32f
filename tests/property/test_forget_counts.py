"""Any history of memories: the preview of a deletion, its receipt, and what the stores lost are the same numbers."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.property.forgetting_world import World, world

from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.graph import Mention
from keepsaid.domain.learning import Statement
from keepsaid.domain.memory import OWNER, Kind, Memory
from keepsaid.domain.session import Passage
from keepsaid.domain.turn import Usage
from keepsaid.errors import InputError
from keepsaid.ports.model import Extracted
from keepsaid.services.memories import MemoryService
from keepsaid.testing.builders import ACCOUNT, CHANNEL
from keepsaid_testkit.contracts.memories import AUDIT

_ROOMS, _PEOPLE = ("attic", "cellar"), ("ann", "bob")
_THINGS = ("wagonab", "petshopcd", "harbouref", "violingh", "kitchenij")
_VERBS = ("leans", "floats", "burns", "rattles", "shines", "rusts", "sings", "melts", "grows", "sleeps")

_CENSUS = {
    "memory.db": {
        "memories": "SELECT count(*) FROM memory",
        "sources": "SELECT count(*) FROM memory_source",
        "entities": "SELECT count(*) FROM entity",
        "identities": "SELECT count(*) FROM identity",
    },
    "buffer.db": {
        "messages": "SELECT count(*) FROM message WHERE text <> ''",
        "records": "SELECT count(*) FROM transcript WHERE text <> ''",
        "replies": "SELECT count(*) FROM reply WHERE text <> ''",
        "statements": "SELECT count(*) FROM finding, json_each(finding.statements) AS one WHERE one.type <> 'null'",
    },
}
"""What each store holds, by the names of receipts."""


class PlaceOfThings:
    """Extracts one fact from each message: where its thing stands; a later message of a thing replaces the fact."""

    name = "places/1"
    thorough = True

    async def extract(self, passage: Passage) -> Extracted:
        """Returns the statements."""
        facts = [
            Statement(
                Kind.FACT, f"{one.text}, {one.position}", thing, "address", str(one.position), records=(one.position,)
            )
            for one, n in ((source, source.position) for source in passage.sources)
            for thing in _THINGS
            if thing in one.text
        ]
        return Extracted(tuple(facts), 1, Usage(1, 1), self.name)


class History:
    """The stores of a home in a folder, and what people do with its memories."""

    def __init__(self, stage: World, folder: Path) -> None:
        self.stage = stage
        self.folder = folder
        self.messages: list[int] = []
        self.service = MemoryService(stage.memories, stage.operations, stage.clock, PatternRedactor())

    def _open(self, file: str) -> apsw.Connection:
        return apsw.Connection(str(self.folder / file), flags=apsw.SQLITE_OPEN_READONLY)

    def census(self) -> dict[str, int]:
        """What the stores hold, by kind, read from their files."""
        found: dict[str, int] = {}
        for file, counts in _CENSUS.items():
            with closing(self._open(file)) as db:
                found |= {kind: int(str(db.execute(sql).get)) for kind, sql in counts.items()}
        return found

    async def every(self) -> Sequence[Memory]:
        """All memories, in any state."""
        with closing(self._open("memory.db")) as db:
            ids = [id_ for (id_,) in db.execute("SELECT id FROM memory ORDER BY id")]
        found = [await self.stage.memories.get(AUDIT, id_) for id_ in ids]
        return [one for one in found if one is not None]

    async def facts(self) -> list[Memory]:
        """All memories that are no episodes."""
        return [one for one in await self.every() if one.new.kind is not Kind.EPISODE]

    async def do(self, what: str, one: int, two: int) -> None:
        """Take one step of a history; a step that the service refuses changes nothing."""
        thing, room = _THINGS[one % len(_THINGS)], _ROOMS[two % 2]
        match what:
            case "say":
                text = f"the {thing} of ours is painted"
                self.messages.append(await self.stage.say(text, room, _PEOPLE[two // 2 % 2]))
            case "collect" if self.messages:
                await self.stage.collect(room)
            case "add":
                await self.service.add(f"{thing} {_VERBS[two]}", "fact")
            case "edit" | "merge" | "archive" | "mention":
                if facts := await self.facts():
                    await self._change(what, facts[one % len(facts)].id, facts[two % len(facts)].id, two)
            case "forget":
                await self.forget(one, two)

    async def _change(self, what: str, one: int, other: int, number: int) -> None:
        await self.stage.clock.advance(1_000)
        try:
            match what:
                case "edit":
                    await self.service.edit(one, f"{_VERBS[number]} corrected{number}", "")
                case "merge":
                    await self._merge(one, other)
                case "archive":
                    await self.service.archive([one])
                case _:
                    named = [Mention(one, f"thing:{number % 3}", f"thing {number % 3}", 0.5)]
                    await self.stage.memories.graph.relate([], named, self.stage.clock.now_ms())
        except InputError:
            assert what != "mention"

    async def _merge(self, one: int, other: int) -> None:
        """After a merge all that was active is still found, or is part of the survivor with all its sources."""
        before = {memory.id: memory for memory in await self.every()}
        at = self.stage.clock.now_ms()
        active = {id_ for id_, memory in before.items() if memory.state_at(at) == "active"}
        await self.service.merge(one, [other])
        after = {memory.id: memory for memory in await self.every()}
        assert {one, other} <= active, "only current memories are merged"
        assert {id_ for id_ in active if after[id_].state_at(at) != "active"} == {other}
        assert set(before[other].new.sources) <= set(after[one].new.sources)
        assert after[other].superseded_by == one

    async def _wish(self, way: int, which: int) -> ForgetSelector:
        memories = await self.every()
        if way < 5 and memories:
            return ForgetSelector((memories[which * 3 % len(memories)].id,))
        if way < 7 and self.messages:
            return ForgetSelector(messages=(self.messages[which % len(self.messages)],))
        if way < 8:
            return ForgetSelector(text=_THINGS[which % len(_THINGS)])
        if way < 9:
            return ForgetSelector(conversation=_ROOMS[which % 2])
        return ForgetSelector(person=OWNER if which % 3 == 0 else f"{CHANNEL}:{ACCOUNT}:{_PEOPLE[which % 2]}")

    async def forget(self, way: int, which: int) -> None:
        """Forget something: preview, receipt and loss are the same."""
        wish, before = await self._wish(way, which), self.census()
        targets = await self.stage.preview(wish)
        preview = dict(await self.stage.forgetter.count(targets))
        assert preview.get("memories", 0) == len(targets.memories)
        ids = {one.id for one in await self.every()}
        done = await self.stage.forget(wish)
        after = self.census()
        lost = {kind: before[kind] - after[kind] for kind in before if before[kind] != after[kind]}
        receipt = {} if done is None else {kind: n for kind, n in done.counts if kind != "lanes"}
        assert ids - {one.id for one in await self.every()} == set(targets.memories), "what goes is what is listed"
        assert (preview, receipt) == (lost, lost)


_WHAT = ("say", "say", "collect", "add", "add", "edit", "merge", "merge", "archive", "mention", "forget", "forget")
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["say", "say", "collect", "add", "add", "edit", "merge", "merge", "archive", "mention", "forget", "forget"]
        ),
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    min_size=6,
    max_size=24,
)
Step = tuple[str, int, int]
_EDITED_AND_MERGED = [("add", 0, 1), ("edit", 0, 2), ("merge", 0, 1), ("forget", 0, 0)]
_MERGED_TWICE = [("add", 0, 1), ("add", 1, 2), ("add", 2, 3), ("merge", 1, 2), ("merge", 0, 1), ("forget", 0, 0)]
_SAID_TWICE = [("say", 0, 0), ("say", 0, 0), ("collect", 0, 0), ("forget", 5, 0), ("forget", 5, 0), ("forget", 5, 1)]


async def _walk(steps: Sequence[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with world("file", Path(folder)) as stage:
            stage.read_with(PlaceOfThings())
            history = History(stage, Path(folder))
            for step in steps:
                await history.do(*step)
            await history.forget(7, 0)


@pytest.mark.soak
@given(steps=_STEPS)
@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_in_many_histories_preview_receipt_and_loss_are_the_same(steps: list[Step]) -> None:
    asyncio.run(_walk(steps))


@example(steps=_EDITED_AND_MERGED)
@example(steps=_MERGED_TWICE)
@example(steps=_SAID_TWICE)
@given(steps=_STEPS)
@settings(
    max_examples=examples(6),
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
def test_preview_receipt_and_loss_are_the_same(steps: list[Step]) -> None:
    asyncio.run(_walk(steps))
