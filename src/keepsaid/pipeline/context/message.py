"""The new messages: each with what it came with, and above several of them a hint that they came together."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from keepsaid.domain.message import Message
from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.domain.text import cut
from keepsaid.domain.turn import Claimed
from keepsaid.pipeline.context.labels import SENT, TOGETHER
from keepsaid.pipeline.context.layer import layer
from keepsaid.pipeline.context.speech import speaker, spoken

_EPOCH = datetime.fromtimestamp(0, UTC)
_SECOND_MS = 1_000
_PEOPLE_MAX = 5
_NAME_CHARS_MAX = 60


def message(scene: Scene) -> Layer:
    """What is to be answered; it is never cut."""
    claimed = scene.claimed
    if len(claimed.messages) == 1:
        return layer("message", spoken(claimed, claimed.messages[0]))
    each = (f"{_facts(one)}\n{spoken(claimed, one)}" for one in claimed.messages)
    return layer("message", "\n".join((_hint(claimed), *each)))


def _hint(claimed: Claimed) -> str:
    """How many came, within what time, from whom (seed 001, coalesce hint)."""
    messages = claimed.messages
    span_s = (messages[-1].received_at - messages[0].received_at) // _SECOND_MS
    people = list(dict.fromkeys(_line(speaker(one)) for one in messages))
    more = f" and {len(people) - _PEOPLE_MAX} more" if len(people) > _PEOPLE_MAX else ""
    names = ", ".join(people[:_PEOPLE_MAX]) + more
    return f"{TOGETHER}: {len(messages)} within {span_s} s, from {names}. One answer may do for all of them.]"


def _facts(one: Message) -> str:
    """When a message came, and what it answers."""
    marks = one.inbound.marks
    facts = [f"{_EPOCH + timedelta(milliseconds=one.received_at):%H:%M:%S}"]
    if marks.reply_to:
        facts.append(f"in reply to {_line(marks.reply_to)}")
    return f"{SENT} {', '.join(facts)}]"


def _line(name: str) -> str:
    return cut(" ".join(name.replace("[", "(").replace("]", ")").split()), _NAME_CHARS_MAX)
