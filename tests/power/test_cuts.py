"""Power cuts: `synchronous=FULL` loses nothing, and the same harness finds loss where there must be some."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from pathlib import Path
from random import Random

import pytest
from tests.figures import Figures

from keepsaid_testkit.power.book import Book
from keepsaid_testkit.power.cuts import CutReport, PowerCut, Tally, cuts, store_cuts
from keepsaid_testkit.power.strike import Mode, PowerPlay, strike, sweep

SEED = 20_261_121
SOAK_CUTS = 200
MADE_IN = 110
"""A new store is made in fewer changes of the disk than this."""

FIRST_PAGE_TORN = ((8, 5), (9, 5))
"""Chances that left a file once refused as another program's: half a first page, and the journal that undoes it."""


def silent(done: int, of: int) -> None:
    """Nobody watches."""


async def first_loss(folder: Path, mode: Mode) -> PowerCut:
    """The first cut that lost something, of at most 30."""
    for store in range(10):
        async for one in store_cuts(folder, mode, f"{SEED}:{store}"):
            if one.lost:
                return one
    pytest.fail("nothing was lost")


async def test_twenty_power_cuts_lose_nothing(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    report = await cuts(tmp_path, 20, SEED, lambda done, of: told.append((done, of)), controls=0)
    full = report.modes[Mode.FULL]
    assert report.findings == ()
    assert (full.cuts, full.lost, full.corrupt) == (20, 0, 0)
    assert full.acknowledged > 2_000, "the store was at work"
    assert told == [(done, 20) for done in range(1, 21)]
    assert not await asyncio.to_thread(lambda: [*tmp_path.iterdir()])


async def test_without_a_sync_for_each_commit_acknowledged_ones_are_lost(tmp_path: Path) -> None:
    lost = await first_loss(tmp_path, Mode.NORMAL)
    assert lost.corrupt == (), "what is left is whole, only older"


async def test_a_disk_that_lies_loses_what_was_acknowledged(tmp_path: Path) -> None:
    assert (await first_loss(tmp_path, Mode.LYING)).lost


async def test_a_seed_does_the_same_again(tmp_path: Path) -> None:
    first, again = [[one async for one in store_cuts(tmp_path, Mode.NORMAL, "again")] for _ in range(2)]
    assert first == again
    assert sum(one.acknowledged for one in first) > 0


async def test_a_store_cut_while_it_is_made_is_made_again(tmp_path: Path) -> None:
    for last, fate in [*((last, 0) for last in range(1, MADE_IN)), *FIRST_PAGE_TORN]:
        finding = await strike(tmp_path, last, PowerPlay(Mode.FULL, Book(), Random(f"{last}:{fate}")))
        sweep(tmp_path)
        assert (last, fate, finding.lost, finding.corrupt) == (last, fate, (), ())


def test_a_report_says_whether_the_promise_was_kept() -> None:
    fine, loss, half = Tally(8, 100), Tally(8, 100, 9), Tally(8, 100, 9, 1)
    good = CutReport({Mode.FULL: fine, Mode.NORMAL: loss, Mode.LYING: half}, ())
    assert (good.kept, good.sees) == (True, True)
    assert not CutReport({Mode.FULL: loss, Mode.NORMAL: loss, Mode.LYING: half}, ()).kept
    assert not CutReport({Mode.FULL: fine, Mode.NORMAL: half, Mode.LYING: half}, ()).kept
    assert not CutReport({Mode.FULL: fine, Mode.NORMAL: loss, Mode.LYING: fine}, ()).sees


@pytest.mark.soak
async def test_hundreds_of_cuts(tmp_path: Path, figures: Figures) -> None:
    report = await cuts(tmp_path, SOAK_CUTS, SEED, silent, controls=SOAK_CUTS)
    figures(**{mode: asdict(tally) for mode, tally in report.modes.items()})
    assert report.kept, report.findings
    assert report.sees
