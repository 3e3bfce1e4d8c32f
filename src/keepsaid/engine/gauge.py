"""The gauge: says once when more waits, or waits longer, than it should (seed 000, Backpressure)."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import Protocol

from keepsaid.domain.commits import Tell
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Operations
from keepsaid.ports.store_views import RetentionView

_log = logging.getLogger("keepsaid.buffer")
CODE = "KS-BACKLOG"
TOPIC = "buffer.backlog"
_CALM = 0.8
"""A warning is given again only after what it is about fell below this part of its limit."""


class GaugeStore(Operations, RetentionView, Protocol):
    """What is measured, and told to."""


@dataclass(frozen=True, slots=True)
class Marks:
    """How many messages may wait, and how long the oldest of them, in milliseconds."""

    count: int = 10_000
    age_ms: int = 600_000


class Gauge:
    """Measures what waits; each limit is warned of in the log and the journal when it is crossed."""

    def __init__(self, store: GaugeStore, clock: Clock, marks: Marks) -> None:
        self._store = store
        self._clock = clock
        self._limits = {"count": marks.count, "age": marks.age_ms}
        self._above: set[str] = set()

    async def work(self) -> None:
        """Measure once."""
        backlog, now = await self._store.backlog(), self._clock.now_ms()
        age = 0 if backlog.oldest_at is None else max(0, now - backlog.oldest_at)
        for what, found in (("count", backlog.waiting), ("age", age)):
            limit = self._limits[what]
            if found < _CALM * limit:
                self._above.discard(what)
            elif found >= limit and what not in self._above:
                payload = {"what": what, "waiting": backlog.waiting, "oldest_age_ms": age, "limit": limit}
                await self._store.apply(Tell(TOPIC, json.dumps(payload), now))
                self._above.add(what)
                told = (backlog.waiting, age / 1_000)
                _log.warning("%d messages wait, the oldest for %d s", *told, extra={"code": CODE})
