"""Builders: small values for tests, with defaults for everything that a test does not care about."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.domain.batch import Routed, TaskDraft, Window
from keepsaid.domain.commits import Arrival
from keepsaid.domain.message import Content, Inbound, Lane, Origin, ProviderMarks, StoredMessage, Trust
from keepsaid.domain.prompt import Record, Role, ToolCall
from keepsaid.domain.route import Action, Verdict
from keepsaid.domain.turn import Outcome, Step, StepKind, Usage

CHANNEL = "test"
ACCOUNT = "me"
ROOM = "room"
AT_ONCE = Window(window_ms=0)
"""A window that closes with its first message."""


def said(
    text: str = "hello",
    room: str = ROOM,
    *,
    marks: ProviderMarks | None = None,
    priority: int = 10,
    channel: str = CHANNEL,
) -> Inbound:
    """A message of a person in a room."""
    origin = Origin(channel, ACCOUNT, room, sender="ann", name="Ann", trust=Trust.KNOWN)
    return Inbound(origin, Content(text.encode(), text), marks or ProviderMarks(), priority)


def lane_of(room: str = ROOM, channel: str = CHANNEL) -> Lane:
    """The root lane of a room."""
    return said(room=room, channel=channel).lane


def arrival(message_id: int, inbound: Inbound, at: int = 0) -> Arrival:
    """A message at the door, with its hashes."""
    return Arrival(message_id, inbound, at, inbound.key_hash, inbound.content_hash)


def verdict(action: Action = Action.FORWARD, rule: str = "default", version: str = "v1") -> Verdict:
    """A verdict with a reason."""
    return Verdict(action, rule, version, f"because {rule} says so")


def routed(batch_id: int, messages: Sequence[StoredMessage], by: Verdict, task: TaskDraft | None = None) -> Routed:
    """These messages as one batch, with the best of their priorities."""
    return Routed(
        id=batch_id,
        first=messages[0].number,
        last=messages[-1].number,
        first_at=messages[0].received_at,
        last_id=messages[-1].id,
        chars=sum(len(message.text) for message in messages),
        verdict=by,
        priority=min(message.inbound.priority for message in messages),
        task=task,
    )


def step(n: int = 1, kind: StepKind = StepKind.MODEL, subject: str = "test/model") -> Step:
    """A step about to be made."""
    return Step(n, kind, subject, input_hash=bytes([n]) * 16)


def outcome(text: str = "hello yourself", chosen: tuple[int, ...] = ()) -> Outcome:
    """The end of a turn that answered with one text."""
    return Outcome(
        reply=text,
        records=(Record(Role.ASSISTANT, text),),
        usage=Usage(tokens_in=7, tokens_out=3),
        model="test/model",
        chosen=chosen,
    )


def consulted(text: str = "it is noon") -> tuple[Record, ...]:
    """What a turn records that called one tool and then answered."""
    call = ToolCall("call-1", "clock", "{}")
    result = Record(Role.TOOL, "12:00", call_id=call.id)
    return Record(Role.ASSISTANT, "let me look", (call,)), result, Record(Role.ASSISTANT, text)
