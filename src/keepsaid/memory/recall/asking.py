"""Asking: what recall is asked for the messages of a turn, beside their own words (design: section 4.3)."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from keepsaid.domain.message import Message
from keepsaid.domain.prompt import Role
from keepsaid.domain.slot import Heard, read_answer
from keepsaid.domain.turn import Claimed, Recent
from keepsaid.text.normal import ends_of
from keepsaid.text.words import leans

QUERY_CHARS_MAX = 4_000
"""So many characters are searched for. Of a longer text these are its beginning and its end."""

_FOCUS_CHARS = 500
"""So much of what a message replies to, or of the question it answers, is asked for with it."""

_LATELY, _LATELY_CHARS = 4, 400
"""So many of the last things said in a lane, and so much of each, stand in for a message without words of its own."""


async def query_of(claimed: Claimed, said: Sequence[Message], recent: Awaitable[Recent]) -> str:
    """The messages' own text, with what the newest replies to or answers; or what was last said, when it leans on that.

    It has at most 4,000 characters. Of longer messages the newest come first; of one that is too long by itself the
    beginning and the end are kept. What the prompt shows is only waited for when it is needed: recall begins while it
    is read.
    """
    focus = focus_text(claimed, said[-1])[:_FOCUS_CHARS]
    text = bounded_text([message.text for message in said], QUERY_CHARS_MAX - len(focus) - 1)
    if focus:
        return f"{text}\n{focus}"
    return ends_of(f"{text}\n{_lately(await recent)}".rstrip(), QUERY_CHARS_MAX) if leans(text) else text


def bounded_text(texts: Sequence[str], limit: int) -> str:
    """The texts on lines of their own, in at most `limit` characters, for which the last ones come first."""
    kept: list[str] = []
    for text in reversed(texts):
        if limit <= 0:
            break
        kept.append(ends_of(text, limit))
        limit -= len(kept[-1]) + 1
    return "\n".join(reversed(kept))


def cut_note(length: int) -> tuple[str, ...]:
    """A note for receipts that a query of `length` characters was cut; none where it was not."""
    if length <= QUERY_CHARS_MAX:
        return ()
    return (f"query: {QUERY_CHARS_MAX:,} of {length:,} characters were searched for",)


def focus_text(claimed: Claimed, newest: Message) -> str:
    """What the newest message replies to, or the question it answers; empty when it does neither."""
    reply_to = newest.inbound.marks.reply_to
    target = None if reply_to is None else claimed.around.target(reply_to)
    if target is not None:
        return target.text
    heard = Heard(newest.text, newest.received_at)
    for slot in claimed.around.slots:
        waits = slot.opened_at <= newest.received_at < slot.expires_at and slot.person == newest.inbound.origin.sender
        if waits and read_answer(slot.question, heard) is not None:
            return slot.question.text
    return ""


def _lately(recent: Recent) -> str:
    told = [record.text for record in recent.records if record.text and record.role is not Role.TOOL]
    return "\n".join(text[:_LATELY_CHARS] for text in told[-_LATELY:])
