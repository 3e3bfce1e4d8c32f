"""Commits as values: every write of the operational store, each atomic (design: section 2).

A commit carries all that decides it: applying it needs no clock and no chance. Times are milliseconds UTC.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

from keepsaid.domain import batch, message, receipt, redaction, retention, turn
from keepsaid.domain.prompt import Json
from keepsaid.domain.reply import Delivered, ReplyDraft, StoredReply
from keepsaid.values import frozen

R_co = TypeVar("R_co", covariant=True)

ATTEMPTS_MAX = 3
"""Attempts charged to a batch before it is dead."""

LONER_PATIENCE_MS = 60_000
"""A trial that is due waits so long for what runs to end; after that nothing new is claimed before it."""


class Commit(Generic[R_co]):
    """One atomic write; `R_co` is what applying it returns."""

    __slots__ = ()


class IntakeResult(StrEnum):
    """The outcome of receiving a message."""

    STORED = "stored"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


class Arrival(NamedTuple):
    """A message on its way into the buffer; the hashes are those of `inbound`."""

    id: int
    inbound: message.Inbound
    at: int
    key_hash: bytes | None
    content_hash: bytes
    body: message.BodyKey | None = None


class Received(NamedTuple):
    """The receipt for one message; for a duplicate or conflict, `id` is the message that came first."""

    intake: IntakeResult
    id: int
    lane: message.Lane
    number: int


@frozen
class Receive(Commit[Received]):
    """Store one message and give it the next number of its lane.

    The same external id with the same content is a duplicate, with other content a conflict; neither
    stores anything. An arrival whose `body` was stored before and still counts is a duplicate under any
    external id and with any event: a signature covers the body alone. A reply whose target has a lane joins
    that lane, as `lanes` says; where its medium names a topic, that is its lane. `clock_back_ms` is by
    how much the wall clock, which gave `arrival.at`, is behind the clock that closes windows.
    """

    arrival: Arrival
    window: batch.Window
    lanes: message.LaneRules = message.LaneRules()
    clock_back_ms: int = 0


@frozen
class Dispatch(Commit[bool]):
    """Route the waiting messages of a lane after number `after`: batches, tasks and reasons for drops.

    Refused (False) when another dispatch came first, or when the conversation is paused and the commit was made as if
    it were not (`paused`), or the reverse. A forward batch extends the lane's last batch
    when that is still queued, untouched, of the same rule, and the sum keeps within the window's bounds.
    """

    lane: message.Lane
    after: int
    batches: tuple[batch.Routed, ...]
    window: batch.Window
    at: int
    paused: bool = False


@frozen
class ClaimBatches(Commit[tuple[turn.Lease, ...]]):
    """Lease up to `limit` batches, each the first of its lane that is not settled.

    Best priority first, then arrival, with `ageing`. Of batches in flight at one crash one at a time is leased; one in
    flight at more is claimed for a trial, alone, once the process has lived long enough (`lived_ms`, `terms`).
    """

    owner: str
    limit: int
    turn_ids: tuple[int, ...]
    at: int
    lease_until: int
    ageing: batch.Ageing = batch.Ageing()
    lived_ms: int = 0
    terms: batch.TrialTerms = batch.TrialTerms()


@frozen
class Renew(Commit[bool]):
    """Keep a lease; False when it was lost."""

    batch_id: int
    fence: int
    lease_until: int


@frozen
class Release(Commit[bool]):
    """Give a batch back without charging it: a graceful stop, or an outage that is not its fault.

    Its turn stays open and is continued. `not_before` delays the next claim; `deferred` counts an outage, and `reason`
    says which, for whoever asks. `survived` says that a trial came to its time limit: it takes back what was charged.
    """

    batch_id: int
    fence: int
    not_before: int
    deferred: bool = False
    reason: str = ""
    survived: bool = False


class Failure(StrEnum):
    """How a failed batch goes on: the verb of its move."""

    RETRY = "retry"
    PARK = "park"
    BURY = "bury"


@frozen
class Fail(Commit[str]):
    """Charge an attempt to a batch that raised its own error, or park it for review; returns its new state.

    `retry` becomes `bury` at the third attempt. When the batch ends dead or in review its turn is
    abandoned and the notice, if any, goes to the outbox. What is parked with it and wants its replies at
    another address gets its notice there, under the next of `reply_ids`, while they last.
    """

    batch_id: int
    fence: int
    how: Failure
    error: str
    at: int
    not_before: int = 0
    notice: ReplyDraft | None = None
    reply_ids: tuple[int, ...] = ()


@frozen
class StepStart(Commit[bool]):
    """Record that an outside call is about to be made; refused (False) with an old fence.

    The first of a turn carries its `trace`, so that a retry sees the same prompt and an abandoned turn
    can be explained.
    """

    turn_id: int
    fence: int
    step: turn.Step
    at: int
    trace: Json = None


@frozen
class StepEnd(Commit[bool]):
    """Record what an outside call returned; refused (False) with an old fence."""

    turn_id: int
    fence: int
    n: int
    output: Json
    usage: turn.Usage
    at: int


@frozen
class TurnCommit(Commit[bool]):
    """Settle a turn: transcript, reply, batch done, trace, session mark, journal and episode work, or nothing.

    Refused (False) with an old fence. `reply` None answers nothing. `ending` is the end of the model call
    whose answer settles the turn: no later step uses it, so that one commit keeps both. `steered` are the batches
    that joined the turn, in order; they are done with it. Refused when the turn has others. A message that came
    more than `inactive_ms` after the lane's last turn starts a new session; `steady` is the time by the steady clock,
    `at` where none is given.
    """

    turn_id: int
    batch_id: int
    fence: int
    outcome: turn.Outcome
    reply: ReplyDraft | None
    at: int
    ending: StepEnd | None = None
    steered: tuple[int, ...] = ()
    inactive_ms: int = 1_800_000
    steady: int | None = None


@frozen
class ExpireLeases(Commit[int]):
    """Return batches whose lease has run out to the queue, without charge; returns how many."""

    at: int


@frozen
class Requeue(Commit[bool]):
    """Queue a dead, dropped or parked batch again, by a person's word; False when it is none of these.

    What was parked because it had joined a turn of this batch is queued again with it.
    """

    batch_id: int
    at: int
    reason: str


@frozen
class Drop(Commit[bool]):
    """Drop a queued batch, by a person's word; False when it is not queued, or was shown to a turn.

    Nothing is deleted: a `Requeue` brings it back. A turn that an earlier attempt left open is abandoned. With
    `running` a batch that is being answered is dropped too: its turn is abandoned, and its owner has no lease any more.
    """

    batch_id: int
    at: int
    reason: str
    running: bool = False


@frozen
class TakeReplies(Commit[tuple[StoredReply, ...]]):
    """Take replies to push: those of the given channels, and those with a URL, whatever their channel.

    Of each conversation only the first of these that is not settled, so that replies leave in order.
    """

    channels: tuple[str, ...]
    owner: str
    limit: int
    at: int


@frozen
class Settle(Commit[bool]):
    """Record the result of sending a reply; refused (False) with an old fence.

    `retry_at` is when a retried or resent reply may be tried again.
    """

    reply_id: int
    fence: int
    outcome: Delivered
    at: int
    detail: str = ""
    provider_id: str | None = None
    retry_at: int = 0


@frozen
class Doubt(Commit[int]):
    """Mark replies whose sending was cut short by the death of another owner as unknown; returns how many.

    VoidLeases comes before it. The try is not charged: a program that dies again and again may have other reasons.
    Where no other lives, what waits to be tried again is due at once: who set that time may have had another clock.
    """

    owner: str
    at: int


@frozen
class Resend(Commit[int]):
    """Queue unknown replies again, marked as possible duplicates; those of channels in `without_resend` are dead."""

    without_resend: frozenset[str]
    at: int


@frozen
class MarkReplyShown(Commit[bool]):
    """A person or client has pulled a reply; False when it was settled before.

    `provider_id` is what the medium calls it where it was shown, so that messages that answer it find its lane.
    """

    reply_id: int
    at: int
    provider_id: str | None = None


@frozen
class Decide(Commit[bool]):
    """A person's word on a reply: send it again, or accept that it never arrives; False when it is settled or leaving.

    Only a dead reply is sent `again`: its attempts count from zero and it says that it may be a duplicate. That it will
    not arrive is accepted of one that waits to be sent or fetched too.
    """

    reply_id: int
    at: int
    again: bool


@frozen
class RecordFeedback(Commit[bool]):
    """A person's word that a memory was wrong for a turn, or its withdrawal.

    False when the turn was not shown the memory, or there is nothing to withdraw. Said again it changes nothing. With a
    name in `once` it is done once for that name: a note is kept with it, and the next one is False.
    """

    word: receipt.JudgeMemory
    at: int
    once: str = ""


@frozen
class EpisodesKept(Commit[int]):
    """Clear the episode work of batches whose episodes are in memory; returns how many.

    Of each message that held a secret, `redactions` says where: its text stays in the buffer as it was received.
    """

    batch_ids: tuple[int, ...]
    redactions: tuple[redaction.Redaction, ...] = ()


@frozen
class BeginPruning(Commit[None]):
    """Record that a run of the pruner begins, so that the next can tell how far the clock has come."""

    at: int


@frozen
class Prune(Commit[retention.Pruned]):
    """Remove one piece of what was settled before a time: about `rows_max` rows and `bytes_max` bytes.

    Only of batches that are done or dropped, whose replies are settled, whose task has ended and whose episodes
    are in memory; records only after their messages. Keys: those of pruned messages up to the id `before`.
    Events: those delivered to every subscriber; one that was given up stays until a person has decided.
    """

    what: retention.Stale
    before: int
    at: int
    after: retention.Cursor = ()
    rows_max: int = 200
    bytes_max: int = 4_000_000


@frozen
class Tell(Commit[None]):
    """Write a fact to the journal; `payload` is JSON text."""

    topic: str
    payload: str
    at: int
    correlation_id: str = ""
