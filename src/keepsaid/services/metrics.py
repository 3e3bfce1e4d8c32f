"""Metrics of a running instance: counts and durations of this process, and values read from the store at each scrape.

Source: spec doors, section g.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import product
from typing import Protocol

from keepsaid.domain.line import Line, LineState
from keepsaid.domain.metrics import (
    BUCKETS,
    BUFFERED,
    LABEL_CHARS_MAX,
    METRICS,
    OTHER,
    OUTBOX,
    TURNS_ENDED,
    Distribution,
    Metric,
    MetricKind,
    Reach,
    Reading,
    Values,
)
from keepsaid.domain.turn import Lease
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import CountView
from keepsaid.services.status import Status


class _Counted:
    """The values of one metric: a number, or counts by bucket and a sum, for each combination of labels."""

    __slots__ = ("_known", "_labels", "buckets", "metric", "numbers", "sums")

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.numbers: dict[tuple[str, ...], float] = {}
        self.buckets: dict[tuple[str, ...], list[int]] = {}
        self.sums: dict[tuple[str, ...], float] = {}
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._labels = BoundedLabels(metric)
        if all(label.values for label in metric.labels):  # they begin at 0: the first one is an increase too
            for labels in product(*(label.values for label in metric.labels)):
                self.begin(labels)

    def begin(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """The labels as they are counted, with a value from now on."""
        if (kept := self._known.get(labels)) is not None:
            return kept
        kept = self._labels.bounded(labels)
        if len(self._known) < self.metric.combinations_max:  # what lies beyond is bounded each time
            self._known[labels] = kept
        if self.metric.kind is MetricKind.HISTOGRAM:
            self.buckets.setdefault(kept, [0] * (len(BUCKETS) + 1))
            self.sums.setdefault(kept, 0.0)
        else:
            self.numbers.setdefault(kept, 0.0)
        return kept

    def values(self) -> Values:
        """A copy of what was counted."""
        if self.metric.kind is MetricKind.HISTOGRAM:
            return {labels: Distribution(tuple(counts), self.sums[labels]) for labels, counts in self.buckets.items()}
        return dict(self.numbers)


class BoundedLabels:
    """Keeps the values of a metric's labels within their bounds: what comes beyond is `other`."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._seen: tuple[set[str], ...] = tuple(set(label.values) for label in metric.labels)
        self._lines: set[tuple[str, ...]] = set()

    def bounded(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """The values as they may be printed, in the order of the metric's labels."""
        kept = tuple(self._value(n, value) for n, value in enumerate(labels))
        if kept not in self._lines and len(self._lines) >= self._metric.combinations_max - 1:
            return (OTHER,) * len(kept)
        self._lines.add(kept)
        return kept

    def _value(self, n: int, value: str) -> str:
        seen, label = self._seen[n], self._metric.labels[n]
        value = value[:LABEL_CHARS_MAX]
        if value in seen:
            return value
        if len(seen) >= label.most:  # 0 for a label whose values are all known
            return OTHER
        seen.add(value)
        return value


class ProcessMetrics:
    """Counts and durations of this process, by the names of the catalogue. Called on the event loop alone."""

    def __init__(self) -> None:
        processes = (one for one in METRICS.values() if one.reach is Reach.PROCESS)
        self._counted = {one.name: _Counted(one) for one in processes}

    def add(self, name: str, labels: tuple[str, ...] = (), amount: float = 1.0) -> None:
        """Raise a counter."""
        counted = self._counted[name]
        counted.numbers[counted.begin(labels)] += amount

    def observe(self, name: str, seconds: float, labels: tuple[str, ...] = ()) -> None:
        """Count a duration; one below 0 counts as 0."""
        counted = self._counted[name]
        kept, seconds = counted.begin(labels), max(0.0, seconds)
        counted.buckets[kept][bisect_left(BUCKETS, seconds)] += 1
        counted.sums[kept] += seconds

    def read(self) -> dict[str, Values]:
        """The values of every metric of this process that has any."""
        return {name: values for name, one in self._counted.items() if (values := one.values())}


class CountedStore(CountView, Protocol):
    """Reads what metrics count of the operational store beside its status."""

    async def expired(self, at: int) -> Sequence[Lease]:
        """The first leases of batches that have run out by a time of the steady clock, a hundred at most."""


class MetricsService:
    """Reads all metrics of an instance.

    `read_status` reads its status, `read_logs` the bytes of each write-ahead log, by store; it may block.
    """

    def __init__(
        self,
        process: ProcessMetrics,
        store: CountedStore,
        clock: Clock,
        read_status: Callable[[], Awaitable[Status]],
        read_logs: Callable[[], Mapping[str, int]],
    ) -> None:
        self._process = process
        self._store = store
        self._clock = clock
        self._read_status = read_status
        self._read_logs = read_logs
        self._lost = 0

    async def read(self, version: str) -> Reading:
        """Every metric that has a value now; `version` is that of the program. Raises StoreError."""
        status = await self._read_status()
        self._lost = max(self._lost, await self._store.lost())
        values: dict[str, Values] = {
            "keepsaid_build_info": {(version,): 1.0},
            "keepsaid_lost_total": {(): float(self._lost)},
            "keepsaid_messages_received_total": _bounded(
                "keepsaid_messages_received_total", _by_name(await self._store.received())
            ),
            "keepsaid_leases": await self._leases(status),
            "keepsaid_wal_bytes": _by_name(await asyncio.to_thread(self._read_logs)),
        }
        values |= {name: _bounded(name, found) for name, found in of_status(status)}
        return Reading(values | self._process.read())

    async def _leases(self, status: Status) -> Values:
        expired = len(await self._store.expired(self._clock.steady_ms()))
        held = max(0, status.overview.batches.get("leased", 0) - expired)
        return {("held",): float(held), ("expired",): float(expired)}


def _by_name(found: Mapping[str, int]) -> dict[tuple[str, ...], float]:
    return {(name,): float(n) for name, n in sorted(found.items())}


def _bounded(name: str, found: Mapping[tuple[str, ...], float]) -> Values:
    """Values with their labels within the bounds; those that share the labels `other` are added up."""
    labels = BoundedLabels(METRICS[name])
    values: dict[tuple[str, ...], float] = {}
    for given, value in found.items():
        kept = labels.bounded(given)
        values[kept] = values.get(kept, 0.0) + value
    return values


def of_status(status: Status) -> Iterator[tuple[str, Mapping[tuple[str, ...], float]]]:
    """What a status counts, by metric."""
    seen = status.overview
    yield (
        "keepsaid_buffer_messages",
        {(one.channel, state): float(getattr(one, state)) for one in seen.channels for state in BUFFERED},
    )
    ages: dict[tuple[str, ...], float] = {
        (one.channel,): (status.age_ms(one.waiting_since) or 0) / 1_000 for one in seen.channels
    }
    yield "keepsaid_buffer_oldest_seconds", ages
    yield "keepsaid_turns_total", _by_name({name: seen.turns.get(name, 0) for name in TURNS_ENDED})
    yield "keepsaid_outbox_messages", _by_name({name: seen.replies.get(name, 0) for name in OUTBOX})
    yield "keepsaid_memories", {(kind, "active"): float(n) for kind, n in sorted(status.memories.items())}
    lines: dict[tuple[str, ...], Line] = {(one.channel, one.account): one for one in status.host.lines}
    yield "keepsaid_line_up", {where: float(one.state is LineState.UP) for where, one in lines.items()}
    last_ok = {where: one.last_ok / 1_000 for where, one in lines.items() if one.last_ok}
    yield "keepsaid_line_last_ok_timestamp_seconds", last_ok
