"""Power cuts of the memory: what was kept is there whole and found by its words, and loss would be seen."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import apsw
import pytest
from tests.figures import Figures

from keepsaid.adapters.sql.query import CommitTable
from keepsaid.adapters.sql.search.memories import MEMORY_TABLE
from keepsaid.adapters.sqlite.connection import Readers
from keepsaid.adapters.sqlite.integrity import check_integrity
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories, start
from keepsaid.domain.memory import Kind, Listener, NewMemory, Source, conversation_scope
from keepsaid.domain.message import Trust
from keepsaid.errors import KeepsaidError, StoreBroken
from keepsaid.testing.builders import lane_of
from keepsaid.testing.clock import CountingIds
from keepsaid_testkit.contracts.memories import by_words
from keepsaid_testkit.power.layer import laid
from keepsaid_testkit.power.medium import SECTOR, Medium
from keepsaid_testkit.power.strike import Mode, leave_progress, progress_left

SEED = 20_261_121
EVERYONE = Listener(None, everything=True)
SOAK_CUTS = 200
MADE_IN, CHANGES_MAX = 150, 2_500


@dataclass
class Told:
    """What the memory was given: what it said it keeps, and what was under way when the power went."""

    kept: dict[str, NewMemory] = field(default_factory=dict)
    doubt: dict[str, NewMemory] = field(default_factory=dict)
    ids: CountingIds = field(default_factory=CountingIds)
    said: int = 0

    def some(self, chance: Random) -> list[NewMemory]:
        """New memories, which are kept all or none."""
        lane = lane_of(f"room {chance.randrange(5)}")
        made = []
        for _ in range(chance.randint(1, 6)):
            self.said += 1
            text = f"word{self.said} was said in a room " + "and so on " * chance.randint(0, 60)
            sources = (Source("message", str(self.said)),)
            scope = conversation_scope(lane)
            made.append(NewMemory(f"m:{self.said}", Kind.EPISODE, text, scope, Trust.KNOWN, lane, sources=sources))
        return made


async def live(folder: Path, medium: Medium, told: Told, chance: Random, mode: Mode) -> None:
    """Open the memory, keep things and close it; the power may go at any moment of that."""

    def table(db: apsw.Connection) -> CommitTable:
        if mode is Mode.NORMAL:
            db.pragma("synchronous", "normal")
        return MEMORY_TABLE

    path = folder / "memory.db"
    try:
        with laid(folder, medium):
            writer = await start(path, ("memory",), table)
    except (KeepsaidError, apsw.Error):
        if not medium.dead():
            raise
        return
    readers = Readers(path)
    store = SqliteMemories(writer, readers, told.ids, (readers, writer))
    try:
        for _ in range(chance.randint(5, 120)):
            told.doubt = {one.key: one for one in told.some(chance)}
            await store.keep(tuple(told.doubt.values()), told.said)
            told.kept |= told.doubt
            told.doubt = {}
    except StoreBroken:
        assert medium.dead()
    finally:
        await store.close()


async def judge(path: Path, told: Told) -> list[str]:
    """Go on with what is left as the next start would; returns the kept that are gone, fails on what is half there."""
    store = await open_memories(path, told.ids)
    try:
        there = {one.new.key: one for one in await store.find(EVERYONE, (), told.said + 1)}
        lost = [key for key in told.kept if key not in there]
        assert len(told.doubt.keys() & there.keys()) in (0, len(told.doubt)), "all of a call or nothing"
        everything = told.kept | told.doubt
        assert all(one.new == everything[key] for key, one in there.items()), "what is there is what was kept"
        again = await store.keep(tuple(everything.values()), told.said)
        known = {key: one for key, one in zip(everything, again, strict=True) if key in there}
        assert known == {key: one.id for key, one in there.items()}, "what comes again is known"
        for key in list(everything)[-5:]:
            hit, *_ = await by_words(store, EVERYONE, f"word{key.removeprefix('m:')}", 2)
            assert hit.memory.new.key == key
    finally:
        await store.close()
    look = check_integrity(path, ("memory",), mend=True)
    assert (look.damage, look.astray) == ((), ())
    told.kept, told.doubt = everything, {}
    return lost


async def cuts(folder: Path, mode: Mode, count: int) -> AsyncIterator[tuple[list[str], int]]:
    """So many cuts, three of each store: what was lost in each, and how much that store had said it keeps."""
    for n in range(count):
        if n % 3 == 0:
            chance, told, home = Random(f"memory:{mode}:{SEED}:{n}"), Told(), folder / f"{n}-0"
            home.mkdir()
        early = chance.random() < 0.25
        last = chance.randint(1, MADE_IN) if early else chance.randint(MADE_IN, CHANGES_MAX)
        medium, before = Medium(last, honest=mode is not Mode.LYING), progress_left(home / "memory.db")
        while not medium.dead():
            await live(home, medium, told, chance, mode)
        latest = progress_left(home / "memory.db")
        home = folder / f"{n}-1"
        home.mkdir()
        medium.leave(home, chance)
        if mode is Mode.FULL:
            leave_progress(home / "memory.db", (before, latest), chance)
        kept = len(told.kept)
        yield await judge(home / "memory.db", told), kept


async def test_power_cuts_lose_nothing_of_the_memory(tmp_path: Path) -> None:
    found = [one async for one in cuts(tmp_path, Mode.FULL, 15)]
    assert [lost for lost, _ in found] == [[]] * 15
    assert sum(kept for _, kept in found) > 1_500, "the store was at work"


async def test_without_a_sync_for_each_commit_the_same_finds_loss(tmp_path: Path) -> None:
    async for lost, _ in cuts(tmp_path, Mode.NORMAL, 30):
        if lost:
            return
    pytest.fail("nothing was lost")


async def test_a_first_page_spoilt_on_its_way_out_of_the_log_is_mended_from_the_log(tmp_path: Path) -> None:
    store, [new] = await open_memories(tmp_path / "memory.db", CountingIds()), Told().some(Random(1))[:1]
    await store.keep([new], 1)
    left = shutil.copytree(tmp_path, tmp_path / "left") / "memory.db"
    await store.close()
    left.write_bytes(b"\xff" * SECTOR + left.read_bytes()[SECTOR:])
    after = await open_memories(left, CountingIds())
    assert [one.new for one in await after.find(EVERYONE, (), 2)] == [new]
    await after.close()


@pytest.mark.soak
@pytest.mark.parametrize("mode", [Mode.FULL, Mode.NORMAL])
async def test_hundreds_of_cuts_of_the_memory(tmp_path: Path, mode: Mode, figures: Figures) -> None:
    lost = kept = struck = 0
    async for gone, had in cuts(tmp_path, mode, SOAK_CUTS):
        struck, lost, kept = struck + 1, lost + len(gone), kept + had
    figures(cuts=struck, kept=kept, lost=lost)
    assert bool(lost) is (mode is Mode.NORMAL), "none at FULL; at NORMAL some, or this sees nothing"
