"""Status of a home: what waits, what was answered, what is remembered, and what is beyond its limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from keepsaid.config.settings import BufferConfig
from keepsaid.domain.event import DeliveryLine
from keepsaid.domain.ids import show
from keepsaid.domain.line import Line
from keepsaid.domain.pairing import Pairing
from keepsaid.domain.retention import DAY_MS, Backlog, PruneHistory
from keepsaid.domain.session import CollectionLine
from keepsaid.domain.views import Overview
from keepsaid.ports import store_views
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import MemoryStore
from keepsaid.text.normal import counted, duration
from keepsaid.values import frozen

_LISTED_MAX = 100
_MEGABYTE = 1_000_000
_FETCHED_WITHIN_MS = DAY_MS
"""A reply that waits longer needs attention."""


class StatusView(
    store_views.BufferView, store_views.RetentionView, store_views.OutboxView, store_views.CollectionView, Protocol
):
    """Reads what a status counts of the operational store."""

    @property
    def journal(self) -> store_views.JournalView:
        """Deliveries of events to subscribers."""

    @property
    def schedules(self) -> store_views.ScheduleView:
        """What comes at a time."""

    @property
    def pairings(self) -> store_views.PairingView:
        """Who was sent a code."""


@frozen
class HostStatus:
    """What stands beside the stores: bytes free on their disk, by server how many tools wait for acceptance, by
    extension why it is quarantined, by server of tools why it cannot be used, and by extension what of it does not work
    (`noted`). A runtime wrote down these three. `server` is the database server that holds the stores, "" where files
    do: the disk is that of the home then. `lines` are those of channels that listen, while a runtime is up.
    """

    free_bytes: int
    tools_waiting: Mapping[str, int]
    quarantined: Mapping[str, str] = field(default_factory=dict)
    unreachable: Mapping[str, str] = field(default_factory=dict)
    noted: Mapping[str, str] = field(default_factory=dict)
    server: str = ""
    lines: Sequence[Line] = ()


@frozen
class Concern:
    """Something that needs attention, and the command that shows it or puts it right; "" where none does."""

    what: str
    command: str = ""

    def __str__(self) -> str:
        return f"{self.what} ({self.command})" if self.command else self.what


@frozen
class Status:
    """What both stores count at a time, milliseconds UTC.

    `disabled` are ids of schedules that failed too often, `parked` sessions whose extraction did, `undelivered` events
    that a subscriber could not be sent; `unfetched` counts replies that wait to be fetched or sent for more than a day.
    `pairings` are people whose code holds.
    """

    at: int
    overview: Overview
    memories: Mapping[str, int]
    backlog: Backlog
    history: PruneHistory
    next_due: int | None
    disabled: Sequence[int]
    host: HostStatus
    limits: BufferConfig
    parked: Sequence[CollectionLine] = ()
    undelivered: Sequence[DeliveryLine] = ()
    unfetched: Backlog = Backlog(0)
    pairings: Sequence[Pairing] = ()

    @property
    def floor_bytes(self) -> int:
        """With fewer bytes of disk free, no message is taken in."""
        return self.limits.min_free_disk_mb * _MEGABYTE

    def age_ms(self, at: int | None) -> int | None:
        """Milliseconds from a time to that of the status."""
        return None if at is None else max(0, self.at - at)

    def concerns(self) -> Iterator[Concern]:
        """What needs attention, that which holds up messages first; `doctor` shows the same."""
        yield from self._of_messages()
        yield from self._of_processes()
        yield from self._of_upkeep()
        oldest_ms, limits = self.age_ms(self.backlog.oldest_at), self.limits
        if self.backlog.waiting >= limits.warn_count:
            many = counted(self.backlog.waiting, "message waits", "messages wait")
            yield Concern(f"{many}; buffer.warn_count is {limits.warn_count:,}", "keepsaid inbox ls")
        if (oldest_ms or 0) >= limits.warn_age_s * 1000:
            what = f"the oldest message waits {duration(oldest_ms)}; buffer.warn_age_s is {limits.warn_age_s:g}"
            yield Concern(what, "keepsaid inbox ls")
        if self.host.free_bytes < self.floor_bytes:
            what = f"{self.host.free_bytes / 1e9:.1f} GB of disk are free; below buffer.min_free_disk_mb"
            yield Concern(f"{what} no message is taken in")

    def _of_messages(self) -> Iterator[Concern]:
        seen = self.overview
        for number, nouns, command in (
            (seen.batches.get("dead", 0), ("dead batch", "dead batches"), "inbox ls --state dead"),
            (seen.batches.get("review", 0), ("batch to review", "batches to review"), "inbox ls --state review"),
            (seen.replies.get("dead", 0), _UNDELIVERED, "inbox ls --reply dead"),
            (
                seen.tasks.get("needs_review", 0),
                ("task to review", "tasks to review"),
                "inbox tasks ls --state needs_review",
            ),
        ):
            if number:
                yield Concern(counted(number, *nouns), f"keepsaid {command}")
        if seen.held:
            many = counted(seen.held, "batch waits", "batches wait")
            what = f"{many} to run alone: the program died at least twice in a row while it worked on each"
            yield Concern(what, f"keepsaid inbox why {show('batch', seen.held_first)}")
        for one in seen.paused:
            place, since = f"{one.conversation} on {one.channel}", duration(self.age_ms(one.since))
            many = counted(one.waiting, "message waits", "messages wait")
            yield Concern(f"conversation {place} is paused for {since}, and {many} there; /resume ends that")
        for pairing in self.pairings:
            called = f" ({pairing.name})" if pairing.name else ""
            what = f"{pairing.who.person}{called} is not let in, and was sent the code {pairing.code}"
            yield Concern(what, f"keepsaid channel approve {pairing.code}")
        if self.unfetched.waiting:
            many, age = counted(self.unfetched.waiting, "reply", "replies"), self.age_ms(self.unfetched.oldest_at)
            what = f"{many} not fetched or sent yet, the oldest for {duration(age)}"
            yield Concern(what, "keepsaid inbox ls --reply pending")

    def _of_processes(self) -> Iterator[Concern]:
        processes = self.overview.processes
        for one in processes:
            if one.is_silent:
                silent = duration(self.age_ms(one.kept_until))
                yield Concern(f"process {one.owner} was killed, or lost the database, {silent} ago")
        if processes and not any(one.leads for one in processes):
            what = "no process leads: nobody sends replies, runs schedules or keeps memory up"
            yield Concern(what, "keepsaid serve --role all")
        for line in self.host.lines:
            if not line.works:
                since = duration(self.age_ms(line.since))
                what = f"{line.channel} ({line.account}) is {line.state} for {since}: {line.reason}"
                yield Concern(what, "keepsaid data logs --level warning")

    def _of_upkeep(self) -> Iterator[Concern]:
        if self.parked:
            what = f"memory extraction failed too often for {_at_least(self.parked, 'session')}"
            yield Concern(what, "keepsaid memory extract ls --state parked")
        if self.disabled:
            what = f"{_at_least(self.disabled, 'schedule')} disabled after too many failures"
            yield Concern(what, "keepsaid schedule ls")
        if self.undelivered:
            many = _at_least(self.undelivered, "event")
            yield Concern(f"{many} could not be delivered to a subscriber", "keepsaid ext events dead")
        for name, reason in self.host.quarantined.items():
            yield Concern(f"extension {name} is quarantined: {reason}", f"keepsaid ext show {name}")
        for name, what in self.host.noted.items():
            yield Concern(f"extension {name}: {what}", f"keepsaid ext show {name}")
        for server, reason in self.host.unreachable.items():
            yield Concern(f"tools of {server} are missing: {reason}", "keepsaid ext tools ls")
        for server, count in self.host.tools_waiting.items():
            many = counted(count, "tool")
            yield Concern(f"{many} of {server} not offered until you accept", f"keepsaid ext tools accept {server}")

    def describe(self, process: str, *, works: bool, asking: int = 0) -> str:
        """Say what waits, then how many things need attention (`concerns`).

        `process` begins it and says which process uses the home; `works` whether there is one. `asking` is the number
        of batches that only ask for this: they are not counted.
        """
        standing, concerns = f"{process}: {self._standing(asking, works=works)}", len([*self.concerns()])
        return f"{standing} {counted(concerns, 'thing needs', 'things need')} attention." if concerns else standing

    def channels_waiting(self) -> Iterator[str]:
        """One line for each channel in which messages wait for a turn or for a person."""
        for one in self.overview.channels:
            parts = []
            if one.unrouted or one.queued:
                counts = f"unrouted {one.unrouted:,}, queued {one.queued:,}, leased {one.leased:,}"
                parts.append(f"{counts}, oldest {duration(self.age_ms(one.waiting_since))}")
            if one.for_person:
                oldest = duration(self.age_ms(one.person_at))
                parts.append(f"review {one.review:,}, dead {one.dead:,}, oldest {oldest}")
            if parts:
                yield f"{one.channel}: {'; '.join(parts)}"

    def _standing(self, asking: int, *, works: bool) -> str:
        seen, batches = self.overview, self.overview.batches
        unrouted = sum(depth.unrouted for depth in seen.channels)
        waiting = max(0, batches.get("queued", 0) + batches.get("leased", 0) - asking)
        if not unrouted and not waiting:
            return "nothing waits."
        left = " and ".join(
            f"{counted(number, *nouns)} to {verb}"
            for number, nouns, verb in (
                (unrouted, ("message", "messages"), "route"),
                (waiting, ("batch", "batches"), "answer"),
            )
            if number
        )
        if seen.deferred:
            left += f" ({'when' if seen.deferred == waiting else f'{seen.deferred:,} of them when'} an outage ends)"
        return left + ("." if works else ", kept for the next start.")


def _at_least(listed: Sequence[object], noun: str) -> str:
    """How many there are, as far as they were listed."""
    return f"{'at least ' if len(listed) >= _LISTED_MAX else ''}{counted(len(listed), noun)}"


_UNDELIVERED = ("reply that could not be delivered", "replies that could not be delivered")


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
        view, at = self._view, self._clock.now_ms()
        disabled = await view.schedules.schedules(("disabled",), 0, _LISTED_MAX)
        return Status(
            at,
            await view.overview(),
            await self._memories.counts(),
            await view.backlog(),
            await view.prune_history(),
            await view.schedules.next_due(),
            [one.id for one in disabled],
            await asyncio.to_thread(self._look),
            self._limits,
            await view.collections(("parked",), _LISTED_MAX),
            await view.journal.deliveries(("dead",), "", _LISTED_MAX),
            await view.unfetched(at - _FETCHED_WITHIN_MS),
            [one for one in await view.pairings.everybody(_LISTED_MAX) if one.code and one.until > at],
        )
