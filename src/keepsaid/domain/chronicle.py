"""Chronicles: everything that happened to a batch and its messages, with every time that was written down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from keepsaid.domain.batch import Batch
from keepsaid.domain.message import Message
from keepsaid.domain.reply import Reply
from keepsaid.domain.route import Verdict
from keepsaid.domain.turn import Usage
from keepsaid.domain.views import Spawned


@dataclass(frozen=True, slots=True)
class StepLife:
    """One outside call of a turn; `tries` counts how often it was started, times are milliseconds UTC."""

    n: int
    kind: str
    subject: str
    state: str
    tries: int
    usage: Usage
    started_at: int
    ended_at: int | None


@dataclass(frozen=True, slots=True)
class TurnLife:
    """One turn of a batch: the first, or one begun anew after a person's word or an interrupt."""

    id: int
    state: str
    reason: str
    model: str
    usage: Usage
    started_at: int
    ended_at: int | None
    steps: tuple[StepLife, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplyMove:
    """One move of a reply: the verb of its table, when, and what was said of it."""

    verb: str
    at: int
    detail: str


@dataclass(frozen=True, slots=True)
class ReplyLife:
    """A reply with every move it made; `next_at` is when one that waits may be tried."""

    reply: Reply
    next_at: int
    ended_at: int | None
    provider_id: str | None
    moves: tuple[ReplyMove, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchLife:
    """A batch beside its lease and what it waits for.

    `first_at` is the arrival of its first message. `later` says that it waits for `ready_at`. `ahead` is the
    batch of its lane that goes first, if there is one.
    """

    batch: Batch
    first_at: int
    later: bool
    ended_at: int | None
    owner: str | None = None
    lease_until: int | None = None
    alone: bool = False
    ahead: Batch | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """A stored message and the verdict on record, None while it waits; a forgotten one has no words left."""

    message: Message
    verdict: Verdict | None
    forgotten: bool = False


@dataclass(frozen=True, slots=True)
class Redelivery:
    """Another delivery of a message's body, under another delivery id; it was treated as a duplicate."""

    NOTED_MAX: ClassVar[int] = 20
    """Redeliveries of one message that are noted; later ones are duplicates without a note."""

    message_id: int
    external_id: str
    event: str
    at: int


@dataclass(frozen=True, slots=True)
class Chronicle:
    """Messages that were batched together, or one that waits for its window to close at `due_at`."""

    messages: tuple[Message, ...]
    batch: BatchLife | None = None
    turns: tuple[TurnLife, ...] = ()
    replies: tuple[ReplyLife, ...] = ()
    task: Spawned | None = None
    due_at: int | None = None
    redeliveries: tuple[Redelivery, ...] = ()
