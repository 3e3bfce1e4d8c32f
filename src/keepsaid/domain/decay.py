"""Decay: how the importance of a memory fades that nobody uses, by Ebbinghaus' curve (Über das Gedächtnis, 1885).

What is left after so many days is exp(-rate x days^0.8). It is the importance that fades, since the last use: what
was said long ago is as true as it was, and matters less. Each use and each piece of evidence makes the curve flatter.
What is left between two runs is the ratio of two points of one curve, so that it does not matter how often, or when,
it is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

from keepsaid.domain.memory import Kind

DAY_MS = 86_400_000
POWER = 0.8

FADING = frozenset((Kind.GOAL, Kind.DECISION, Kind.TODO, Kind.PREFERENCE, Kind.FACT, Kind.EVENT, Kind.OBSERVATION))
"""Kinds that fade. Who somebody is does not; what was said, and summaries of it, are the record and no judgement."""

_WORTH_WRITING = 0.99


@dataclass(frozen=True, slots=True)
class Curve:
    """How fast importance fades, below which it is archived, and for how many days after its last use it is not.

    At the default rate half of it is left after 84 days; a fact that nobody ever used again is archived after 414.
    """

    rate: float = 0.02
    floor: float = 0.05
    grace_days: float = 30.0


@dataclass(frozen=True, slots=True)
class Trace:
    """What fades: a memory's importance, since when it was not used, and up to when that is counted already.

    Times are milliseconds UTC. `uses` are turns that were shown it, and pieces of evidence beyond the first.
    """

    importance: float
    since: int
    counted: int | None = None
    uses: int = 0

    def at(self, now: int, curve: Curve) -> float:
        """Its importance now."""
        rate = curve.rate / (1 + log(1 + max(0, self.uses)))
        gone = self._days(now) ** POWER - self._days(self.counted or self.since) ** POWER
        return self.importance * exp(-rate * max(0.0, gone))

    def worth_counting(self, now: int, curve: Curve) -> bool:
        """Whether so much is gone that it is to be written; what is not is counted with the next."""
        left = self.at(now, curve)
        return left < _WORTH_WRITING * self.importance or self.gone(left, now, curve)

    def gone(self, left: float, now: int, curve: Curve) -> bool:
        """Whether with so much left it is to be archived."""
        return left < curve.floor and self._days(now) >= curve.grace_days

    def _days(self, at: int) -> float:
        return max(0, at - self.since) / DAY_MS
