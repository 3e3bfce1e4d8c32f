"""Attention: what a turn's newest message is about, what its messages answer, and which questions they settle."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.effects import ClearSlot, FillSlot
from keepsaid.domain.focus import Focus
from keepsaid.domain.message import Trust
from keepsaid.domain.slot import Slot


@dataclass(frozen=True, slots=True)
class Settled:
    """What a message did to a question that waited: it answered it, or ended it."""

    slot: Slot
    message_id: int
    effect: FillSlot | ClearSlot


@dataclass(frozen=True, slots=True)
class Quote:
    """What a message answers, in the words of `speaker`, "" for the agent; `number` is its place among several."""

    text: str
    speaker: str = ""
    number: int = 0
    trust: Trust = Trust.EXTERNAL


@dataclass(frozen=True, slots=True)
class Attention:
    """The focus, what is quoted for the model, and the questions settled before its first step.

    `recorded` is the block an earlier attempt of the turn was shown, so that a retry sends the same bytes.
    """

    focus: Focus = Focus()
    quotes: tuple[Quote, ...] = ()
    settled: tuple[Settled, ...] = ()
    recorded: str | None = None
