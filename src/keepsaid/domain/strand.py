"""Strands: which lane a message of a group belongs to that names neither a topic nor what it answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import NamedTuple

from keepsaid.domain import ids, message
from keepsaid.text.references import REACH, MessageText, infer
from keepsaid.values import frozen

AGENT = "\0"
"""The agent among the speakers; no stored sender is called so."""

LATELY_MAX = REACH
"""Messages of people that are looked back on."""

RECORDS_EACH = 8
"""Records of each of their lanes in which the agent's answers are looked for."""

TEXT_CHARS_MAX = 1_000
"""Characters of each that are looked at."""

_KEPT_APART = "topic:"
_STRAND = "strand:"


class Placed(NamedTuple):
    """The key of an inferred lane, and why it is that one."""

    key: str
    reason: str


@frozen
class RecentMessage:
    """A message or answer of a conversation: its id, text, the key of its lane, and the provider's names for it.

    The times order them; of two at the same time, the ids do.
    """

    id: int
    said: MessageText
    key: str
    provider_id: str | None = None
    reply_to: str | None = None


def inferable(inbound: message.Inbound) -> bool:
    """Whether its lane is to be inferred: words in a group, with neither topic nor reply target, bound to no lane."""
    spoken = not inbound.origin.direct and not inbound.content.event and inbound.key is None
    return spoken and not inbound.topic and inbound.marks.reply_to is None


def remembered(message_id: int, inbound: message.Inbound, at: int, key: str) -> RecentMessage | None:
    """The message as later ones look back on it; None in a topic, which has a lane anyway."""
    if key.startswith(_KEPT_APART):
        return None
    origin, marks = inbound.origin, inbound.marks
    said = MessageText(f"message:{message_id}", origin.sender, inbound.content.text[:TEXT_CHARS_MAX], at, origin.name)
    return RecentMessage(message_id, said, key, marks.provider_id, marks.reply_to)


def answered(key: str, records: Iterable[tuple[int, str, str, int, str | None]]) -> list[RecentMessage]:
    """The agent's answers among the last records of a lane.

    Each record is its turn, its ref ("" for a record that shows nothing), its text, its time, and the provider's
    name for the reply of that turn.
    """
    found: list[RecentMessage] = []
    asked: tuple[int, str] | None = None
    for turn_id, ref, text, at, provider_id in records:
        if ref.startswith("message:"):
            asked = turn_id, ref
        elif ref.startswith("reply:") and text:
            target = asked[1] if asked is not None and asked[0] == turn_id else None
            said = MessageText(ref, AGENT, text[:TEXT_CHARS_MAX], at, answers=target)
            found.append(RecentMessage(turn_id, said, key, provider_id))
    return found


def strand_of(lately: Iterable[RecentMessage], message_id: int, inbound: message.Inbound, at: int) -> Placed:
    """The lane: that of what it answers, the root where one person speaks, else a lane of its own.

    An edit stays where the edited message is. The same messages give the same key.
    """
    lane: message.Lane = inbound.lane
    before = sorted(lately, key=lambda one: (one.said.at, one.id))[-LATELY_MAX:]
    marks, origin = inbound.marks, inbound.origin
    known = {one.provider_id: one for one in before if one.provider_id is not None}
    if marks.provider_id in known:
        edited = known[marks.provider_id]
        return Placed(edited.key, f"it is an edit of {_named(edited)}")
    if {one.said.speaker for one in before} <= {origin.sender, AGENT}:
        return Placed(before[-1].key if before else lane.key, "one person alone has spoken")
    new = MessageText(f"message:{message_id}", origin.sender, inbound.content.text[:TEXT_CHARS_MAX], at, origin.name)
    if (guess := infer([_linked(one, known) for one in before], new)) is None:
        key = f"{_STRAND}{lane.conversation}:{ids.show('message', message_id)}"
        return Placed(key, "it answers nothing that was said before, and begins a strand")
    answers = next(one for one in before if one.said.ref == guess.ref)
    return Placed(answers.key, f"it answers {_named(answers)}: {guess.reason} ({guess.score:g})")


def _named(one: RecentMessage) -> str:
    kind, _, number = one.said.ref.partition(":")
    return ids.show("message", int(number)) if kind == "message" else f"our reply in {ids.show('turn', int(number))}"


def strand_begun_by(lane: message.Lane) -> int | None:
    """The message that began a strand; None for a lane that is none."""
    start = f"{_STRAND}{lane.conversation}:"
    return ids.read("message", lane.key.removeprefix(start)) if lane.key.startswith(start) else None


def kept(lately: Sequence[RecentMessage], one: RecentMessage) -> list[RecentMessage]:
    """What is looked back on once `one` has been said as well: the last by id."""
    return sorted((*lately, one), key=attrgetter("id"))[-LATELY_MAX:]


def _linked(one: RecentMessage, known: dict[str, RecentMessage]) -> MessageText:
    target = known.get(one.reply_to) if one.reply_to is not None else None
    return one.said if target is None else replace(one.said, answers=target.said.ref)
