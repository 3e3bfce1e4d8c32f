"""What readers see: values for status, inbox and why. Nothing here can change anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keepsaid.domain.batch import Batch
from keepsaid.domain.feedback import Feedback
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.prompt import Json, Record
from keepsaid.domain.reply import Reply
from keepsaid.domain.staged import StageMemory, Wishes
from keepsaid.domain.turn import Step, Usage


@dataclass(frozen=True, slots=True)
class ChannelDepth:
    """Messages of one channel that no batch holds yet, and the arrival of the oldest."""

    channel: str
    unrouted: int
    oldest_at: int | None


@dataclass(frozen=True, slots=True)
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
    usage: Usage
    episodes_due: int
    messages: int
    deferred: int = 0
    held: int = 0
    held_first: int = 0


@dataclass(frozen=True, slots=True)
class Spawned:
    """Work that a rule wrote down for a batch."""

    id: int
    state: str
    description: str


@dataclass(frozen=True, slots=True)
class Story:
    """One message with everything that became of it; `placed` says why it is in its lane, where that was inferred."""

    message: Message
    state: str
    batch: Batch | None = None
    turn_id: int | None = None
    task: Spawned | None = None
    replies: tuple[Reply, ...] = ()
    placed: str = ""


@dataclass(frozen=True, slots=True)
class LaneLine:
    """A lane in a list: when somebody last said something, messages that no turn has answered, state of its session,
    version of its summary (0 for none), and records of its transcript that no summary or cut covers.
    """

    lane: Lane
    last_at: int
    waiting: int
    session: str
    summary: int
    records: int


@dataclass(frozen=True, slots=True)
class MessageFilter:
    """Which messages to list; None means any. Newest first. `reply` is the state of a reply."""

    channel: str | None = None
    state: str | None = None
    conversation: str | None = None
    limit: int = 20
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class TurnStory:
    """One turn with its batch, messages, steps, transcript records, replies and trace.

    `before` is the trace of the turn before it in its lane, whose prompt a provider may still have in its cache;
    `placed` says by message id why it is in this lane, where that was inferred; `feedback` is what people said of the
    memories it was shown.
    """

    turn_id: int
    state: str
    batch: Batch
    messages: tuple[Message, ...]
    steps: tuple[Step, ...]
    records: tuple[Record, ...]
    replies: tuple[Reply, ...]
    trace: Json
    usage: Usage
    started_at: int
    ended_at: int | None
    reason: str = ""
    before: Json = None
    placed: Mapping[int, str] = field(default_factory=dict)
    feedback: tuple[Feedback, ...] = ()


@dataclass(frozen=True, slots=True)
class EpisodeWork:
    """A batch whose messages and reply are not in memory yet.

    `external` says that its lane held an external message by the time it was answered. `used` are the memories its
    turn was shown or opened, `staged` what its tools asked memory to do. `trust` is that of the turn when it gave the
    reply, None where none is stored.
    """

    batch_id: int
    messages: tuple[Message, ...]
    turn_id: int | None = None
    reply: str = ""
    replied_at: int = 0
    model: str = ""
    external: bool = False
    used: tuple[int, ...] = ()
    staged: tuple[StageMemory, ...] = ()
    trust: Trust | None = None

    @property
    def wishes(self) -> Wishes | None:
        """What its turn asked memory to do; None where no turn answered it."""
        if self.turn_id is None:
            return None
        return Wishes(f"turn:{self.turn_id}", self.turn_id, self.messages, self.staged, self.external)
