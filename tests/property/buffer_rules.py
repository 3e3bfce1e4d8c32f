"""What may happen to a store, at random: arrivals, routing, turns, failures, crashes, and replies that leave."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from tests.property.buffer_model import RULES, WINDOW, Work, first_word, runs
from tests.property.crash_model import LIVED_MS, CrashPlan

from keepsaid.domain.batch import Routed, TaskDraft
from keepsaid.domain.commits import (
    ATTEMPTS_MAX,
    ClaimBatches,
    Commit,
    Dispatch,
    Doubt,
    Drop,
    ExpireLeases,
    Fail,
    Failure,
    IntakeResult,
    Receive,
    Received,
    Release,
    Renew,
    Requeue,
    StepEnd,
    StepStart,
    TurnCommit,
)
from keepsaid.domain.message import BodyKey, Inbound, ProviderMarks, StoredMessage
from keepsaid.domain.process import Relinquish, VoidLeases
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.reply import Delivered, ReplyDraft
from keepsaid.domain.turn import ClaimedBatch, Usage
from keepsaid.testing.builders import arrival, outcome, routed, said, step, verdict
from keepsaid_testkit.contracts.store_driver import ContractStore

R = TypeVar("R")
LEASE_MS = 250
BODY_MS = 1_000
PICK = st.integers(0, 63)
DELAY = st.sampled_from([0, 0, 50, 200])
_CALLS = ["step", "step", "unrepeatable step"]
DEEDS = [*_CALLS, "answer", "answer", "be silent", "release", "defer", "survive", "renew", *Failure, Failure.RETRY]
DEED = st.tuples(st.sampled_from(DEEDS), PICK)
SETTLED = {
    Delivered.CONFIRMED: "sent",
    Delivered.RETRY: "pending",
    Delivered.DOUBT: "unknown",
    Delivered.DEAD: "dead",
    Delivered.REFUSED: "not_deliverable",
}


@dataclass(frozen=True)
class Draft:
    """Something a person says."""

    word: str
    room: str
    priority: int
    topic: str | None
    keyed: bool


DRAFT = st.builds(
    Draft,
    word=st.sampled_from(["talk", "talk", *RULES]),
    room=st.sampled_from("abc"),
    priority=st.sampled_from([10, 50]),
    topic=st.sampled_from([None, None, "t"]),
    keyed=st.booleans(),
)


class Walk(RuleBasedStateMachine):
    """One store, and the lists it is held against; `met` counts what walks seldom meet."""

    met: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.ids = count(1)
        self.now = 1_000
        self.lives = 0
        self.plan = CrashPlan()
        self.claims: list[ClaimedBatch] = []
        self.begun_under: dict[int, int] = {}
        self.store = self.open()
        self.apply(VoidLeases(self.owner, self.now, "", ()))

    def open(self) -> ContractStore:
        """Open the store, or open it again."""
        raise NotImplementedError

    def shut(self) -> None:
        """Close it."""

    def teardown(self) -> None:
        self.shut()
        self.runner.close()

    def run(self, reading: Coroutine[Any, Any, R]) -> R:
        """Wait for a result."""
        return self.runner.run(reading)

    def apply(self, commit: Commit[R]) -> R:
        """Commit."""
        return self.run(self.store.apply(commit))

    @property
    def owner(self) -> str:
        """The process that lives now."""
        return f"life {self.lives}"

    def receive(self, inbound: Inbound) -> Received:
        """Knock at the door."""
        key = BodyKey(inbound.body_hash, self.now + BODY_MS) if inbound.marks.external_id else None
        return self.apply(Receive(arrival(next(self.ids), inbound, self.now)._replace(body=key), WINDOW))


class Arrivals(Walk):
    """Messages come and are routed."""

    def hear(self, draft: Draft) -> None:
        """A new message is stored at the end of its lane."""
        key = f"key {next(self.ids)}" if draft.keyed else None
        inbound = said(f"{draft.word} {next(self.ids)}", draft.room, marks=ProviderMarks(key), priority=draft.priority)
        inbound = replace(inbound, topic=draft.topic)
        received = self.receive(inbound)
        number = 1 + sum(message.lane == inbound.lane for message in self.plan.messages)
        assert (received.intake, received.lane, received.number) == (IntakeResult.STORED, inbound.lane, number)
        self.plan.messages.append(StoredMessage(received.id, inbound.lane, number, inbound, self.now))

    @precondition(lambda self: any(m.inbound.key_hash for m in self.plan.messages))
    @rule(pick=PICK, same=st.booleans())
    def hear_again(self, pick: int, same: bool) -> None:
        """A key that was used stores nothing."""
        keyed = [message for message in self.plan.messages if message.inbound.key_hash]
        first = keyed[pick % len(keyed)]
        content = first.inbound.content if same else said("talk of something else").content
        received = self.receive(replace(first.inbound, content=content))
        expected = IntakeResult.DUPLICATE if same else IntakeResult.CONFLICT
        number = 0 if first.id in self.plan.gone else first.number
        assert received == Received(expected, first.id, first.lane, number)

    @precondition(lambda self: any(self.counts(message) for message in self.plan.messages))
    @rule(pick=PICK, event=st.sampled_from(["", "issues"]))
    def hear_body_again(self, pick: int, event: str) -> None:
        """A body that still counts stores nothing, whatever its delivery id and event."""
        counting = [message for message in self.plan.messages if self.counts(message)]
        first = counting[pick % len(counting)]
        content = replace(first.inbound.content, event=event)
        received = self.receive(replace(first.inbound, content=content, marks=ProviderMarks(f"again {next(self.ids)}")))
        number = 0 if first.id in self.plan.gone else first.number
        assert received == Received(IntakeResult.DUPLICATE, first.id, first.lane, number)

    def counts(self, message: StoredMessage) -> bool:
        """Whether the same body would be a duplicate now."""
        return message.inbound.key_hash is not None and self.now < message.received_at + BODY_MS

    @precondition(lambda self: any(self.plan.waiting(lane) for lane in self.plan.lanes))
    @rule(ms=st.integers(0, 300), latecomer=st.none() | DRAFT, twice=st.booleans())
    def tick(self, ms: int, latecomer: Draft | None, twice: bool) -> None:
        """What is due by then is routed, once; what comes meanwhile waits on."""
        self.now += ms
        due = self.run(self.store.due(self.now, 100))
        groups = self.run(self.store.waiting([one.lane for one in due]))
        assert {group.lane: list(group.messages) for group in groups} == self.plan.due(self.now)
        best = [min(message.inbound.priority for message in group.messages) for group in groups]
        assert best == sorted(best)
        for group in groups:
            if latecomer is not None:
                self.hear(replace(latecomer, room=group.lane.conversation))
            batches = tuple(self.routed(run) for run in runs(group.messages))
            dispatch = Dispatch(group.lane, group.numbered_after, batches, WINDOW, self.now)
            assert self.apply(dispatch)
            assert not (twice and self.apply(dispatch))
            for batch, run in zip(batches, runs(group.messages), strict=True):
                self.plan.route(batch.id, run, self.now)

    def routed(self, run: list[StoredMessage]) -> Routed:
        """A run as the router decides it."""
        word = first_word(run[0])
        task = TaskDraft(next(self.ids), f"work of {run[0].lane.conversation}", "do it")
        by = verdict(RULES[word], word)
        return routed(next(self.ids), run, by, task if word == "work" else None)


class Turns(Arrivals):
    """Batches are claimed, worked on and settled."""

    def claim(self, limit: int) -> None:
        """The best of what is ready, and nothing else."""
        expected = self.plan.claimable(self.now, limit)
        turn_ids = tuple(next(self.ids) for _ in range(limit))
        until = self.now + LEASE_MS
        leases = self.apply(ClaimBatches(self.owner, limit, turn_ids, self.now, until, lived_ms=LIVED_MS))
        claimed = [one for lease in leases if (one := self.run(self.store.claimed(lease))) is not None]
        assert sorted(one.batch.id for one in claimed) == sorted(work.id for work in expected)
        for one in claimed:
            work = next(work for work in expected if work.id == one.batch.id)
            assert one.turn_id == work.turn_id or (work.turn_id is None and one.turn_id in turn_ids)
            self.plan.lease(work, self.owner, one.turn_id, self.now + LEASE_MS)
            assert list(one.messages) == work.messages
            assert [recorded.state for recorded in one.steps] == work.steps
            assert (one.batch.fence, one.alone) == (work.fence, work.alone)
            shown = [(joined.id, joined.steered_at, tuple(joined.messages)) for joined in self.plan.joined(work)]
            assert [(joined.batch_id, joined.n, joined.messages) for joined in one.steered] == shown
        self.claims += claimed

    @rule(drafts=st.lists(DRAFT, min_size=1, max_size=3), ms=st.integers(0, 200), limit=st.integers(0, 3))
    def talk(self, drafts: list[Draft], ms: int, limit: int) -> None:
        """People talk, and what they say goes its way; Hypothesis rarely finds the whole way by itself."""
        for draft in drafts:
            self.hear(draft)
        self.tick(ms, None, twice=False)
        if limit:
            self.claim(limit)

    @precondition(lambda self: self.plan.leased() or self.plan.ready())
    @rule(ms=st.integers(0, 100), limit=st.integers(0, 3), deeds=st.lists(DEED, min_size=2, max_size=8), delay=DELAY)
    def work(self, ms: int, limit: int, deeds: list[tuple[str, int]], delay: int) -> None:
        """Something is claimed, and a few things are done to what is in flight."""
        self.now += ms
        if limit:
            self.claim(limit)
        for deed, pick in deeds:
            leased = self.plan.leased()
            if leased:
                self.do(deed, leased[pick % len(leased)], delay)

    def do(self, deed: str, work: Work, delay: int) -> None:
        """One of them."""
        if deed in ("step", "unrepeatable step"):
            self.step(work, repeatable=deed == "step")
        elif deed in ("answer", "be silent"):
            self.commit(work, replies=deed == "answer")
        elif deed in ("release", "defer"):
            self.release(work, delay, deferred=deed == "defer")
        elif deed == "survive":
            self.survive(work, delay)
        elif deed == "renew":
            work.lease_until = self.now + LEASE_MS
            assert self.apply(Renew(work.id, work.fence, work.lease_until))
        else:
            self.fail(work, Failure(deed), delay)

    def step(self, work: Work, *, repeatable: bool) -> None:
        """Start a call, or end it; what nobody knows the end of is made again, or parked if it must not be."""
        assert work.turn_id is not None
        n = len(work.steps)
        if work.steps and work.steps[-1] == "started":
            if n in work.unrepeatable and self.begun_under[work.turn_id] != work.fence:
                self.met["doubt"] += 1
                self.fail(work, Failure.PARK, 0)
                return
            if n not in work.unrepeatable:
                assert self.apply(StepStart(work.turn_id, work.fence, step(n), self.now))
            assert self.apply(StepEnd(work.turn_id, work.fence, n, f"output {n}", Usage(1, 1), self.now))
            work.steps[-1] = "finished"
            return
        if work.steps:
            assert not self.apply(StepStart(work.turn_id, work.fence, step(n), self.now))
        call = replace(step(n + 1), repeatable=repeatable)
        if not repeatable:
            self.plan.begin_unrepeatable(work)
            self.begun_under[work.turn_id] = work.fence
        assert self.apply(StepStart(work.turn_id, work.fence, call, self.now))
        work.steps.append("started")

    def commit(self, work: Work, *, replies: bool) -> None:
        """A turn ends, in the order of its lane."""
        assert work.turn_id is not None
        before = [w for w in self.plan.work_of(work.lane) if w.messages[0].number < work.messages[0].number]
        assert work.requeued or not any(w.state in ("queued", "leased") and not w.requeued for w in before)
        draft, joined = ReplyDraft(next(self.ids), f"re {work.id}"), self.plan.joined(work)
        heard = [Record(Role.USER, m.text, ref=f"message:{m.id}") for one in joined for m in one.messages]
        how = replace(outcome(draft.text), records=(*heard, *outcome(draft.text).records))
        end = TurnCommit(work.turn_id, work.id, work.fence, how, draft if replies else None, self.now)
        if joined:
            self.met["settled together"] += 1
            assert not self.apply(end), "what joined it is not left behind"
        assert self.apply(replace(end, steered=tuple(one.id for one in joined)))
        turn_id = work.turn_id
        self.plan.commit(work, draft.text, self.now)
        if replies:
            self.plan.write(work, draft.id, self.now, turn_id)

    def fail(self, work: Work, how: Failure, delay: int) -> None:
        """A batch raises its own error."""
        notice = ReplyDraft(next(self.ids), "sorry", notice=True)
        state = self.apply(Fail(work.id, work.fence, how, "it broke", self.now, self.now + delay, notice))
        work.clear(work.attempts + (how is not Failure.PARK))
        work.ready_at, work.later = self.now + delay, True
        third = how is Failure.RETRY and work.attempts >= ATTEMPTS_MAX
        if third or how is not Failure.RETRY:
            self.met["parked with it"] += sum(
                one.steered_at < max(work.unrepeatable, default=-1) for one in self.plan.joined(work)
            )
            self.plan.abandon(work, self.now)
        work.leave("dead" if third or how is Failure.BURY else "review" if how is Failure.PARK else "queued")
        assert state == work.state
        if state != "queued":
            self.plan.write(work, notice.id, self.now)

    def release(self, work: Work, delay: int, *, deferred: bool) -> None:
        """A batch is given back."""
        assert self.apply(Release(work.id, work.fence, self.now + delay, deferred))
        work.ready_at, work.later = self.now + delay, True
        work.deferrals += deferred
        if deferred:
            work.clear(work.attempts - work.charges)
        work.leave("queued")

    def survive(self, work: Work, delay: int) -> None:
        """A trial comes to its time limit."""
        assert self.apply(Release(work.id, work.fence, self.now + delay, survived=True))
        work.ready_at, work.later = self.now + delay, True
        work.clear(work.attempts - work.charges, crashes=1)
        work.leave("queued")


class Recovery(Turns):
    """Leases end, processes die, people intervene."""

    @precondition(lambda self: self.plan.leased())
    @rule(ms=st.sampled_from([0, 100, LEASE_MS]))
    def expire(self, ms: int) -> None:
        """Leases that were not renewed end."""
        self.now += ms
        late = [work for work in self.plan.leased() if work.lease_until <= self.now]
        assert self.apply(ExpireLeases(self.now)) == len(late)
        for work in late:
            work.leave("queued")

    @precondition(lambda self: self.plan.leased() or any(letter.state == "sending" for letter in self.plan.replies))
    @rule(gracefully=st.booleans(), limit=st.integers(0, 3))
    def restart(self, gracefully: bool, limit: int) -> None:
        """The process stops, or dies; another begins with what is stored, and voids what the dead one held."""
        self.plan.end_life(gracefully=gracefully)
        if gracefully:
            held = self.plan.leased()
            assert self.apply(Relinquish(self.owner, self.now)) == len(held)
            for work in held:
                work.leave("queued")
        self.shut()
        self.store = self.open()
        self.lives += 1
        reply_id, split_id = next(self.ids), next(self.ids)
        dead = self.apply(VoidLeases(self.owner, self.now, "sorry", (reply_id,), split_id=split_id))
        doubted = self.apply(Doubt(self.owner, self.now))
        assert doubted == sum(letter.state == "sending" for letter in self.plan.replies)
        assert list(dead) == self.plan.void(self.now, reply_id, split_id)
        if limit:
            self.claim(limit)

    @precondition(lambda self: any(w.state in ("dead", "dropped", "review") for w in self.plan.batches))
    @rule(pick=PICK)
    def requeue(self, pick: int) -> None:
        """A person wants it tried again."""
        over = [work for work in self.plan.batches if work.state in ("dead", "dropped", "review")]
        work = over[pick % len(over)]
        assert self.apply(Requeue(work.id, self.now, "by hand")) == (not work.pruned)
        if not work.pruned:
            self.plan.requeue(work, self.now)

    @precondition(lambda self: any(w.state in ("queued", "done") for w in self.plan.batches))
    @rule(pick=PICK)
    def drop(self, pick: int) -> None:
        """A person wants no answer; only what waits can be dropped."""
        there = [work for work in self.plan.batches if work.state in ("queued", "done")]
        work = there[pick % len(there)]
        waits = work.state == "queued" and work.steered is None
        assert self.apply(Drop(work.id, self.now, "by hand")) == waits
        if waits:
            work.later, work.ended_at = False, self.now
            self.plan.abandon(work, self.now)
            work.leave("dropped")
