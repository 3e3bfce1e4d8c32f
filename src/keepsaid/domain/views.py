"""Views: values for status, inbox and why, and chronicles of all that happened to a batch. None can change anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from keepsaid.domain import effects, learning, prompt, receipt, route, turn
from keepsaid.domain.batch import StoredBatch
from keepsaid.domain.message import Lane, StoredMessage, Trust
from keepsaid.domain.prompt import Json
from keepsaid.domain.reply import StoredReply
from keepsaid.values import frozen


@frozen
class ChannelDepth:
    """Unsettled messages of one channel by state; `review` and `dead` wait for a person.

    The times are those at which the oldest came, milliseconds UTC: of the unrouted (`oldest_at`), of the queued and
    leased (`routed_at`), of those that wait for a person (`person_at`).
    """

    channel: str
    unrouted: int
    oldest_at: int | None
    queued: int = 0
    leased: int = 0
    review: int = 0
    dead: int = 0
    routed_at: int | None = None
    person_at: int | None = None

    @property
    def waiting_since(self) -> int | None:
        """The arrival of the oldest unrouted, queued or leased message."""
        return min((at for at in (self.oldest_at, self.routed_at) if at is not None), default=None)

    @property
    def for_person(self) -> int:
        """How many wait for a person."""
        return self.review + self.dead


@frozen
class PausedConversation:
    """A conversation that is paused since a time (milliseconds UTC), and how many messages wait there."""

    channel: str
    account: str
    conversation: str
    since: int
    waiting: int


@frozen
class RunningProcess:
    """A process that works with the store: since when, until when it is taken for alive, and whether it leads.

    Times are milliseconds UTC; `kept_until` is 0 where processes do not share the store. One that `is_silent` did not
    say in time that it lives: another process takes its work.
    """

    owner: str
    started_at: int
    kept_until: int
    leads: bool
    is_silent: bool = False


@frozen
class Overview:
    """Counts over the whole operational store.

    `deferred` batches are queued because of an outage, `held` ones because they may stop the program: they wait for a
    trial. `held_first` is the oldest of these, 0 for none.
    """

    channels: tuple[ChannelDepth, ...]
    batches: Mapping[str, int]
    replies: Mapping[str, int]
    tasks: Mapping[str, int]
    turns: Mapping[str, int]
    usage: turn.Usage
    episodes_due: int
    messages: int
    deferred: int = 0
    held: int = 0
    held_first: int = 0
    paused: tuple[PausedConversation, ...] = ()
    processes: tuple[RunningProcess, ...] = ()


@frozen
class Spawned:
    """Work that a rule wrote down for a batch."""

    id: int
    state: str
    description: str


@frozen
class Story:
    """One message with all its later stages; `placed` says why it is in its lane, where that was inferred.

    `staged` says that its turn stores memories that are not stored yet; `remembered` are those that are, None
    where they were not read. `silent` is why its turn ended without a reply, "" for any other.
    """

    message: StoredMessage
    state: str
    batch: StoredBatch | None = None
    turn_id: int | None = None
    task: Spawned | None = None
    replies: tuple[StoredReply, ...] = ()
    placed: str = ""
    staged: bool = False
    remembered: tuple[learning.RememberedMemory, ...] | None = None
    silent: str = ""


@frozen
class LaneLine:
    """A lane in a list: when somebody last said something, messages that no turn has answered, state of its session,
    version of its summary (0 for none), and records of its transcript that no summary or cut covers. `paused` says that
    its conversation is, `incognito` that what is said there now is said in incognito.
    """

    lane: Lane
    last_at: int
    waiting: int
    session: str
    summary: int
    records: int
    paused: bool = False
    incognito: bool = False


@frozen
class MessageFilter:
    """Which messages to list; None means any. Newest first. `reply` is the state of a reply."""

    channel: str | None = None
    state: str | None = None
    conversation: str | None = None
    limit: int = 20
    reply: str | None = None


@frozen
class TurnStory:
    """One turn with its batch, messages, steps, transcript records, replies and trace.

    `before` is the trace of the turn before it in its lane, whose prompt a provider may still have in its cache;
    `placed` says by message id why it is in this lane, where that was inferred; `feedback` is what people said of the
    memories it was shown.
    """

    turn_id: int
    state: str
    batch: StoredBatch
    messages: tuple[StoredMessage, ...]
    steps: tuple[turn.Step, ...]
    records: tuple[prompt.Record, ...]
    replies: tuple[StoredReply, ...]
    trace: Json
    usage: turn.Usage
    started_at: int
    ended_at: int | None
    reason: str = ""
    before: Json = None
    placed: Mapping[int, str] = field(default_factory=dict)
    feedback: tuple[receipt.Feedback, ...] = ()


@frozen
class EpisodeWork:
    """A batch whose messages and reply are not in memory yet.

    `external` says that its lane held an external message by the time it was answered. `used` are the memories its
    turn was shown or opened, `staged` what its tools asked memory to do. `trust` is that of the turn when it gave the
    reply, None where none is stored.
    """

    batch_id: int
    messages: tuple[StoredMessage, ...]
    turn_id: int | None = None
    reply: str = ""
    replied_at: int = 0
    model: str = ""
    external: bool = False
    used: tuple[int, ...] = ()
    staged: tuple[effects.StageMemory, ...] = ()
    trust: Trust | None = None

    @property
    def staged_requests(self) -> effects.StagedRequests | None:
        """Memory requests that its turn staged; None if no turn answered it."""
        if self.turn_id is None:
            return None
        return effects.StagedRequests(f"turn:{self.turn_id}", self.turn_id, self.messages, self.staged, self.external)


@frozen
class StepLife:
    """One outside call of a turn; `tries` counts how often it was started, times are milliseconds UTC."""

    n: int
    kind: str
    subject: str
    state: str
    tries: int
    usage: turn.Usage
    started_at: int
    ended_at: int | None


@frozen
class TurnLife:
    """One turn of a batch: the first, or one restarted by a person or an interrupt."""

    id: int
    state: str
    reason: str
    model: str
    usage: turn.Usage
    started_at: int
    ended_at: int | None
    steps: tuple[StepLife, ...] = ()


@frozen
class ReplyMove:
    """One move of a reply: the verb of its table, when, and what was said of it."""

    verb: str
    at: int
    detail: str


@frozen
class ReplyLife:
    """A reply with every move it made; `next_at` is when one that waits may be tried."""

    reply: StoredReply
    next_at: int
    ended_at: int | None
    provider_id: str | None
    moves: tuple[ReplyMove, ...] = ()


@frozen
class BatchLife:
    """A batch beside its lease and what it waits for.

    `first_at` is the arrival of its first message. `later` says that it waits for `ready_at`. `ahead` is the
    batch of its lane that goes first, if there is one.
    """

    batch: StoredBatch
    first_at: int
    later: bool
    ended_at: int | None
    owner: str | None = None
    lease_until: int | None = None
    alone: bool = False
    ahead: StoredBatch | None = None


@frozen
class Decided:
    """A stored message and the verdict on record, None while it waits; a forgotten one has no words left."""

    message: StoredMessage
    verdict: route.Verdict | None
    forgotten: bool = False


@frozen
class Redelivery:
    """Another delivery of a message's body, under another delivery id; it was treated as a duplicate."""

    NOTED_MAX: ClassVar[int] = 20
    """Redeliveries of one message that are noted; later ones are duplicates without a note."""

    message_id: int
    external_id: str
    event: str
    at: int


@frozen
class Chronicle:
    """Messages that were batched together, or one that waits for its window to close at `due_at`.

    `paused` says that their conversation is.
    """

    messages: tuple[StoredMessage, ...]
    batch: BatchLife | None = None
    turns: tuple[TurnLife, ...] = ()
    replies: tuple[ReplyLife, ...] = ()
    task: Spawned | None = None
    due_at: int | None = None
    redeliveries: tuple[Redelivery, ...] = ()
    paused: bool = False
