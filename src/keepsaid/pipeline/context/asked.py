"""Asked: the questions that wait in a lane, and the messages that answer them or end them (seed 003, thread_state).

A question is answered only by a message of its own lane and person, received after it was asked and before it
expired, that fits its type. Any other message of that person leaves it or ends it, as configured, and is itself
never changed. What a machine sent answers nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from keepsaid.domain.answers import Heard, read_answer
from keepsaid.domain.attention import Settled
from keepsaid.domain.effects import ClearSlot, Effect, FillSlot
from keepsaid.domain.focus import Surroundings
from keepsaid.domain.ids import show
from keepsaid.domain.message import Message
from keepsaid.domain.slot import OnMismatch, Slot, Terms


class Asked:
    """The questions open when a turn begins, as its messages are heard one by one."""

    def __init__(self, around: Surroundings, terms: Terms) -> None:
        self._around = around
        self._terms = terms
        self._open = list(around.slots)
        self._settled: list[Settled] = []

    @property
    def settled(self) -> tuple[Settled, ...]:
        """What was settled so far, in order."""
        return tuple(self._settled)

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The same as the turn's commit takes it."""
        return tuple(one.effect for one in self._settled)

    def hear_all(self, messages: Iterable[Message]) -> None:
        """Hear messages in order."""
        for message in messages:
            self.hear(message)

    def hear(self, message: Message) -> tuple[Settled, ...]:
        """What this message settles."""
        settled = tuple(one for one in (self._judge(slot, message) for slot in self._open) if one is not None)
        ended = {one.slot.id for one in settled}
        self._open = [slot for slot in self._open if slot.id not in ended]
        self._settled += settled
        return settled

    def _judge(self, slot: Slot, message: Message) -> Settled | None:
        if message.inbound.origin.sender != slot.person or message.inbound.content.event or message.damaged:
            return None
        if message.received_at < slot.opened_at:
            return None
        if message.received_at >= slot.expires_at:
            return Settled(slot, message.id, ClearSlot(slot.id, "no answer came in time", "expire"))
        value = None if self._is_elsewhere(slot, message) else self._read(slot, message)
        if value is not None:
            return Settled(slot, message.id, FillSlot(slot.id, value, message.id))
        if self._terms.on_mismatch is OnMismatch.KEEP:
            return None
        why = f"{show('message', message.id)} is no answer of type {slot.question.expected}"
        return Settled(slot, message.id, ClearSlot(slot.id, why))

    def _is_elsewhere(self, slot: Slot, message: Message) -> bool:
        """Whether the message replies to something that is known, and is not the question."""
        reply_to = message.inbound.marks.reply_to
        target = None if reply_to is None else self._around.target(reply_to)
        return target is not None and target.ref != slot.anchor

    def _read(self, slot: Slot, message: Message) -> str | None:
        return read_answer(slot.question, Heard(message.text, message.received_at, self._terms.zone))
