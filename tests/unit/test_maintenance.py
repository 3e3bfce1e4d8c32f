"""Maintenance: every night, in small steps that go on where they stopped; loose ends go, what is lost comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import TypeVar

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contract.test_memories import Counting

from keepsaid.adapters.embedders.hashed import Hashed
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.domain.graph import Association, Mention, Relation
from keepsaid.domain.maintenance import DAY_MS, PIECE, Curve, FadeTrace, UpkeepTask
from keepsaid.memory.indexing import Embedding
from keepsaid.memory.maintenance import Maintenance, MaintenanceTerms
from keepsaid.testing.clock import VirtualClock
from keepsaid_testkit.contracts.memories import AUDIT, sample

T = TypeVar("T")
NOW = 1_795_132_800_000
"""Midnight, UTC."""

days = st.floats(0, 2_000)


@given(st.floats(0.01, 1), days, days, days, st.integers(0, 50))
def test_it_does_not_matter_how_often_fading_is_counted(
    importance: float, first: float, second: float, third: float, uses: int
) -> None:
    times = sorted(NOW + int(days * DAY_MS) for days in (first, second, third))
    left, counted = importance, None
    for at in times:
        left, counted = FadeTrace(left, NOW, counted, uses).at(at, Curve()), at
    assert left == pytest.approx(FadeTrace(importance, NOW, None, uses).at(times[-1], Curve()), rel=1e-9)
    assert 0 < left <= importance


def test_the_curve_is_what_the_docs_say() -> None:
    fact, half = FadeTrace(0.6, NOW), FadeTrace(1.0, NOW).at(NOW + 84 * DAY_MS, Curve())
    assert half == pytest.approx(0.5, abs=0.005)
    assert [fact.at(NOW + days * DAY_MS, Curve()) < 0.05 for days in (413, 415)] == [False, True]
    assert FadeTrace(0.6, NOW, None, 5).at(NOW + 415 * DAY_MS, Curve()) > 0.2
    assert FadeTrace(0.01, NOW).worth_counting(NOW + 29 * DAY_MS, Curve(rate=0)) is False, (
        "nothing is archived in its grace"
    )


class Home:
    """A store with something to look after, and its clock."""

    def __init__(self, store: SqliteMemories, path: Path) -> None:
        self.store = store
        self.path = path
        self.clock = VirtualClock(NOW)
        self.embedding = Embedding(Hashed(), store, self.clock)
        terms = MaintenanceTerms(hour=3)
        self.maintenance = Maintenance(store.upkeep, self.clock, terms, self.embedding)

    async def facts(self, number: int) -> tuple[int, ...]:
        names = count()
        facts = [sample(f"f{next(names)}", f"fact number {n}", importance=0.6, said_at=NOW) for n in range(number)]
        return await self.store.keep(facts, NOW)

    async def during(self, work: Coroutine[object, object, T]) -> T:
        """What comes of work that rests between its steps, while time passes."""
        task = asyncio.ensure_future(work)
        while not task.done():
            await self.clock.advance(50)
        return await task

    def change(self, *statements: str) -> None:
        """What no port does: the store is damaged."""
        with closing(apsw.Connection(str(self.path))) as db:
            db.set_busy_timeout(60_000)
            for statement in statements:
                db.execute(statement)

    def number(self, of: str) -> int:
        with closing(apsw.Connection(str(self.path))) as db:
            db.set_busy_timeout(60_000)
            [(number,)] = db.execute(f"SELECT count(*) FROM {of}").fetchall()
            return int(str(number))


@asynccontextmanager
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    path = tmp_path / "memory.db"
    store = await open_memories(path, Counting())
    try:
        yield Home(store, path)
    finally:
        await store.close()


async def test_a_run_comes_once_a_night_and_the_next_is_known(tmp_path: Path) -> None:
    async with home(tmp_path) as one:
        await one.facts(3)
        hour = DAY_MS // 24
        assert await one.during(one.maintenance.work()) == NOW + 3 * hour
        assert await one.store.upkeep.runs() == ()
        for night in range(3):
            await one.clock.advance(4 * hour if night == 0 else DAY_MS)
            due = await one.during(one.maintenance.work())
            assert due == NOW + 3 * hour + (night + 1) * DAY_MS
            [run, *_] = await one.store.upkeep.runs()
            assert 0 <= one.clock.now_ms() - run.begun_at < hour
            await one.during(one.maintenance.work())
            assert (await one.store.upkeep.runs())[0].begun_at == run.begun_at


async def test_a_night_that_was_missed_is_made_up_at_the_next_start(tmp_path: Path) -> None:
    async with home(tmp_path) as one:
        await one.facts(3)
        await one.during(one.maintenance.run())
        later = VirtualClock(NOW + 30 * DAY_MS + 1)
        work = asyncio.ensure_future(Maintenance(one.store.upkeep, later, MaintenanceTerms(hour=3)).work())
        while not work.done():
            await later.advance(1)
        assert (await one.store.upkeep.runs())[0].begun_at > NOW + 30 * DAY_MS


async def test_a_run_that_is_broken_off_goes_on_from_there(tmp_path: Path) -> None:
    async with home(tmp_path) as one:
        await one.facts(600)
        await one.clock.advance(20 * DAY_MS)
        first = await Maintenance(one.store.upkeep, one.clock, MaintenanceTerms(step_ms=0.0)).run(0)
        assert (first.over, first.steps, first.changed[UpkeepTask.FADE]) == (False, 1, PIECE)
        [run] = await one.store.upkeep.runs()
        assert run.ended_at is None
        again = Maintenance(one.store.upkeep, one.clock, MaintenanceTerms(hour=3))
        await one.during(again.work())
        [run, *_] = await one.store.upkeep.runs()
        assert (run.ended_at is not None, run.changed) == (True, 600)


async def test_loose_ends_go_and_nothing_else(tmp_path: Path) -> None:
    async with home(tmp_path) as one:
        a, b, c = await one.facts(3)
        edges = [Association(a, b, Relation.RELATED_TO), Association(b, c, Relation.UPDATES)]
        mentions = [Mention(a, "person:bob", "Bob"), Mention(b, "place:rome", "Rome")]
        await one.store.graph.relate(edges, mentions, NOW)
        loose = "INSERT INTO association (source_id, target_id, relation, created_at) VALUES "
        one.change(f"{loose} ({a}, 17, 'related_to', 1), (17, {a}, 'updates', 1)")
        one.change("DELETE FROM mention WHERE name = 'Rome'")
        there = await one.maintenance.outstanding()
        assert (there.found[UpkeepTask.EDGES], there.found[UpkeepTask.ENTITIES]) == (2, 1)
        done = await one.during(one.maintenance.run())
        assert (done.changed[UpkeepTask.EDGES], done.changed[UpkeepTask.ENTITIES], done.over) == (2, 1, True)
        assert (one.number("association"), one.number("entity"), one.number("mention")) == (2, 1, 1)


async def test_lost_vectors_are_made_again(tmp_path: Path) -> None:
    async with home(tmp_path) as one:
        await one.facts(5)
        await one.embedding.finish()
        one.change("DELETE FROM vector WHERE id IN (2, 3)")
        await one.embedding.finish()
        assert one.number("vector") == 3, "nobody looks back by himself"
        await one.during(one.maintenance.run())
        await one.embedding.finish()
        assert one.number("vector") == 5


async def test_vectors_of_a_former_model_go_once_the_new_one_has_come_as_far(tmp_path: Path) -> None:
    async with home(tmp_path) as one:
        await one.facts(5)
        await Embedding(Hashed("2"), one.store, one.clock).finish()
        await one.during(one.maintenance.run())
        assert (one.number("space"), one.number("vector")) == (1, 5), "it serves as long as there is no other"
        await one.embedding.finish()
        assert (one.number("space"), one.number("vector")) == (2, 10)
        done = await one.during(one.maintenance.run())
        assert done.changed[UpkeepTask.SPACES] == 5
        assert (one.number("space"), one.number("vector")) == (1, 5)
        assert await one.store.nearest(AUDIT, await one.embedding.space(), await Hashed().query("number 3"), 9)


async def test_words_are_counted_anew(tmp_path: Path) -> None:
    async with home(tmp_path) as one:
        await one.facts(4)
        await one.during(one.maintenance.run())
        one.change("UPDATE term_df SET pieces = 99", "UPDATE term_count SET pieces = 3")
        await one.during(one.maintenance.run())
        assert (await one.store.read_document_frequencies("fact")).pieces == 4
        assert one.number("term_df WHERE pieces = 99") == 0
