"""What every store must do for maintenance: a step in each commit, which goes on where the last one stopped.

Subclass the class in a test module and give the fixture `factory` of `contracts.memories`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol

from keepsaid.domain.maintenance import DAY_MS, PIECE, Curve, Maintain, Stepped, UpkeepTask
from keepsaid.domain.memory import IMPORTANCE, Kind, Used, conversation_scope
from keepsaid.domain.message import Trust
from keepsaid.ports.memory_maintenance import Upkeep
from keepsaid.ports.memory_store import Shelf, TextLeg
from keepsaid_testkit.contracts.memories import (
    AUDIT,
    HERE,
    OWNER_HERE,
    THERE,
    SearchableStore,
    by_words,
    episode,
    keys,
    sample,
)

NOW = 1_795_000_000_000
LATER = NOW + 1_000 * DAY_MS


class UpkeepArchive(TextLeg, Shelf, Protocol):
    """Archived memories, searched and read."""


class KeptStore(SearchableStore, Protocol):
    """A store of memories that can be looked after."""

    @property
    def upkeep(self) -> Upkeep:
        """Its upkeep."""
        ...

    @property
    def archive(self) -> UpkeepArchive:
        """What was archived."""
        ...


Factory = Callable[[], AbstractAsyncContextManager[KeptStore]]


def fade(at: int, limit: int = 100) -> Maintain:
    """A step of the first task."""
    return Maintain(UpkeepTask.FADE, at, limit, Curve())


async def importances(store: KeptStore) -> dict[str, float]:
    """The importance of every memory that is active, by its key."""
    return {memory.new.key: memory.new.importance for memory in await store.find(AUDIT, (), 999)}


class UpkeepContract:
    """Memories fade, and where a task stands is known."""

    async def test_a_step_at_the_same_time_again_changes_nothing(self, factory: Factory) -> None:
        """However often it is made."""
        async with factory() as store:
            await store.keep([sample("a", importance=0.6)], NOW)
            first = await store.upkeep.step(fade(NOW + 20 * DAY_MS))
            faded = await importances(store)
            assert first.changed == 1
            assert 0.4 < faded["a"] < 0.6
            for _ in range(3):
                assert (await store.upkeep.step(fade(NOW + 20 * DAY_MS))).changed == 0
                assert await importances(store) == faded

    async def test_only_what_is_judged_fades(self, factory: Factory) -> None:
        """Neither who somebody is, nor what was said, nor a person's own correction."""
        async with factory() as store:
            kinds = [sample(str(kind), kind=kind, importance=IMPORTANCE[kind]) for kind in IMPORTANCE]
            said = episode("said", "the cat sleeps", HERE, Trust.OWNER, importance=0.5)
            await store.keep([*kinds, said, sample("corrected", importance=0.6, corrects=True)], NOW)
            await store.upkeep.step(fade(NOW + 20 * DAY_MS))
            after = await importances(store)
            before = {**{str(kind): IMPORTANCE[kind] for kind in IMPORTANCE}, "said": 0.5, "corrected": 0.6}
            assert {key for key in before if after[key] == before[key]} == {"identity", "said", "corrected"}

    async def test_what_is_used_fades_from_then_on(self, factory: Factory) -> None:
        """And more slowly."""
        async with factory() as store:
            used, _ = await store.keep([sample("used", importance=0.6), sample("not", importance=0.6)], NOW)
            await store.keep([], NOW, [Used(9, (used,), NOW + 10 * DAY_MS)])
            await store.upkeep.step(fade(NOW + 20 * DAY_MS))
            after = await importances(store)
            assert after["not"] < after["used"] < 0.6

    async def test_what_has_faded_is_archived_and_comes_to_mind_no_more(self, factory: Factory) -> None:
        """It is still there, whole."""
        async with factory() as store:
            old, _ = await store.keep([sample("old", importance=0.3), sample("who", kind=Kind.IDENTITY)], NOW)
            assert (await store.upkeep.outstanding(LATER, Curve(), None)).archived == 1
            assert (await store.upkeep.step(fade(LATER))).archived == 1
            assert keys(await by_words(store, AUDIT, "cat", 9)) == ["who"]
            memory = await store.get(AUDIT, old)
            assert memory is not None
            assert (memory.state, memory.text) == ("archived", "the cat sleeps")

    async def test_the_archive_is_searched_by_words_and_hears_what_its_listener_hears(self, factory: Factory) -> None:
        """Most shared words first; nothing that is not archived, and nothing of another scope."""
        async with factory() as store:
            texts = {"cats": "Two cats sleep in Rome", "cat": "a happy cat", "dog": "the dog barks"}
            facts = [sample(key, text, importance=0.3) for key, text in texts.items()]
            there = sample("there", "cats of Rome", importance=0.3, scope=conversation_scope(THERE))
            await store.keep([*facts, there], NOW)
            await store.upkeep.step(fade(LATER, 200))
            await store.keep([sample("fresh", "a cat in Rome")], LATER)
            for listener, wanted in ((OWNER_HERE, ["cats", "cat"]), (AUDIT, ["there", "cats", "cat"])):
                found = await store.archive.text(listener, "the cat that is happy in Rome", 9)
                read = await store.archive.fetch(listener, [one.memory_id for one in found])
                assert sorted(keys(read)) == sorted(wanted)
                assert len(found) == len(wanted)
            assert await store.archive.text(AUDIT, "zebra", 9) == ()
            assert await store.archive.text(AUDIT, "", 9) == ()
            assert [one.score for one in await store.archive.text(AUDIT, "happy cat", 1)] == [1.0]

    async def test_a_task_goes_on_where_it_stopped(self, factory: Factory) -> None:
        """Also after the store was closed, as of the time at which it began."""
        async with factory() as store:
            await store.keep([sample(f"f{n}", f"fact {n}", importance=0.6) for n in range(5)], NOW)
            assert not (await store.upkeep.step(fade(NOW + 20 * DAY_MS, 2))).over
        async with factory() as store:
            [run] = await store.upkeep.runs()
            assert (run.task, run.begun_at, run.ended_at, run.changed) == (UpkeepTask.FADE, NOW + 20 * DAY_MS, None, 2)
            assert not (await store.upkeep.step(fade(NOW + 21 * DAY_MS, 2))).over
            assert (await store.upkeep.step(fade(NOW + 21 * DAY_MS, 2))).over
            assert len(set((await importances(store)).values())) == 1, "all as of one time"
            [run] = await store.upkeep.runs()
            assert (run.ended_at, run.changed) == (NOW + 21 * DAY_MS, 5)

    async def test_a_step_without_time_is_one_piece(self, factory: Factory) -> None:
        """However much it may look at; one is archived in it. The next goes on behind it, and none is left out."""
        count = 2 * PIECE + 5
        async with factory() as store:
            await store.keep([sample(f"f{n}", f"fact {n}", importance=0.6) for n in range(count)], NOW)
            looked: list[int] = []
            while not looked or looked[-1] == PIECE:
                step = await store.upkeep.step(replace(fade(NOW + 20 * DAY_MS, count), budget_ms=0.0))
                assert (step.changed, step.over) == (step.looked, step.looked < PIECE)
                looked.append(step.looked)
            assert looked == [PIECE, PIECE, 5]
            for _ in range(count - 1):
                step = await store.upkeep.step(replace(fade(LATER, count), budget_ms=0.0))
                assert (step.archived, step.over) == (1, False)
            last = await store.upkeep.step(replace(fade(LATER, count), budget_ms=0.0))
            assert (last.archived, last.over) == (1, True)

    async def test_the_log_is_cut_to_nothing(self, factory: Factory) -> None:
        """Where nobody reads it."""
        async with factory() as store:
            await store.keep([sample("a")], NOW)
            assert await store.upkeep.empty_log()

    async def test_an_empty_store_has_nothing_to_do(self, factory: Factory) -> None:
        """Every task is over at once."""
        async with factory() as store:
            for task in UpkeepTask:
                step = await store.upkeep.step(Maintain(task, NOW, 100))
                assert (step.looked, step.changed, step.over) == (0, 0, True)
            assert set((await store.upkeep.outstanding(NOW, Curve(), None)).found.values()) == {0}

    async def test_a_dry_look_changes_nothing(self, factory: Factory) -> None:
        """It says what the next run will do."""
        async with factory() as store:
            await store.keep([sample("a", importance=0.6), sample("b", kind=Kind.IDENTITY)], NOW)
            before = await importances(store)
            there = await store.upkeep.outstanding(NOW + 20 * DAY_MS, Curve(), None)
            assert (there.found[UpkeepTask.FADE], there.archived) == (1, 0)
            assert await importances(store) == before
            step = await store.upkeep.step(fade(NOW + 20 * DAY_MS))
            assert step == Stepped(2, 1, 0, over=True)

    async def test_holdings_count_what_is_there(self, factory: Factory) -> None:
        """By kind, state and kind of scope."""
        async with factory() as store:
            said = episode("message:1", "the dog barks", HERE, Trust.OWNER)
            await store.keep([sample("a", importance=0.3), said], NOW)
            await store.upkeep.step(fade(LATER))
            held = await store.upkeep.holdings()
            assert held.kinds == {"episode": 1, "fact": 1}
            assert held.states == {"active": 1, "archived": 1}
            assert held.scopes == {"conversation": 1, "global": 1}
            assert (held.counts["pieces"], held.counts["vectors"], held.counts["evidence"]) == (1, 0, 1)
            assert [run.task for run in held.runs] == [UpkeepTask.FADE]
