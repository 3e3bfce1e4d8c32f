"""Status of a home: what waits, what was answered, what is remembered, and what is beyond its limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from keepsaid.config.settings import BufferConfig
from keepsaid.domain.retention import Backlog, PruneHistory
from keepsaid.domain.views import Overview
from keepsaid.ports import store_views
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import MemoryStore
from keepsaid.text.normal import counted, duration
from keepsaid.values import frozen

_DISABLED_MAX = 100
_MEGABYTE = 1_000_000


class StatusView(store_views.BufferView, store_views.RetentionView, Protocol):
    """Reads what a status counts of the operational store."""

    @property
    def schedules(self) -> store_views.ScheduleView:
        """What comes at a time."""


@frozen
class HostStatus:
    """What stands beside the stores: bytes free on their disk, and by server how many tools wait for acceptance."""

    free_bytes: int
    tools_waiting: Mapping[str, int]


@frozen
class Status:
    """What both stores count at a time, milliseconds UTC; `disabled` are ids of schedules that failed too often."""

    at: int
    overview: Overview
    memories: Mapping[str, int]
    backlog: Backlog
    history: PruneHistory
    next_due: int | None
    disabled: Sequence[int]
    host: HostStatus
    limits: BufferConfig

    @property
    def floor_bytes(self) -> int:
        """With fewer bytes of disk free, no message is taken in."""
        return self.limits.min_free_disk_mb * _MEGABYTE

    def age_ms(self, at: int | None) -> int | None:
        """Milliseconds from a time to that of the status."""
        return None if at is None else max(0, self.at - at)

    def warnings(self) -> Iterator[str]:
        """What is beyond its limit now, and what to run; the runtime has told it in the log."""
        oldest_ms, limits = self.age_ms(self.backlog.oldest_at), self.limits
        if self.backlog.waiting >= limits.warn_count:
            yield f"{self.backlog.waiting:,} messages wait (buffer.warn_count {limits.warn_count:,})"
        if (oldest_ms or 0) >= limits.warn_age_s * 1000:
            yield f"the oldest waits {duration(oldest_ms)} (buffer.warn_age_s {limits.warn_age_s:g})"
        if self.disabled:
            many = counted(len(self.disabled), "schedule")
            yield f"{many} failed too often and will not come again (keepsaid schedule ls)"
        for server, count in self.host.tools_waiting.items():
            yield f"{counted(count, 'tool')} of {server} not offered until you accept (keepsaid tools accept {server})"
        if self.host.free_bytes < self.floor_bytes:
            yield "too little disk is free to take messages in (buffer.min_free_disk_mb)"

    def describe(self, process: str, *, works: bool) -> str:
        """Say in a sentence how things stand, then each warning.

        `process` begins it and says which process uses the home; `works` whether there is one.
        """
        return " ".join((f"{process}{self._standing(works=works)}", *(f"Warning: {one}." for one in self.warnings())))

    def _standing(self, *, works: bool) -> str:
        seen, batches, replies = self.overview, self.overview.batches, self.overview.replies
        lost = batches.get("dead", 0), batches.get("review", 0), replies.get("dead", 0)
        wrong = [counted(number, *nouns) for number, nouns in zip(lost, _WRONG, strict=True) if number]
        if wrong:
            return f", and a person is needed: {', '.join(wrong)}."
        unrouted = sum(depth.unrouted for depth in seen.channels)
        waiting = batches.get("queued", 0) + batches.get("leased", 0)
        if not unrouted and not waiting:
            return ": nothing waits."
        left = f": {counted(unrouted, 'message')} to route and {counted(waiting, 'batch', 'batches')} to answer"
        for number, why in ((seen.deferred, "for an outage to end"), (seen.held, "to run alone after crashes")):
            left += f"; {counted(number, 'batch waits', 'batches wait')} {why}" if number else ""
        return left + ("." if works else ", kept for the next start.")


_WRONG = (
    ("dead batch", "dead batches"),
    ("batch to review", "batches to review"),
    ("reply that could not be delivered", "replies that could not be delivered"),
)


class StatusService:
    """Reads the status of a home; `look` reads what stands beside the stores, and may block."""

    def __init__(
        self,
        view: StatusView,
        memories: MemoryStore,
        clock: Clock,
        limits: BufferConfig,
        look: Callable[[], HostStatus],
    ) -> None:
        self._view = view
        self._memories = memories
        self._clock = clock
        self._limits = limits
        self._look = look

    async def read(self) -> Status:
        """Count what waits, what was answered and what is remembered. Raises StoreError."""
        view, schedules = self._view, self._view.schedules
        disabled = await schedules.schedules(("disabled",), 0, _DISABLED_MAX)
        return Status(
            self._clock.now_ms(),
            await view.overview(),
            await self._memories.counts(),
            await view.backlog(),
            await view.prune_history(),
            await schedules.next_due(),
            [one.id for one in disabled],
            await asyncio.to_thread(self._look),
            self._limits,
        )
