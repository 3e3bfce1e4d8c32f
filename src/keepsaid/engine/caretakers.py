"""Caretakers: expired leases are returned, quiet sessions end, old rows are deleted, long lanes are summarised."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from keepsaid.domain import batch, forgetting, message, session
from keepsaid.domain.commits import BeginPruning, ExpireLeases, Prune
from keepsaid.domain.process import VoidLeases
from keepsaid.domain.retention import DAY_MS, HOUR_MS, SET_MS, Cursor, RetentionTerms, Stale
from keepsaid.errors import StoreError
from keepsaid.ports.runtime import Clock, Ids, StopToken
from keepsaid.ports.store import Store
from keepsaid.ports.store_views import Operations
from keepsaid.values import frozen

_NOTICES_MAX = 64


@frozen
class CrashNotices:
    """The notices about a batch that is dead after crashes, dead again after a retry, or parked for review.

    `{batch}` is replaced by its name, `{deaths}` by the number of times the process died.
    """

    buried: str
    buried_again: str = ""
    parked: str = ""


def _not_shared() -> None:
    """The terms on which a store is shared: none."""


@frozen
class Rescuer:
    """Ends leases that nobody keeps; `sharing` are the terms on which the store is shared now.

    `charge` is what happens to batches before: workers outside may die of one, and no crash of this process tells.
    """

    operations: Operations
    clock: Clock
    ids: Ids
    owner: str
    notices: CrashNotices
    terms: batch.TrialTerms = batch.TrialTerms()
    sharing: Callable[[], batch.Sharing | None] = _not_shared
    charge: Callable[[], Awaitable[None]] | None = None

    async def recover(self) -> tuple[int, ...]:
        """Void every lease of an owner that is dead; returns dead batches."""
        notices, now = self.notices, self.clock.now_ms()
        reply_ids = tuple(self.ids.next() for _ in range(_NOTICES_MAX))
        again = self.ids.next(), notices.buried_again, notices.parked
        void = VoidLeases(self.owner, now, notices.buried, reply_ids, self.terms, *again, self.sharing())
        return await self.operations.apply(void)

    async def rescue(self) -> int:
        """Continuously: leases that ran out; returns how many."""
        if self.charge is not None:
            await self.charge()
        return await self.operations.apply(ExpireLeases(self.clock.steady_ms()))


LOOKED_MAX = 100
"""Sessions of a kind that one commit looks at."""

_POLL_MS = 5_000
_PAUSE_MS = 20
"""Between two commits, so that intake goes first."""


class SessionExpirer:
    """Lets sessions sleep and end when their time comes; until then it only reads when that is.

    Lanes are quiet by the steady clock, so that a wall clock that was set neither ends nor keeps a session.
    """

    def __init__(self, store: Store, clock: Clock, terms: session.SessionTerms) -> None:
        self._store = store
        self._clock = clock
        self._terms = terms

    @property
    def poll_ms(self) -> int:
        """How often it is asked when the next is due: often enough that none is much later than its time."""
        return min(_POLL_MS, self._terms.sleep_ms)

    async def work(self) -> int | None:
        """Take what is due, a little at a time; returns when to come again, None when no lane is quiet yet."""
        terms, steady = self._terms, self._clock.steady_ms()
        active, sleeping = await self._store.quiet_since()
        dues = [active + terms.sleep_ms] if active is not None else []
        dues += [sleeping + terms.end_ms] if sleeping is not None else []
        if not dues:
            return None
        if min(dues) > steady and max(active or 0, sleeping or 0) <= steady:
            return self._clock.due_ms() + min(dues) - steady
        before = (steady - terms.sleep_ms, steady - terms.end_ms)
        await self._store.apply(session.Rest(*before, steady, self._clock.now_ms(), LOOKED_MAX))
        return self._clock.due_ms() + _PAUSE_MS


_log = logging.getLogger("keepsaid.pruner")
_STALLS_MAX = 3
"""Pieces that find nothing and get nowhere before a pass is given up until the next run."""


@dataclass(slots=True)
class PruneProgress:
    """One run: what it removed so far, and what is still to be looked at. `refusal` says why it removes nothing."""

    messages: int = 0
    batches: int = 0
    keys: int = 0
    events: int = 0
    refusal: str | None = None
    passes: Iterator[tuple[Stale, int]] = field(default_factory=lambda: iter(()))
    doing: tuple[Stale, int] | None = None
    after: Cursor = ()
    stalls: int = 0

    @property
    def over(self) -> bool:
        """Whether nothing is left to be looked at."""
        return self.doing is None

    def turn_to_next(self) -> None:
        """Begin the next pass, if there is one."""
        self.doing, self.after, self.stalls = next(self.passes, None), (), 0


class Pruner:
    """Removes what is settled and older than the terms say (seed 000, Retention).

    The first run is an hour after the start, then every day. A clock that was set is not believed: nothing is
    pruned while wall and steady time differ by an hour in this process, nor in a run more than 30 days after the
    last recorded one or before it; that run is only recorded, and the next one prunes.
    """

    def __init__(self, store: Store, clock: Clock, terms: RetentionTerms, halt: StopToken | None = None) -> None:
        self._store = store
        self._clock = clock
        self._terms = terms
        self._halt = halt or StopToken()
        self._next_ms = clock.steady_ms() + HOUR_MS
        self._run: PruneProgress | None = None

    async def work(self) -> int | None:
        """Prune a piece, when a run is due; returns when to come again."""
        if self._run is None:
            steady = self._clock.steady_ms()
            if steady < self._next_ms:
                return None
            self._next_ms = steady + HOUR_MS  # a store that refuses is asked again within the hour
            self._run = await self.begin()
            self._next_ms = steady + DAY_MS
        run = self._run
        if not run.over:
            await self.piece(run)
        if not run.over:
            return self._clock.due_ms() + _PAUSE_MS
        self._run = None
        await self._store.apply(forgetting.EmptyLog(whole=False))
        if run.refusal is None:
            _log.info("pruned %d messages, %d batches, %d keys", run.messages, run.batches, run.keys)
        return None

    async def begin(self) -> PruneProgress:
        """Record a run, if the clock can be believed to have gone on; it is over at once where it cannot."""
        now = self._clock.now_ms()
        if abs(now - self._clock.steady_ms()) >= SET_MS:
            return _refused("the clock was set by an hour or more since the start; the next start prunes again")
        history = await self._store.prune_history()
        await self._store.apply(BeginPruning(now))
        if (doubt := history.doubt(now)) is not None:
            return _refused(f"{doubt}; if it is right, the next run prunes")
        terms = self._terms
        passes = [(Stale.MESSAGES, now - terms.messages_ms)]
        of_records = (Stale.RECORDS, Stale.FINDINGS, Stale.TASKS, Stale.RUNS)
        passes += [(what, now - terms.records_ms) for what in of_records]
        passes.append((Stale.EVENTS, now - terms.messages_ms))
        if terms.keys_ms is not None:
            passes.append((Stale.KEYS, history.known_by(now - terms.keys_ms)))
        run = PruneProgress(passes=iter(passes))
        run.turn_to_next()
        return run

    async def piece(self, run: PruneProgress) -> None:
        """Remove one piece of a run that is not over."""
        if run.doing is None:
            return
        what, before = run.doing
        pruned = await self._store.apply(Prune(what, before, self._clock.now_ms(), run.after))
        run.messages += pruned.messages
        run.batches += pruned.batches
        run.keys += pruned.keys
        run.events += pruned.events
        moved = any((pruned.messages, pruned.batches, pruned.keys, pruned.events)) or pruned.after != run.after
        run.stalls = 0 if moved else run.stalls + 1
        if pruned.after is None or run.stalls > _STALLS_MAX:
            run.turn_to_next()
        else:
            run.after = pruned.after

    async def run(self, limit_ms: float) -> PruneProgress:
        """A run at a person's word, beside the daily ones; `limit_ms` or a stop may break it off before it is over."""
        run = await self.begin()
        until = self._clock.monotonic_ms() + limit_ms
        while not run.over and self._clock.monotonic_ms() < until and not self._halt.is_set:
            await self.piece(run)
            await self._clock.wait(asyncio.Event(), _PAUSE_MS)
        return run


