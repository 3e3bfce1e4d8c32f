"""Power cuts in numbers: the real store on a disk that forgets, cut at moments that a seed decides, and judged.

`full` is what keepsaid does, on a disk that keeps its word; it must lose nothing. `normal` (`synchronous=NORMAL`)
and `lying` (a disk that reports a sync and does nothing) must lose: they show that the harness can see a loss.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict
from itertools import count as counting
from pathlib import Path
from random import Random
from typing import Any

from keepsaid.values import frozen
from keepsaid_testkit.power.book import Book
from keepsaid_testkit.power.strike import Mode, PowerPlay, strike, sweep

CONTROLS = 8
"""How often the modes that must lose are cut, unless it is said otherwise."""

_CUTS_OF_A_STORE = 3
_CHANGES_MAX = 9_000
_CHANGES_EARLY = 150
"""A new store is made in fewer changes."""


@frozen
class PowerCut:
    """One cut: the change of the disk it struck, and how many commits were acknowledged since the cut before.

    `lost` are acknowledged commits of this store that are gone, `corrupt` says what is half there.
    """

    change: int
    acknowledged: int
    lost: tuple[str, ...] = ()
    corrupt: tuple[str, ...] = ()


@frozen
class Tally:
    """Cuts, commits acknowledged meanwhile, acknowledged commits lost, cuts that left something half there.

    Of commits those count that leave something to look for.
    """

    cuts: int = 0
    acknowledged: int = 0
    lost: int = 0
    corrupt: int = 0


@frozen
class CutReport:
    """The results of all cuts, by mode; `findings` are sentences, each with what is needed to see it again.

    Those of them are `broken` that must not be: any at FULL, and what is half there at NORMAL.
    """

    modes: Mapping[Mode, Tally]
    findings: tuple[str, ...]
    broken: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether an honest disk lost nothing at FULL, and left nothing half there at FULL or NORMAL."""
        full, normal = self.modes[Mode.FULL], self.modes[Mode.NORMAL]
        return not (full.lost or full.corrupt or normal.corrupt)

    @property
    def sees(self) -> bool:
        """Whether the harness saw loss wherever there must be some."""
        return all(self.modes[mode].lost for mode in (Mode.NORMAL, Mode.LYING) if self.modes[mode].cuts)

    @property
    def violations(self) -> list[str]:
        """What is wrong: what must not be, and a harness that saw nothing where there must be something."""
        return [*self.broken, *(() if self.sees else ("harness: it saw no loss where there must be some",))]

    def as_json(self) -> dict[str, Any]:
        """All of it, for a file: counts by mode, and every finding."""
        return {**{str(mode): asdict(tally) for mode, tally in self.modes.items()}, "findings": list(self.findings)}


async def cuts(
    folder: Path, count: int, seed: int, progress: Callable[[int, int], None], controls: int = CONTROLS
) -> CutReport:
    """Cut the power `count` times at FULL, and `controls` times in each of the other modes.

    `folder` exists and is left as it was; `progress` is called with the cuts done, and their total. The same
    seed does the same again.
    """
    wanted = dict.fromkeys(Mode, controls) | {Mode.FULL: count}
    tallies = dict.fromkeys(Mode, Tally())
    findings: list[str] = []
    broken: list[str] = []
    for mode in Mode:
        for store in counting():
            left = wanted[mode] - tallies[mode].cuts
            if left <= 0:
                break
            async for one in store_cuts(folder, mode, f"{seed}:{store}", min(left, _CUTS_OF_A_STORE)):
                tallies[mode] = _added(tallies[mode], one)
                place = f"{mode}, seed {seed}, store {store}, change {one.change}"
                findings += [f"{place}: {fault}" for fault in (*_loss(one), *one.corrupt)]
                broken += [f"{place}: {fault}" for fault in _forbidden(mode, one)]
                progress(sum(tally.cuts for tally in tallies.values()), sum(wanted.values()))
    return CutReport(tallies, tuple(findings), tuple(broken))


async def store_cuts(folder: Path, mode: Mode, seed: str, times: int = _CUTS_OF_A_STORE) -> AsyncIterator[PowerCut]:
    """Cut the power of one store, and again while it comes back or goes on, until something is lost."""
    chance = Random(f"power:{mode}:{seed}")  # noqa: S311 - repeatable, not secret
    play = PowerPlay(mode, Book(), chance)
    try:
        for _ in range(times):
            before = len(play.book.kept)
            early = chance.random() < 0.25
            last = chance.randint(1, _CHANGES_EARLY) if early else chance.randint(_CHANGES_EARLY, _CHANGES_MAX)
            finding = await strike(folder, last, play)
            yield PowerCut(last, len(play.book.kept) - before, tuple(map(str, finding.lost)), finding.corrupt)
            if finding.lost or finding.corrupt:
                return
            play.book.settle(finding.found)
    finally:
        sweep(folder)


def _added(tally: Tally, one: PowerCut) -> Tally:
    lost, corrupt = tally.lost + len(one.lost), tally.corrupt + bool(one.corrupt)
    return Tally(tally.cuts + 1, tally.acknowledged + one.acknowledged, lost, corrupt)


def _loss(one: PowerCut) -> list[str]:
    return [f"{len(one.lost)} acknowledged commits lost, the first {one.lost[0]}"] if one.lost else []


def _forbidden(mode: Mode, one: PowerCut) -> list[str]:
    """What an honest disk must not show: nothing is lost at FULL, and nothing is half there."""
    loss = _loss(one) if mode is Mode.FULL else []
    return loss if mode is Mode.LYING else [*loss, *one.corrupt]
