"""The new messages: each with what it came with, and above several of them a hint that they came together."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from keepsaid.domain.attachment import described
from keepsaid.domain.message import Message
from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.domain.text import named_short
from keepsaid.domain.turn import Claimed
from keepsaid.pipeline.context.labels import SENT, TOGETHER
from keepsaid.pipeline.context.layer import layer
from keepsaid.pipeline.context.speech import speaker, spoken, with_label

_EPOCH = datetime.fromtimestamp(0, UTC)
_SECOND_MS = 1_000
_PEOPLE_MAX = 5


def message(scene: Scene) -> Layer:
    """What is to be answered; it is never cut."""
    return layer("message", shown(scene.claimed))


def shown(claimed: Claimed) -> str:
    """The messages of a batch; of several each is below a line with its number, time and what it answers."""
    if len(claimed.messages) == 1:
        return with_attachments(claimed, claimed.messages[0])
    numbers = {one.inbound.marks.provider_id: n for n, one in enumerate(claimed.messages, 1)}
    each = (f"{_facts(one, n, numbers)}\n{with_attachments(claimed, one)}" for n, one in enumerate(claimed.messages, 1))
    return "\n".join((_hint(claimed), *each))


def with_attachments(claimed: Claimed, one: Message) -> str:
    """A message as it stands in the prompt, and below it what is attached, by reference."""
    return with_label(spoken(claimed, one), described(one.inbound.content))


def _hint(claimed: Claimed) -> str:
    """How many came, within what time, from whom (seed 001, coalesce hint)."""
    messages = claimed.messages
    span_s = (messages[-1].received_at - messages[0].received_at) // _SECOND_MS
    people = list(dict.fromkeys(named_short(speaker(one)) for one in messages))
    more = f" and {len(people) - _PEOPLE_MAX} more" if len(people) > _PEOPLE_MAX else ""
    names = ", ".join(people[:_PEOPLE_MAX]) + more
    return f"{TOGETHER}: {len(messages)} within {span_s} s, from {names}. One answer may do for all of them.]"


def _facts(one: Message, number: int, numbers: Mapping[str | None, int]) -> str:
    """When a message came, and what it answers: one beside it, or an earlier one."""
    facts = [f"{_EPOCH + timedelta(milliseconds=one.received_at):%H:%M:%S}", f"number {number}"]
    target = one.inbound.marks.reply_to
    if target in numbers and target is not None:
        facts.append(f"in reply to number {numbers[target]}")
    elif target:
        facts.append("in reply to an earlier message")
    return f"{SENT} {', '.join(facts)}]"
