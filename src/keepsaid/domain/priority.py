"""Priority: lower goes first, and nothing waits for ever (design: section 4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

PEOPLE = 10
"""The priority of what people say; what has waited long enough counts as this."""

_LEAST_SHARE = 8
"""Of so many places every level gets at least one."""


@dataclass(frozen=True, slots=True)
class Ageing:
    """After how long what is worse than `PEOPLE` counts as that: pairs of a priority and milliseconds.

    A pair holds for priorities up to its own, the last one for all that are worse.
    """

    after_ms: tuple[tuple[int, int], ...] = ((50, 120_000), (100, 600_000))

    def counts_as(self, priority: int, waited_ms: int) -> int:
        """What a priority counts as after a wait."""
        if priority <= PEOPLE or not self.after_ms:
            return priority
        limit = next((ms for upto, ms in self.after_ms if priority <= upto), self.after_ms[-1][1])
        return PEOPLE if waited_ms >= limit else priority


def shared(levels: Sequence[Sequence[T]], limit: int) -> list[T]:
    """Up to `limit` items of levels, the best level first; none is so bad that it gets no place at all."""
    least = max(1, limit // _LEAST_SHARE)
    places = [min(len(level), least) for level in levels]
    left = limit - sum(places)
    for n, level in enumerate(levels):
        more = max(0, min(left, len(level) - places[n]))
        places[n] += more
        left -= more
    return _cut((item for level, count in zip(levels, places, strict=True) for item in level[:count]), limit)


def _cut(items: Iterable[T], limit: int) -> list[T]:
    return [item for item, _ in zip(items, range(max(0, limit)), strict=False)]
