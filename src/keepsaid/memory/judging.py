"""Judging: close pairs that no rule decides are ruled on, in small batches, once each, so many a day (design: 4.3).

What fills one slot with one value is merged without asking. Where no model is set up all else is left as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from keepsaid.domain.learning import Pair, Ruled, Ruling
from keepsaid.domain.upkeep import DAY_MS
from keepsaid.errors import ModelError
from keepsaid.memory.pacing import Enough, Pacing, paced
from keepsaid.ports.memory_maintenance import Judge, Pairs
from keepsaid.ports.runtime import Clock

_log = logging.getLogger("keepsaid.judging")
_EACH = 10
"""Pairs in one call, and in one commit."""

_STEPS_MAX = 200


class Judging:
    """Rules on pairs of memories; goes on behind the last that it looked at.

    On `pairs_a_day` pairs a model is asked in 24 hours, whoever has it run and however often it is started.
    """

    def __init__(self, pairs: Pairs, clock: Clock, judge: Judge | None = None, pairs_a_day: int = 100) -> None:
        self._pairs = pairs
        self._clock = clock
        self._judge = judge
        self._pairs_a_day = pairs_a_day
        self._after = 0

    async def run(self, enough: Enough = lambda: False, pacing: Pacing | None = None) -> int:
        """A pass, until it is `enough`; returns on how many pairs was ruled. What it did is kept, whatever it meets.

        With a `pacing` it rests after each batch.
        """
        ruled = 0
        for _ in range(_STEPS_MAX):
            if enough():
                break
            async with paced(pacing):
                found = await self._pairs.undecided(self._after, _EACH)
            equal = [Ruled(one.older, one.newer, Ruling.SAME) for one in found.pairs if one.equal]
            open_ = [one for one in found.pairs if not one.equal]
            asked = await self._asked(open_)
            async with paced(pacing):
                ruled += await self._pairs.rule([*equal, *(asked or ())], self._clock.now_ms())
            if asked is None:
                break
            moved, self._after = found.upto > self._after, max(self._after, found.upto)
            if not moved and not equal and not asked:
                break
        return ruled

    async def _asked(self, pairs: Sequence[Pair]) -> list[Ruled] | None:
        """What the judge rules; None where the pass has to stop before these pairs."""
        if self._judge is None or not pairs:
            return []
        since = self._clock.now_ms() - DAY_MS
        if await self._pairs.asked_since(since) + len(pairs) > self._pairs_a_day:
            return None
        try:
            rulings = await self._judge.judge(pairs)
        except ModelError as error:
            _log.warning("pairs not judged: %s", error.what, extra={"code": error.code})
            return None
        name = self._judge.name
        return [
            Ruled(one.older, one.newer, ruling, name)
            for one, ruling in zip(pairs, rulings, strict=True)
            if ruling is not None
        ]
