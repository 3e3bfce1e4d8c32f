"""Batches: messages of one lane and rule, collected in a window; priority, and deaths as evidence against one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp, log
from typing import NamedTuple, TypeVar

from keepsaid.domain import message, route
from keepsaid.values import frozen


@frozen
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

    def held_open(self, more_ms: int) -> Window:
        """A window that stays open for so long after a message, as far as it may."""
        if more_ms <= self.quiet_ms:
            return self
        return Window(self.window_ms, more_ms, self.wait_ms_max, self.count_max, self.chars_max)

    @property
    def wait_ms(self) -> int:
        """The longest a lane may collect, in milliseconds."""
        return max(self.window_ms, self.wait_ms_max)


@frozen
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
    verdict: route.Verdict
    priority: int
    task: TaskDraft | None = None


DESCRIPTION_CHARS_MAX = 50_000
"""A pending task that is described by more characters takes in more batches, but no more words."""


@frozen
class TaskDraft:
    """Work for a worker, as a `spawn` rule describes it; batches with the key of a pending task merge into it.

    `outside` says that some of it was said by others than the owner.
    """

    id: int
    key: str
    description: str
    terms: route.WorkTerms = route.WorkTerms()
    outside: bool = True


@frozen
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
    lane: message.Lane
    first: int
    last: int
    state: str
    verdict: route.Verdict
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


@frozen
class DueLane:
    """A lane whose window has closed, and what is known of the messages that wait there without reading them.

    Their numbers follow `numbered_after` up to `head`, the id of the last is `last_id`; `oldest_at` is when the
    first came, or an older one (milliseconds UTC), `priority` the best of theirs, `chars` what they hold together.
    `paused` says that the conversation is.
    """

    lane: message.Lane
    numbered_after: int
    head: int
    last_id: int
    oldest_at: int
    priority: int
    chars: int
    paused: bool = False


@frozen
class WaitingGroup:
    """Messages that wait in one lane; `numbered_after` is the last number batched, `paused` as in `DueLane`.

    `answered` are the provider's ids of the agent's own replies that the messages answer, `asked` the people whose
    answer the agent waits for there. `addressed` are the ids of those that are to the agent, by the word of the medium.
    `settled` are the provider's ids of those that edits among the messages replace, and that were answered or dropped.
    """

    lane: message.Lane
    numbered_after: int
    messages: tuple[message.StoredMessage, ...]
    paused: bool = False
    answered: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()
    addressed: frozenset[int] = frozenset()
    settled: frozenset[str] = frozenset()


T = TypeVar("T")

PEOPLE = 10
"""The priority of what people say; what has waited long enough counts as this."""

_LEAST_SHARE = 8
"""With at least this number of places, every level gets one."""


@frozen
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
    return [item for level, count in zip(levels, places, strict=True) for item in level[:count]][: max(0, limit)]


HELD_AFTER = 2
"""Deaths in a row with a batch in flight, after which it runs only alone, in a trial."""

LIVES_MAX = 64
"""The former lives of the process that are kept on record."""

STABLE_MS = 600_000
"""A process that has lived so long is stable: what crashes alone buried is queued again, once."""

ODDS = 20
"""Each charge means odds of 20 to 1 that the process dies because of the batch."""

DIED = "the process died while working on it"
"""The error of a batch that was in flight when the process died."""

SPLIT = "the process died while working on it; it was split to find the message that does it"
"""Why the turn of a batch is over, and its parts wait."""

_RATES = (10, 30, 100)
"""A poison message is assumed to raise the rate of deaths by one of these factors."""

_DEATHS_MAX = 100
_RECENT_DEATHS_MAX = 16
_BEAT_MS_MAX = 3_600_000
_LENGTHENED_MAX = 4


@frozen
class TrialTerms:
    """When a trial may begin (milliseconds).

    The process must have lived for `after_ms`, for `ratio` times as long as the last trial lasted, and half as long
    again as it had lived when it died in that trial, so that deaths at one age of the process, whatever is claimed,
    are never taken for those of a batch. No trial waits for longer than `after_ms_max`. The process first records
    that it lives at the age of `beat_ms`, and in a trial after `trial_beat_ms`: no length is known more exactly.
    """

    after_ms: int = 10_000
    ratio: int = 5
    after_ms_max: int = 3_600_000
    beat_ms: int = 1_000
    trial_beat_ms: int = 250

    def next_after_ms(self, lasted_ms: int, lived_ms: int) -> int:
        """Return how long the process must have lived for the next trial, after one that it did not survive.

        That trial lasted `lasted_ms`, and the process lived `lived_ms` in all.
        """
        wanted = max(self.ratio * lasted_ms, lived_ms * 3 // 2)
        return max(self.after_ms, min(self.after_ms_max, wanted))


class PastLife(NamedTuple):
    """How long a process lived outside the trial that ended it, if one did; `has_died` excludes that, and a stop."""

    lived_ms: int
    has_died: bool


class TrialEvidence(NamedTuple):
    """What trials showed of a batch: deaths during them, and how long these trials lasted together."""

    deaths: int = 0
    exposed_ms: int = 0


def mean_life_ms(lives: Sequence[PastLife]) -> float:
    """Return how long the process lives without a trial, from its lives in order; 0 where nothing is known.

    The estimate is the lowest of those from the last 1, 2, ... 16 deaths, so that a burst of crashes is not averaged
    away by good times before it.
    """
    lived, deaths = 0, 0
    lowest: float | None = None
    for life in reversed(lives):
        lived += life.lived_ms
        if life.has_died and deaths < _RECENT_DEATHS_MAX:
            deaths += 1
            lowest = lived / deaths if lowest is None else min(lowest, lived / deaths)
    return float(lived) if lowest is None else lowest


def charges(evidence: TrialEvidence, mean_ms: float) -> int:
    """Return how many attempts the deaths during trials are worth; never more than there were deaths.

    `mean_ms` is how long the process lives without them.
    """
    if not evidence.deaths or mean_ms <= 0:
        return 0
    share, deaths = evidence.exposed_ms / mean_ms, min(evidence.deaths, _DEATHS_MAX)
    ratio = sum(rate**deaths * exp(-(rate - 1) * share) for rate in _RATES) / len(_RATES)
    return min(deaths, int(log(ratio, ODDS))) if ratio > 1 else 0


LIFE_MS, PULSE_MS = 12_000, 2_500
"""Where processes share a store: how long one that says nothing is taken for alive, and how often each says so."""

AWAY_MS = 9_000
"""Where no process said for so long that it lives, the database was away for all of them.

