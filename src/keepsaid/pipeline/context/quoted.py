"""Quoted reply: what the messages answer, labelled, and never mixed into their words (seed 003)."""

from __future__ import annotations

from keepsaid.domain.attention import Quote, Settled
from keepsaid.domain.effects import FillSlot
from keepsaid.domain.fence import Fence
from keepsaid.domain.message import Message
from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.domain.text import cut, named_short
from keepsaid.domain.turn import Claimed
from keepsaid.pipeline.context.asked import Asked
from keepsaid.pipeline.context.labels import ANSWERED, QUOTED
from keepsaid.pipeline.context.layer import layer
from keepsaid.pipeline.context.message import with_attachments
from keepsaid.pipeline.context.speech import indented

_SHOWN_CHARS_MAX = 500


def quoted(scene: Scene, chars_max: int, fence: Fence) -> Layer:
    """The reply targets, then the questions answered; the room is shared, each text cut at its end.

    Whose words they are is said, so that they are not taken for the asker's.
    """
    attention = scene.attention
    if attention.recorded is not None:
        return layer("quoted", attention.recorded)
    each = chars_max // max(1, len(attention.quotes))
    blocks = [_block(quote, each, fence) for quote in attention.quotes]
    blocks += [told for one in attention.settled if (told := answered(one))]
    before = sum(len(quote.text) for quote in attention.quotes)
    after = sum(min(len(quote.text), each) for quote in attention.quotes)
    reason = f"cut to {after:,} of {before:,} characters" if after < before else ""
    return layer("quoted", "\n".join(blocks), reason)


def _block(quote: Quote, chars_max: int, fence: Fence) -> str:
    name = named_short(quote.speaker)
    whose = f"written by {name}" if name else "your own words"
    which = f"message number {quote.number}" if quote.number else "the new message"
    return fence.within(QUOTED, f"  {indented(quote.text[:chars_max])}", f": {which} replies to this, {whose}")


def answered(one: Settled) -> str:
    """The line that tells which question a message answered, and how its answer reads; "" when it answered none."""
    if not isinstance(one.effect, FillSlot):
        return ""
    question, value = _inside(one.slot.question.text), _inside(one.effect.value)
    return f'{ANSWERED}: you asked "{question}" ({one.slot.question.expected}); the answer reads as {value}]'


def joining(claimed: Claimed, asked: Asked, message: Message) -> str:
    """A message that joins the turn, as it stands in the prompt, below what it settles."""
    lines = [told for one in asked.hear(message) if (told := answered(one))]
    return "\n".join((*lines, with_attachments(claimed, message)))


def _inside(text: str) -> str:
    """A text on one line that cannot end the label it stands in."""
    return cut(" ".join(text.replace("[", "(").replace("]", ")").split()), _SHOWN_CHARS_MAX)