def _refused(why: str) -> PruneProgress:
    _log.warning("nothing is pruned: %s", why)
    return PruneProgress(refusal=why)


_compactor_log = logging.getLogger("keepsaid.compactor")
_WAITING_MAX = 10_000


class LaneCompaction(Protocol):
    """What summarises one lane."""

    async def compact(self, lane: message.Lane, share: float = 0.0, *, at_once: bool = False) -> int:
        """Summarise a lane if it is due, or a share of its messages; returns how many summaries were made.

        `at_once` does not wait until a failed attempt may be repeated.
        """
        ...


class Compactor:
    """Works on the lanes that turns named; never more than `at_once` together, and each only once at a time.

    What is named here is a hint: it is lost with the process, and the lane's next message names it again.
    """

    def __init__(self, compaction: LaneCompaction, at_once: int = 2) -> None:
        self.hint = asyncio.Event()
        self._compaction = compaction
        self._at_once = at_once
        self._waiting: dict[message.Lane, float] = {}
        self._running: dict[message.Lane, asyncio.Task[None]] = {}

    def name(self, lane: message.Lane, share: float = 0.0) -> None:
        """A lane is due, or so full that a share of its messages has to give way."""
        if lane in self._waiting or len(self._waiting) < _WAITING_MAX:
            self._waiting[lane] = max(share, self._waiting.get(lane, 0.0))
            self.hint.set()

    async def compact_on_request(self, lane: message.Lane, *, at_once: bool = True) -> str:
        """Summarise all of a lane but its newest messages, or only if it is due; returns the outcome in words."""
        if lane in self._running or lane in self._waiting:
            return "I am busy with that already."
        made = await self._compaction.compact(lane, 1.0 if at_once else 0.0, at_once=at_once)
        return "The conversation so far was summarised." if made else "There was nothing to summarise."

    @property
    def busy(self) -> bool:
        """Whether any lane waits or is being summarised."""
        return bool(self._waiting or self._running)

    async def work(self) -> int | None:
        """Begin with as many waiting lanes as there are places for; those that end set the hint."""
        free = self._at_once - len(self._running)
        ready = [lane for lane in self._waiting if lane not in self._running][: max(0, free)]
        for lane in ready:
            task = asyncio.create_task(self._compact(lane, self._waiting.pop(lane)), name="compaction")
            self._running[lane] = task
            task.add_done_callback(partial(self._ended, lane))
        return None

    def _ended(self, lane: message.Lane, _: asyncio.Task[None]) -> None:
        del self._running[lane]
        if self._waiting:
            self.hint.set()

    async def _compact(self, lane: message.Lane, share: float) -> None:
        try:
            made = await self._compaction.compact(lane, share)
        except StoreError as error:
            _compactor_log.warning("lane not summarised: %s", error.what, extra={"code": error.code})
        except Exception as error:  # noqa: BLE001  # guard: engine loop - one lane's summary must not stop the others
            _compactor_log.error("lane not summarised", exc_info=error)
        else:
            if made:
                _compactor_log.info("lane summarised %d times", made)

    async def settled(self) -> None:
        """Wait until no lane waits or is being summarised."""
        while self.busy:
            await self.work()
            await asyncio.wait(list(self._running.values()))

    async def stop(self) -> None:
        """Leave what is not done; nothing of it is on disk."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
