"""Batches: messages of one lane and rule, collected in a window, and their priority (design: section 4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from keepsaid.domain.lane import Lane
from keepsaid.domain.message import StoredMessage
from keepsaid.domain.route import Verdict
from keepsaid.domain.work import WorkTerms


@dataclass(frozen=True, slots=True)
class Window:
    """How long a lane collects: from its first message, longer while more come, never beyond the limits.

    All times in milliseconds. `count_max` and `chars_max` bound one batch.
    """

    window_ms: int = 500
    quiet_ms: int = 0
    wait_ms_max: int = 5_000
    count_max: int = 100
    chars_max: int = 60_000

    def due_at(self, oldest: int, newest: int) -> int:
        """When the window closes, for a lane whose waiting messages came between `oldest` and `newest`."""
        return min(max(oldest + self.window_ms, newest + self.quiet_ms), oldest + self.wait_ms)

    @property
    def wait_ms(self) -> int:
        """The longest a lane may collect, in milliseconds."""
        return max(self.window_ms, self.wait_ms_max)


@dataclass(frozen=True, slots=True)
class Routed:
    """A batch as the router decided it: the numbers of its first and last message, and the verdict.

    `first_at` is when the first came, or an older one, in milliseconds UTC, `last_id` the id of the last.
    """

    id: int
    first: int
    last: int
    first_at: int
    last_id: int
    chars: int
    verdict: Verdict
    priority: int
    task: TaskDraft | None = None


DESCRIPTION_CHARS_MAX = 50_000
"""A pending task that is described by more characters takes in more batches, but no more words."""


@dataclass(frozen=True, slots=True)
class TaskDraft:
    """Work for a worker, as a `spawn` rule describes it; batches with the key of a pending task merge into it.

    `outside` says that some of it was said by others than the owner.
    """

    id: int
    key: str
    description: str
    terms: WorkTerms = WorkTerms()
    outside: bool = True


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """A stored batch and its lease.

    `fence` only grows; a write with an old fence is refused. `crashes` counts the processes that died
    in a row while it was in flight, `attempts` what was charged to it, `deferrals` how often an outage
    sent it back, from `deferred_from` on. `error` is what went wrong last, `ready_at` when a queued batch may be
    tried (milliseconds UTC). A batch in flight at several crashes runs alone, once the process has lived for
    `trial_after_ms`; `survived` counts such trials that came to their time limit.
    Its messages are gone, or going, since `pruned_at`.
    """

    id: int
    lane: Lane
    first: int
    last: int
    state: str
    verdict: Verdict
    priority: int
    fence: int = 0
    attempts: int = 0
    crashes: int = 0
    deferrals: int = 0
    created_at: int = 0
    error: str = ""
    ready_at: int = 0
    pruned_at: int | None = None
    deferred_from: int | None = None
    trial_after_ms: int = 0
    survived: int = 0


@dataclass(frozen=True, slots=True)
class DueLane:
    """A lane whose window has closed, and what is known of the messages that wait there without reading them.

    Their numbers follow `numbered_after` up to `head`, the id of the last is `last_id`; `oldest_at` is when the
    first came, or an older one (milliseconds UTC), `priority` the best of theirs, `chars` what they hold together.
    """

    lane: Lane
    numbered_after: int
    head: int
    last_id: int
    oldest_at: int
    priority: int
    chars: int


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """Messages that wait in one lane; `numbered_after` is the last number batched."""

    lane: Lane
    numbered_after: int
    messages: tuple[StoredMessage, ...]


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
