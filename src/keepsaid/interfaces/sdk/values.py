"""Values of the library: what it takes and what it gives; times are milliseconds UTC, and datetimes beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from keepsaid.domain import commits, ids, views
from keepsaid.domain.memory import Hit, Memory
from keepsaid.errors import InputError
from keepsaid.services.forgetting import ForgetPreview, ForgetReceipt
from keepsaid.values import frozen

Time = int | datetime
"""Milliseconds UTC, or a datetime that knows its zone."""

CHANNEL = "library"
"""Where what a program says itself comes in."""


@frozen
class Message:
    """Something said to the agent.

    `external_id` names this delivery: the same id with the same content is stored once. `provider_id` is
    what replies refer to, `reply_to` the provider id of the message this one answers. `direct` says that
    only the sender and the agent are in the conversation.
    """

    text: str
    sender: str
    conversation: str
    channel: str = CHANNEL
    external_id: str | None = None
    provider_id: str | None = None
    reply_to: str | None = None
    direct: bool = False


@frozen
class Receipt:
    """Proof that a message is on disk; `duplicate` says it was there before."""

    id: str
    conversation: str
    lane: str
    number: int
    duplicate: bool


@frozen
class Episode:
    """Something that was said, to be remembered word for word.

    `said_at` is milliseconds UTC, or a datetime that knows its zone. `external_id` names it within its
    conversation: recording it again changes nothing. `kind` is `episode`, or for what is known already a kind that can
    be learned, such as `fact` or `preference`.
    """

    text: str
    speaker: str
    conversation: str
    said_at: Time
    lane: str = ""
    kind: str = "episode"
    external_id: str | None = None


@frozen
class Reply:
    """The outcome of a message that was sent with `ask`.

    `state` is `done` once a turn answered it, or `dropped`, `review` or `dead`: then `text` is empty or what the
    program itself said of that, and `keepsaid inbox why MESSAGE` tells more. `turn` is the turn for `why`. If the agent
    chose not to answer, the state is `done`, `text` is empty, and `silent` says why.
    """

    text: str
    state: str
    message: Receipt
    turn: str
    created_at: int
    silent: str = ""

    @property
    def created(self) -> datetime:
        """When it was written."""
        return _moment(self.created_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRecord:
    """A memory: `speaker` said it at `said_at`; it holds until `valid_to`, None for what holds still.

    `state` is active, superseded, expired, merged or archived.
    `superseded_by` is the memory that replaced it. `scope` says who may read it.
    """

    id: str
    text: str
    kind: str
    speaker: str
    subject: str
    said_at: int
    conversation: str
    external_id: str
    state: str
    scope: str
    trust: str
    importance: float
    pinned: bool
    valid_to: int | None
    superseded_by: str

    @property
    def said(self) -> datetime:
        """When it was said."""
        return _moment(self.said_at)

    @property
    def held_until(self) -> datetime | None:
        """Until when it held; None for what holds still."""
        return None if self.valid_to is None else _moment(self.valid_to)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered(MemoryRecord):
    """A recalled memory: its rank (from 1) and score in the leg that found it."""

    rank: int
    score: float


@frozen
class Forgotten:
    """A request to forget: its id for `undo`, how far it is done, what it takes by place, and backups that hold it yet.

    One that was only looked at has no id and the state `preview`.
    """

    id: str
    state: str
    counts: Mapping[str, int]
    backups: Sequence[str]


def receipt_of(received: commits.Received) -> Receipt:
    """The receipt for a message."""
    place = (received.lane.conversation, received.lane.key, received.number)
    return Receipt(ids.show("message", received.id), *place, received.intake is not commits.IntakeResult.STORED)


def reply_of(received: commits.Received, story: views.Story) -> Reply:
    """The outcome of a message, its replies joined."""
    said = [one for one in story.replies if one.draft.text]
    turn = "" if story.turn_id is None else ids.show("turn", story.turn_id)
    text, at = "\n\n".join(one.draft.text for one in said), max((one.created_at for one in said), default=0)
    return Reply(text, story.state, receipt_of(received), turn, at or story.message.received_at, story.silent)


def record_of(memory: Memory, at: int) -> MemoryRecord:
    """A memory as the library shows it, with its state at a time (milliseconds UTC)."""
    return MemoryRecord(**_fields(memory, at))


def remembered(hit: Hit, at: int) -> Remembered:
    """A hit as the library shows it, with its state at a time (milliseconds UTC)."""
    return Remembered(**_fields(hit.memory, at), rank=hit.rank, score=hit.score)


def preview_of(found: ForgetPreview) -> Forgotten:
    """What would be forgotten."""
    return Forgotten("", "preview", dict(found.counts), ())


def forgotten_of(done: ForgetReceipt) -> Forgotten:
    """What was asked to be forgotten."""
    request = done.request
    return Forgotten(ids.show("forgetting", request.id), str(request.state), dict(request.counts), tuple(done.backups))


def text_in(given: object, name: str) -> str:
    """What a program gave as a text; raises InputError for anything else."""
    if not isinstance(given, str):
        raise InputError(f"{name} must be text, not {type(given).__name__}")
    return given


def time_in(given: Time | None, name: str) -> int | None:
    """A time as milliseconds UTC; raises InputError for what is none, and for a datetime without a zone."""
    at = given
    if isinstance(given, datetime):
        at = None if given.tzinfo is None else int(given.timestamp() * 1_000)
        if at is None:
            raise InputError(f"{name} must be a datetime that knows its zone, such as datetime(..., tzinfo=UTC)")
    if at is not None and (type(at) is not int or not ids.is_time(at)):
        raise InputError(f"{name} must be milliseconds UTC, a whole number within years 1 to 9999, or a datetime")
    return at


def _moment(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1_000, UTC)


def _fields(memory: Memory, at: int) -> dict[str, Any]:
    new = memory.new
    return {
        "id": ids.show("memory", memory.id),
        "text": new.text,
        "kind": str(new.kind),
        "speaker": new.speaker,
        "subject": new.subject,
        "said_at": new.said_at,
        "conversation": new.lane.conversation if new.lane else "",
        "external_id": next((source.ref for source in new.sources if source.kind == "external"), ""),
        "state": memory.state_at(at),
        "scope": new.scope,
        "trust": str(new.trust),
        "importance": new.importance,
        "pinned": memory.pinned,
        "valid_to": memory.valid_to,
        "superseded_by": "" if memory.superseded_by is None else ids.show("memory", memory.superseded_by),
    }
