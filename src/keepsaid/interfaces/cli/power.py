"""Power cuts for `keepsaid prove`: how they are made here, and how what came of them is told."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from keepsaid.interfaces.cli.output import Table, counted
from keepsaid.interfaces.cli.progress import progress

if TYPE_CHECKING:
    from keepsaid.testing.power.cuts import Report

_HEADINGS = ("COMMITS", "CUTS", "ACKNOWLEDGED", "LOST", "HALF THERE", "WHAT IT IS")
_MEANING = {
    "full": "a sync for each, as keepsaid runs: nothing may be lost",
    "normal": "no sync for each: some must be lost, or this proof is blind",
    "lying": "the disk reports a sync and does nothing: some must be lost",
}


def cut(folder: Path, count: int, seed: int) -> Report:
    """Cut the power of a store in a folder of its own so many times, and of the controls that must lose."""
    from keepsaid.testing.power.cuts import CONTROLS, cuts  # noqa: PLC0415

    folder.mkdir()
    with progress(count + 2 * CONTROLS, "power cuts") as tell:
        return asyncio.run(cuts(folder, count, seed, lambda done, of: tell(done, of, "the power goes")))


def told(report: Report) -> tuple[Table, str]:
    """What came of it, for people."""
    from keepsaid.testing.power.strike import Mode  # noqa: PLC0415

    rows = [
        (mode, str(tally.cuts), f"{tally.acknowledged:,}", f"{tally.lost:,}", str(tally.corrupt), _MEANING[mode])
        for mode, tally in report.modes.items()
    ]
    broken = report.violations
    said = counted(len(broken), "violation") if broken else "nothing acknowledged was lost"
    return Table(_HEADINGS, tuple(rows)), f"{counted(report.modes[Mode.FULL].cuts, 'power cut')}: {said}"