A pulse less than LIFE_MS: when the database is back after less than this, no life is over; so none is ended because
another process, which spoke later before the outage, reached the database first.
"""

SURE_MS = LIFE_MS - 2 * PULSE_MS
"""How long a process that said so is sure to be taken for alive, whatever others make of the server's clock."""


@frozen
class Sharing:
    """The terms of a process that shares its store with others: it is now `at`, and the process may lead or not.

    It holds the lock of `home`: any other process that held it is dead. Times are milliseconds UTC by the clock of the
    store's server.
    """

    at: int
    may_lead: bool = True
    home: str = ""

    @property
    def until(self) -> int:
        """When the process is taken for dead, unless it says before that it lives."""
        return self.at + LIFE_MS

    @property
    def until_of_recent(self) -> int:
        """The life of a process that said within AWAY_MS that it lives is kept at least until then."""
        return self.until - AWAY_MS


def next_beat_ms(lived_ms: int, trial_ms: int | None = None, terms: TrialTerms | None = None) -> int:
    """Return at which age the process next records that it lives: at doubling ages, counted from the start in a trial.

    So an idle process writes some twenty times a day, and each length is known within a factor of two.
    """
    terms = terms or TrialTerms()
    since, first = (0, terms.beat_ms) if trial_ms is None else (trial_ms, terms.trial_beat_ms)
    return since + min(max(2 * (lived_ms - since), first), lived_ms - since + _BEAT_MS_MAX)


def trial_limit_ms(limit_ms: int, survived: int) -> int:
    """Return how long a trial may take: twice as long after each that the process survived to its limit."""
    return int(limit_ms * 2 ** min(survived, _LENGTHENED_MAX))


class FatalTrial(NamedTuple):
    """A trial during which the process died, by the age of the process: when it began, and by when it had ended."""

    began_ms: int
    ended_ms: int


@frozen
class Suspicion:
    """What deaths of the process say against a batch.

    `crashes` counts those in a row with the batch in flight, `evidence` those during trials, `charges` the attempts
    among `attempts` that these were worth. The next trial begins when the process has lived for `trial_after_ms`.
    """

    attempts: int = 0
    crashes: int = 0
    evidence: TrialEvidence = TrialEvidence()
    charges: int = 0
    trial_after_ms: int = 0

    def after_death(self, trial: FatalTrial | None, mean_ms: float, terms: TrialTerms) -> Suspicion:
        """Return the suspicion after one more death; `trial` is None unless the batch ran in a trial."""
        crashes = self.crashes + 1
        if trial is None:
            after_ms = max(self.trial_after_ms, terms.after_ms) if crashes >= HELD_AFTER else 0
            return replace(self, crashes=crashes, trial_after_ms=after_ms)
        lasted_ms = trial.ended_ms - trial.began_ms
        evidence = TrialEvidence(self.evidence.deaths + 1, self.evidence.exposed_ms + lasted_ms)
        worth = max(self.charges, charges(evidence, mean_ms))
        after_ms = terms.next_after_ms(lasted_ms, trial.ended_ms)
        return Suspicion(self.attempts + worth - self.charges, crashes, evidence, worth, after_ms)

    def in_parts(self) -> Suspicion:
        """Return the suspicion against each part of a batch that is split: what was charged is charged to none."""
        return replace(self, attempts=self.attempts - self.charges, evidence=TrialEvidence(), charges=0)


def halves(count: int) -> int:
    """Return how many messages of a batch of `count` stay in its first part when it is split."""
    return (count + 1) // 2


def notice_text(template: str, batch: str, deaths: int) -> str:
    """Return the text of a notice: `{batch}` is replaced by its name, `{deaths}` by the number of process deaths."""
    return template.replace("{batch}", batch).replace("{deaths}", str(deaths))
