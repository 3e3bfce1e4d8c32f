"""The report: what was killed where, how long it took to be at work again, and what the judge found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from keepsaid.values import frozen
from keepsaid_testkit.crash.points import WHEN, kind_of
from keepsaid_testkit.crash.stage import Judgement

BY_CHANCE = "at any moment"
"""The name for a kill that was aimed at no point."""


@dataclass(slots=True)
class Death:
    """One life that ended by SIGKILL, or `missed` the point it was to die at.

    `recovered_ms` is the time from the next birth to the first claim of work; None when that life died before.
    """

    point: str
    missed: bool = False
    recovered_ms: float | None = None


@frozen
class Report:
    """The result of a play.

    `restart_ms` is the time from a fresh start, imports and all, to the first claim; `struck` how often each kind of
    mixed fault did.
    """

    seed: int
    fault: str
    deaths: Sequence[Death]
    judgement: Judgement
    restart_ms: float | None
    seconds: float
    complaints: Sequence[str] = field(default_factory=tuple)
    struck: Mapping[str, int] = field(default_factory=dict)

    @property
    def missed(self) -> list[str]:
        """Points at which a life should have died and did not come to."""
        return sorted({death.point for death in self.deaths if death.missed})

    @property
    def violations(self) -> list[str]:
        """Everything that is wrong: promises broken, points not reached, errors in the runtime's log."""
        missed = [f"harness: {point} was not reached" for point in self.missed]
        return [*self.judgement.violations, *missed, *(f"log: {line}" for line in self.complaints)]

    def points(self) -> dict[str, dict[str, Any]]:
        """By point: which of K1 to K11 it is, kills, and the longest recovery in milliseconds."""
        names = sorted({death.point for death in self.deaths}, key=lambda name: (_place(kind_of(name)), name))
        return {name: self._point(name) for name in names}

    def _point(self, name: str) -> dict[str, Any]:
        deaths = [death for death in self.deaths if death.point == name]
        times = [death.recovered_ms for death in deaths if death.recovered_ms is not None]
        kills = sum(not death.missed for death in deaths)
        return {"kind": kind_of(name), "kills": kills, "recovered_ms_max": max(times, default=None)}

    def as_json(self) -> dict[str, Any]:
        """All of it, for a file."""
        return {
            "seed": self.seed,
            "fault": self.fault,
            "kills": sum(not death.missed for death in self.deaths),
            "seconds": round(self.seconds, 1),
            "restart_ms": self.restart_ms,
            "violations": self.violations,
            "points": self.points(),
            "mixed": dict(self.struck),
            "counts": self.judgement.counts,
        }

    def rows(self) -> Iterator[tuple[str, ...]]:
        """A line for each point: its kind, its name, kills, the longest recovery, and what is cut there."""
        for name, one in self.points().items():
            longest = one["recovered_ms_max"]
            cut = WHEN[one["kind"]][0] if one["kind"] else ""
            yield one["kind"] or "-", name, str(one["kills"]), "-" if longest is None else f"{longest:.0f} ms", cut


def _place(kind: str) -> int:
    return [*WHEN, ""].index(kind)
