"""The load: people, a router and workers on one store, all by chance, the same again for the same seed.

Each wave of commits is queued while the writer waits for it, and so becomes one group, one transaction, one sync.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from keepsaid.adapters.sqlite.stores import SqliteOperations
from keepsaid.domain.batch import WaitingGroup, Window
from keepsaid.domain.commits import (
    ClaimBatches,
    Commit,
    Dispatch,
    Fail,
    Failure,
    IntakeResult,
    MarkReplyShown,
    Receive,
    Received,
    Release,
    StepEnd,
    StepStart,
    TurnCommit,
)
from keepsaid.domain.message import ProviderMarks
from keepsaid.domain.process import VoidLeases
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.route import Action
from keepsaid.domain.turn import ClaimedBatch, Lease, Usage
from keepsaid.errors import StoreBroken
from keepsaid.testing.builders import AT_ONCE, arrival, outcome, routed, said, step, verdict
from keepsaid_testkit.power.book import Book, Entry, Sign

_WAITING = Window(window_ms=30, count_max=20)
_ROOMS = 12
_LONG = 20_000
_WAVE_MS = 10
_END_OF_TIME = 1 << 60


class WaveGate:
    """Where the writer waits between two waves."""

    def __init__(self) -> None:
        self._passes = threading.Semaphore(0)
        self._open = False

    def wait(self) -> None:
        """Wait until the next wave is queued."""
        if not self._open:
            self._passes.acquire()

    def let_pass(self) -> None:
        """The next wave is queued."""
        self._passes.release()

    def open(self) -> None:
        """Never wait again."""
        self._open = True
        self._passes.release()


@dataclass(slots=True)
class _Held:
    """A batch being worked on, and the step it is at."""

    claimed: ClaimedBatch
    n: int
    started: bool = False


class Load:
    """Sends waves to a store until the power goes, and writes down what was acknowledged."""

    def __init__(self, store: SqliteOperations, gate: WaveGate, book: Book, chance: Random) -> None:
        self._store = store
        self._gate = gate
        self._book = book
        self._chance = chance
        self._now = book.last_id
        self._held: list[_Held] = []
        self._replies: list[int] = []
        self._owner = f"life {book.last_id}"

    async def run(self, waves: int) -> bool:
        """Send a number of waves; False when the power went before they were all kept."""
        first = VoidLeases(self._owner, self._now, "it could not be answered", tuple(self._new_ids(4)))
        if not await self._wave([(first, None)], first=True):
            return False
        for _ in range(waves):
            self._now += _WAVE_MS
            due = await self._store.due(self._now, 50)
            groups = await self._store.waiting([one.lane for one in due])
            wave = [*self._messages(), *self._dispatches(groups), *self._work(), *self._shown()]
            if not await self._wave(wave):
                return False
        return True

    async def _wave(self, wave: Sequence[tuple[Commit[Any], Entry | None]], *, first: bool = False) -> bool:
        self._book.doubt = tuple(entry for _, entry in wave if entry is not None)
        tasks = [asyncio.create_task(self._store.apply(commit)) for commit, _ in wave]
        await asyncio.wait(tasks, timeout=0)
        if not first:
            self._gate.let_pass()
        results: list[Any] = await asyncio.gather(*tasks, return_exceptions=True)
        broken = [result for result in results if isinstance(result, BaseException)]
        if broken:
            if not all(isinstance(error, StoreBroken) for error in broken):
                raise broken[0]
            assert len(broken) == len(results), "a wave is one transaction"
            return False
        for (commit, entry), result in zip(wave, results, strict=True):
            self._acknowledged(commit, entry, result)
            if isinstance(commit, ClaimBatches):
                await self._hold(result)
        self._book.doubt = ()
        return True

    def _acknowledged(self, commit: Commit[Any], entry: Entry | None, result: Any) -> None:
        if isinstance(result, Received):
            assert entry is None or result.intake is IntakeResult.STORED, f"new, and yet {result}"
        if entry is not None and result is not False:
            self._book.kept.append(entry.sign)
        if isinstance(commit, TurnCommit) and commit.reply is not None and result:
            self._replies.append(commit.reply.id)

    async def _hold(self, leases: Sequence[Lease]) -> None:
        for lease in leases:
            one = await self._store.claimed(lease)
            assert one is not None, "nobody takes a lease from this owner"
            finished = [step.n for step in one.steps if step.state == "finished"]
            self._held.append(_Held(one, len(finished) + 1))
            self._book.kept.append(("turn", one.turn_id))

    def _new_ids(self, count: int) -> list[int]:
        return [self._book.new_id() for _ in range(count)]

    def _messages(self) -> list[tuple[Commit[Any], Entry | None]]:
        """New messages of eight people, and some repeated."""
        chance, book = self._chance, self._book
        wave: list[tuple[Commit[Any], Entry | None]] = []
        for person in range(8):
            for _ in range(chance.randint(0, 4)):
                number = book.new_id()
                text = f"{person} says {number}" + "." * (_LONG if chance.random() < 0.05 else 0)
                inbound = said(
                    text, f"room {chance.randrange(_ROOMS)}", marks=ProviderMarks(external_id=f"key {number}")
                )
                book.sent[number] = inbound
                window = _WAITING if chance.random() < 0.3 else AT_ONCE
                wave.append((Receive(arrival(number, inbound, self._now), window), Entry(("message", number))))
        known = [sign for sign in book.kept[-40:] if sign[0] == "message"]
        if known and chance.random() < 0.3:
            inbound = book.sent[int(chance.choice(known)[1])]
            wave.append((Receive(arrival(book.new_id(), inbound, self._now), AT_ONCE), None))
        return wave

    def _dispatches(self, groups: Sequence[WaitingGroup]) -> list[tuple[Commit[Any], Entry | None]]:
        wave: list[tuple[Commit[Any], Entry | None]] = []
        for group in groups:
            batch_id, dropped_id = self._new_ids(2)
            cut = len(group.messages) if self._chance.random() < 0.8 else self._chance.randrange(len(group.messages))
            parts = [(batch_id, group.messages[:cut], Action.FORWARD), (dropped_id, group.messages[cut:], Action.DROP)]
            batches = tuple(routed(n, messages, verdict(action)) for n, messages, action in parts if messages)
            last = batches[-1].last
            sign: Sign = ("routed", *group.lane, last)
            commit = Dispatch(group.lane, group.numbered_after, batches, AT_ONCE, self._now)
            wave.append((commit, Entry(sign)))
        return wave

    def _work(self) -> list[tuple[Commit[Any], Entry | None]]:
        """What every worker does next."""
        working, self._held = self._held, []
        wave = [self._next(held) for held in working]
        if len(self._held) < 8:
            turn_ids = tuple(self._new_ids(4))
            wave.append((ClaimBatches(self._owner, 4, turn_ids, self._now, _END_OF_TIME), None))
        return wave

    def _next(self, held: _Held) -> tuple[Commit[Any], Entry | None]:
        batch, turn_id, lot = held.claimed.batch, held.claimed.turn_id, self._chance.random()
        if lot < 0.03:
            return Release(batch.id, batch.fence, self._now, deferred=True), None
        if lot < 0.06:
            return Fail(batch.id, batch.fence, Failure.RETRY, "by chance", self._now), None
        ending = StepEnd(turn_id, batch.fence, held.n, "x" * 200, Usage(1, 1), self._now)
        if not held.started:
            held.started = True
            self._held.append(held)
            start = StepStart(turn_id, batch.fence, step(held.n % 256), self._now, {"seen": [held.n]})
            return start, Entry(("step", turn_id, held.n))
        if lot < 0.4:
            self._held.append(_Held(held.claimed, held.n + 1))
            return ending, Entry(("finished", turn_id, held.n))
        reply = ReplyDraft(self._book.new_id(), f"answer of {turn_id}")
        answer = TurnCommit(turn_id, batch.id, batch.fence, outcome(reply.text), reply, self._now, ending)
        return answer, Entry(("answered", turn_id))

    def _shown(self) -> list[tuple[Commit[Any], Entry | None]]:
        shown, self._replies = self._replies[:3], self._replies[3:]
        return [(MarkReplyShown(reply_id, self._now), Entry(("shown", reply_id))) for reply_id in shown]
