"""Power cuts of both stores while they are made, joined, used and closed: no start after a cut is ever refused."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import apsw
import pytest
from tests.figures import Figures

from keepsaid.adapters.sqlite.stores import check_pair, open_stores
from keepsaid.domain.commits import Receive
from keepsaid.domain.forgetting import EmptyLog
from keepsaid.domain.memory import Kind, NewMemory, Source, conversation_scope
from keepsaid.domain.message import Trust
from keepsaid.domain.views import MessageFilter
from keepsaid.errors import KeepsaidError, LogLost
from keepsaid.testing.builders import AT_ONCE, arrival, lane_of, said
from keepsaid.testing.clock import CountingIds
from keepsaid_testkit.power.layer import laid
from keepsaid_testkit.power.medium import Medium
from keepsaid_testkit.power.strike import leave_progress, progress_left

SEED = 20_261_123
STORES = ("buffer.db", "memory.db")
CUTS, SOAK_CUTS = 6, 400
MADE_IN, CHANGES_MAX = 1_100, 1_950
_EMPTY_EVERY = 5


@dataclass
class Life:
    """What goes on over all cuts of one home: what decides, what was acknowledged, and ids that never come again."""

    chance: Random
    kept: list[int] = field(default_factory=list)
    ids: CountingIds = field(default_factory=CountingIds)


async def live(home: Path, medium: Medium, life: Life) -> None:
    """Open both stores, put messages and memories into them and close them; the power may go at any moment of that."""
    async with AsyncExitStack() as closing:
        try:
            with laid(home, medium):
                operations, memories = await open_stores(home / STORES[0], home / STORES[1], life.ids, closing)
                lane = lane_of("room")
                scope = conversation_scope(lane)
                for _ in range(life.chance.randint(1, 12)):
                    number = len(life.kept) + 1
                    await operations.apply(Receive(arrival(number, said(f"message {number}")), AT_ONCE))
                    life.kept.append(number)
                    sources = (Source("message", str(number)),)
                    new = NewMemory(
                        f"m:{number}", Kind.EPISODE, "it was said", scope, Trust.KNOWN, lane, sources=sources
                    )
                    await memories.keep((new,), number)
                    if number % _EMPTY_EVERY == 0:
                        await operations.apply(EmptyLog(whole=False))
                        await memories.forgetful.empty_log()
        except (KeepsaidError, apsw.Error):
            if not medium.dead():
                raise


def made(folder: Path) -> Path:
    """A new directory."""
    folder.mkdir()
    return folder


async def cut(home: Path, left: Path, last: int, life: Life) -> None:
    """Cut the power at change number `last`, and leave in `left` what the disk has, progress files among it."""
    medium, former = Medium(last), [progress_left(home / store) for store in STORES]
    while not medium.dead():
        await live(home, medium, life)
    medium.leave(made(left), life.chance)
    for store, before in zip(STORES, former, strict=True):
        leave_progress(left / store, (before, progress_left(home / store)), life.chance)


async def struck(folder: Path, count: int) -> tuple[int, int]:
    """Cut the power so often, three times in the life of each home; returns how many messages were kept, and joins.

    Every start after a cut is to find all that was acknowledged.
    """
    total = joined = 0
    for n in range(count):
        if n % 3 == 0:
            life, home = Life(Random(f"pair:{SEED}:{n}")), made(folder / f"{n}-0")
        early = n % 3 == 0 and life.chance.random() < 0.5
        last = life.chance.randint(1, MADE_IN if early else CHANGES_MAX)
        await cut(home, folder / f"{n}-1", last, life)
        home = folder / f"{n}-1"
        for _start in range(2):  # a store whose journal has to be played back is joined by the start after
            async with AsyncExitStack() as closing:
                operations, *_ = await open_stores(home / STORES[0], home / STORES[1], life.ids, closing)
                found = len(await operations.find(MessageFilter(limit=1_000)))
        assert found - len(life.kept) in (0, 1), f"cut {n}: what was under way may be there"
        life.kept[:] = range(1, found + 1)
        total, joined = total + found, joined + check_pair(home / STORES[0], home / STORES[1])
    return total, joined


async def test_no_start_is_refused_after_power_cuts_of_both_stores(tmp_path: Path) -> None:
    total, joined = await struck(tmp_path, CUTS)
    assert total > CUTS, "the stores were at work"
    assert joined == CUTS


async def test_the_same_start_is_refused_when_the_log_is_lost(tmp_path: Path) -> None:
    home, left = made(tmp_path / "home"), tmp_path / "left"
    await cut(home, left, MADE_IN + 100, Life(Random(SEED)))
    (left / "buffer.db-wal").unlink()
    (left / "buffer.db-progress").write_bytes(progress_left(home / "buffer.db"))
    with pytest.raises(LogLost):
        check_pair(left / STORES[0], left / STORES[1])


@pytest.mark.soak
async def test_no_start_is_refused_after_hundreds_of_cuts_of_both_stores(tmp_path: Path, figures: Figures) -> None:
    total, joined = await struck(tmp_path, SOAK_CUTS)
    figures(cuts=SOAK_CUTS, kept=total, joined=joined)
    assert joined == SOAK_CUTS
