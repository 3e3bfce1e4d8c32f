"""What the RAM store holds: small mutable records in plain dictionaries and lists.

A message's place in its lane is its index; pruned, it leaves None there.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keepsaid.adapters.ram.context_row import ContextRow
from keepsaid.adapters.ram.journal_row import DeliveryRow, SubscriptionRow
from keepsaid.adapters.ram.schedule_row import RunRow, ScheduleRow
from keepsaid.adapters.ram.session_row import FindingRow, SessionRow
from keepsaid.adapters.ram.step_row import StepRow
from keepsaid.adapters.ram.task_row import TaskRow
from keepsaid.domain.batch import Batch
from keepsaid.domain.event import Line, several
from keepsaid.domain.fact import Fact
from keepsaid.domain.forgetting import Forgetting
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.personality import Personality
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.receipt import Feedback
from keepsaid.domain.redaction import Mark
from keepsaid.domain.reply import Reply, ReplyDraft
from keepsaid.domain.retention import PruneRun
from keepsaid.domain.route import Verdict
from keepsaid.domain.slot import Slot
from keepsaid.domain.staged import StageMemory
from keepsaid.domain.states import move
from keepsaid.domain.suspicion import Evidence, PastLife, Suspicion
from keepsaid.domain.turn import Step, Usage
from keepsaid.text.tokens import Calibration

OPEN_BATCHES = ("queued", "leased")
OPEN_REPLIES = ("pending", "sending", "unknown")
_PRIORITY_UNKNOWN = 100

Place = tuple[str, str, str]
"""A conversation as replies see it: channel, account, conversation."""


@dataclass(slots=True, eq=False)
class LaneRow:
    """A lane: its messages by number, its batches in order, and what waits for a batch."""

    lane: Lane
    messages: list[Message | None] = field(default_factory=list)
    batches: list[BatchRow] = field(default_factory=list)
    open: list[BatchRow] = field(default_factory=list)
    transcript: list[Entry] = field(default_factory=list)
    context: ContextRow = field(default_factory=ContextRow)
    sessions: list[SessionRow] = field(default_factory=list)
    slots: dict[int, Slot] = field(default_factory=dict)
    batched: int = 0
    priority: int = _PRIORITY_UNKNOWN
    oldest_at: int | None = None
    newest_at: int | None = None
    chars: int = 0
    due_at: int | None = None
    external_from: int | None = None
    last_id: int = 0

    @property
    def session(self) -> SessionRow | None:
        """The session that has not ended."""
        return self.sessions[-1] if self.sessions and self.sessions[-1].ended_at is None else None

    @property
    def head(self) -> int:
        """The number of the last message."""
        return len(self.messages)

    @property
    def ready(self) -> BatchRow | None:
        """The one batch that may be claimed: the first open one, and none while any is leased."""
        if not self.open or any(batch.state == "leased" for batch in self.open):
            return None
        return min(self.open, key=lambda batch: batch.first)

    @property
    def waiting(self) -> tuple[Message, ...]:
        """The messages that no batch holds."""
        return self.span(self.batched + 1, self.head)

    def span(self, first: int, last: int) -> tuple[Message, ...]:
        """The messages numbered `first` to `last`."""
        return tuple(message for message in self.messages[first - 1 : last] if message is not None)

    def batch_of(self, number: int) -> BatchRow | None:
        """The batch that holds a message."""
        place = bisect_right(self.batches, number, key=lambda batch: batch.first) - 1
        return self.batches[place] if place >= 0 and number <= self.batches[place].last else None


@dataclass(slots=True, eq=False)
class BatchRow:
    """A batch and its lease."""

    id: int
    lane: LaneRow
    first: int
    last: int
    chars: int
    verdict: Verdict
    priority: int
    first_at: int
    ready_at: int
    created_at: int
    later: bool = False
    state: str = "queued"
    task_id: int | None = None
    owner: str = ""
    lease_until: int = 0
    alone: bool = False
    fence: int = 0
    attempts: int = 0
    crashes: int = 0
    deferrals: int = 0
    deferred_from: int | None = None
    evidence: Evidence = Evidence()
    charges: int = 0
    trial_after_ms: int = 0
    survived: int = 0
    requeued: bool = False
    error: str = ""
    ended_at: int | None = None
    pruned_at: int | None = None
    steered: int | None = None
    steered_at: int = 0
    turns: list[TurnRow] = field(default_factory=list)
    replies: list[ReplyRow] = field(default_factory=list)

    @property
    def open_turn(self) -> TurnRow | None:
        """The turn that the next attempt continues."""
        return next((turn for turn in self.turns if turn.state == "open"), None)

    @property
    def messages(self) -> tuple[Message, ...]:
        """Its messages, in order."""
        return self.lane.span(self.first, self.last)

    @property
    def value(self) -> Batch:
        """The batch as the domain knows it."""
        return Batch(
            id=self.id,
            lane=self.lane.lane,
            first=self.first,
            last=self.last,
            state=self.state,
            verdict=self.verdict,
            priority=self.priority,
            fence=self.fence,
            attempts=self.attempts,
            crashes=self.crashes,
            deferrals=self.deferrals,
            created_at=self.created_at,
            error=self.error,
            ready_at=self.ready_at,
            pruned_at=self.pruned_at,
            deferred_from=self.deferred_from,
            trial_after_ms=self.trial_after_ms,
            survived=self.survived,
        )

    @property
    def suspicion(self) -> Suspicion:
        """What deaths of the process say against it."""
        return Suspicion(self.attempts, self.crashes, self.evidence, self.charges, self.trial_after_ms)

    def suspect(self, known: Suspicion) -> None:
        """Record what deaths of the process say against it."""
        self.attempts, self.crashes, self.evidence = known.attempts, known.crashes, known.evidence
        self.charges, self.trial_after_ms = known.charges, known.trial_after_ms

    def go(self, verb: str) -> None:
        """Make a legal move. Owner, end and `alone` mean something only while it is leased."""
        self.state = move("batch", self.state, verb)
        self.lane.open = [batch for batch in self.lane.open if batch is not self]
        if self.state in OPEN_BATCHES:
            self.lane.open.append(self)


@dataclass(slots=True, eq=False)
class LifeRow:
    """A life of the process, by its own age: when it last said that it lives, and by when it was to say so again."""

    owner: str
    due_ms: int
    state: str = "running"
    lived_ms: int = 0
    trial_ms: int | None = None

    @property
    def past(self) -> PastLife:
        """What it shows of how long the process lives."""
        in_trial = self.state == "died_in_trial"
        return PastLife((self.trial_ms or 0) if in_trial else self.lived_ms, self.state == "died")


@dataclass(slots=True, eq=False)
class TurnRow:
    """A turn with its steps and its trace, which is JSON text."""

    id: int
    batch: BatchRow
    started_at: int
    state: str = "open"
    reason: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    trace: str = "null"
    chosen: tuple[int, ...] = ()
    opened: tuple[int, ...] = ()
    ended_at: int | None = None
    steps: dict[int, StepRow] = field(default_factory=dict)

    @property
    def shown(self) -> tuple[int, ...]:
        """The memories it was shown or opened, each once, in order."""
        return tuple(dict.fromkeys((*self.chosen, *self.opened)))

    @property
    def recorded(self) -> tuple[Step, ...]:
        """Its steps, in order."""
        return tuple(self.steps[n].value for n in sorted(self.steps))


@dataclass(frozen=True, slots=True)
class Entry:
    """A record of a transcript; `ref` names the message or reply it shows."""

    turn_id: int
    record: Record
    ref: str
    created_at: int
    unprompted: bool = False
    sender: str = ""
    trust: Trust = Trust.EXTERNAL
    direct: bool = False

    @property
    def trusted(self) -> Record:
        """The record with its trust: of what a person said that of its sender."""
        return replace(self.record, trust=self.trust) if self.record.role is Role.USER else self.record


@dataclass(slots=True, eq=False)
class ReplyRow:
    """A reply in the outbox."""

    draft: ReplyDraft
    lane: Lane
    batch_id: int
    turn_id: int | None
    created_at: int
    next_at: int
    state: str = "pending"
    owner: str = ""
    fence: int = 0
    attempts: int = 0
    possible_duplicate: bool = False
    provider_id: str | None = None
    detail: str = ""
    ended_at: int | None = None
    posted_after: int | None = None
    trust: Trust = Trust.EXTERNAL
    about_task: int | None = None

    @property
    def place(self) -> Place:
        """The conversation whose replies leave in order."""
        return self.lane.channel, self.lane.account, self.lane.conversation

    @property
    def value(self) -> Reply:
        """The reply as the domain knows it."""
        return Reply(
            id=self.draft.id,
            lane=self.lane,
            turn_id=self.turn_id,
            state=self.state,
            draft=self.draft,
            fence=self.fence,
            attempts=self.attempts,
            possible_duplicate=self.possible_duplicate,
            created_at=self.created_at,
            detail=self.detail,
        )


@dataclass(slots=True, eq=False)
class State:
    """Everything the store knows; it outlives the objects that write and read it, as a file would."""

    lanes: dict[Lane, LaneRow] = field(default_factory=dict)
    messages: dict[int, Message] = field(default_factory=dict)
    placed: dict[int, str] = field(default_factory=dict)
    redactions: dict[int, tuple[Mark, ...]] = field(default_factory=dict)
    keys: dict[bytes, tuple[bytes, int]] = field(default_factory=dict)
    bodies: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    named: dict[tuple[Place, str], tuple[int, int, Lane]] = field(default_factory=dict)
    batches: dict[int, BatchRow] = field(default_factory=dict)
    turns: dict[int, TurnRow] = field(default_factory=dict)
    lives: list[LifeRow] = field(default_factory=list)
    replies: dict[int, ReplyRow] = field(default_factory=dict)
    unsettled: dict[int, ReplyRow] = field(default_factory=dict)
    tasks: dict[int, TaskRow] = field(default_factory=dict)
    schedules: dict[int, ScheduleRow] = field(default_factory=dict)
    runs: dict[tuple[int, int], RunRow] = field(default_factory=dict)
    journal: list[Line] = field(default_factory=list)
    subscriptions: dict[str, SubscriptionRow] = field(default_factory=dict)
    deliveries: dict[int, DeliveryRow] = field(default_factory=dict)
    episodes_due: dict[int, int | None] = field(default_factory=dict)
    staged: dict[int, list[StageMemory]] = field(default_factory=dict)
    summaries_due: dict[Lane, int] = field(default_factory=dict)
    prune_runs: list[PruneRun] = field(default_factory=list)
    personalities: dict[str, Personality] = field(default_factory=dict)
    feedback: dict[tuple[int, int], tuple[Lane, Feedback]] = field(default_factory=dict)
    calibrations: dict[str, Calibration] = field(default_factory=dict)
    findings: dict[int, FindingRow] = field(default_factory=dict)
    unread_marked_at: int | None = None
    notes: dict[str, tuple[str, int]] = field(default_factory=dict)
    forgettings: dict[int, Forgetting] = field(default_factory=dict)
    forgotten_items: dict[int, dict[tuple[str, int | str | bytes], bool]] = field(default_factory=dict)
    forgotten: dict[int, int] = field(default_factory=dict)
    tombs: set[bytes] = field(default_factory=set)
    lanes_aside: dict[int, set[LaneRow]] = field(default_factory=dict)
    aside: dict[int, list[tuple[dict[str, dict[Any, Any]], frozenset[bytes]]]] = field(default_factory=dict)

    def tell(self, topic: str, payload: str, correlation_id: str, at: int) -> None:
        """Write a line of the journal; the last one is never pruned."""
        number = self.journal[-1].number + 1 if self.journal else 1
        self.journal.append(Line(number, topic, payload, correlation_id, at))

    def told(self, at: int, *facts: Fact | None) -> None:
        """Write down facts, a line each; what is None did not happen."""
        for fact in facts:
            if fact is not None:
                self.tell(fact.topic, json.dumps(fact.payload), fact.about, at)

    def told_together(self, at: int, facts: Sequence[Fact]) -> None:
        """Write down facts of one topic in one line."""
        if facts:
            self.tell(facts[0].topic, several((one.about, one.payload) for one in facts), "", at)

    def leased(self) -> Iterator[BatchRow]:
        """The batches in flight."""
        return (batch for lane in self.lanes.values() for batch in lane.open if batch.state == "leased")

    def held(self, batch_id: int, fence: int) -> BatchRow | None:
        """The batch, if it is leased under this fence."""
        batch = self.batches.get(batch_id)
        return batch if batch and batch.state == "leased" and batch.fence == fence else None

    def held_task(self, task_id: int, fence: int) -> TaskRow | None:
        """The task, if it is running under this fence."""
        row = self.tasks.get(task_id)
        return row if row and row.task.state == "running" and row.task.fence == fence else None

    def held_steps(self, turn_id: int, fence: int) -> dict[int, StepRow] | None:
        """The steps of an open turn that is held under this fence, or of a running task, whose id stands for it."""
        holder = self.held_turn(turn_id, fence) or self.held_task(turn_id, fence)
        return None if holder is None else holder.steps

    def held_turn(self, turn_id: int, fence: int) -> TurnRow | None:
        """The open turn, if its batch is leased under this fence."""
        turn = self.turns.get(turn_id)
        return turn if turn and turn.state == "open" and self.held(turn.batch.id, fence) is turn.batch else None
