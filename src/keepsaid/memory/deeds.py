"""Deeds: what the tools of a turn or branch asked of memory is done, after its commit, under names that do it once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.memory import IMPORTANCE, NewMemory, Source, chat_of, episode_scope, person_of
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.staged import Deed, StageMemory, Wishes
from keepsaid.domain.statements import asks_to_remember
from keepsaid.domain.visibility import least
from keepsaid.ports.memory_store import Learning, Learnt
from keepsaid.text.words import fold

_SPEAKER = frozenset({"i", "me", "myself", "user", "the user", "speaker"})
"""Subjects by which a model means the person it speaks with."""


class Correcting(Protocol):
    """Where memories are put right."""

    async def correct(self, memory_id: int, memory: NewMemory, at: int) -> Learnt:
        """Put a memory right: the new words stand in its slot and scope."""
        ...

    async def confirm(self, memory_id: int, at: int) -> bool:
        """Take a memory for certain."""
        ...


class Deeds:
    """Does what turns and branches staged; doing it again changes nothing."""

    def __init__(self, learning: Learning, truth: Correcting) -> None:
        self._learning = learning
        self._truth = truth

    async def do(self, work: Sequence[Wishes], at: int) -> None:
        """Do what these staged, in order. `at` is milliseconds UTC. Raises a StoreError; it is then still due.

        What was asked for while words of outsiders were shown is not done, whatever its tools were told.
        """
        for wishes in work:
            for deed in wishes.deeds:
                if _trust(wishes, deed) is not Trust.EXTERNAL:
                    await self._do(deed, _memory(wishes, deed), at)

    async def _do(self, deed: StageMemory, memory: NewMemory, at: int) -> None:
        match deed.deed:
            case Deed.SAVE:
                await self._learning.learn([memory], at)
            case Deed.CORRECT:
                await self._truth.correct(deed.memory_id, memory, at)
            case Deed.CONFIRM:
                await self._truth.confirm(deed.memory_id, memory.said_at)


def _trust(wishes: Wishes, deed: StageMemory) -> Trust:
    """The least trust of who wrote and of the turn when it asked; without the latter what the lane ever held counts."""
    said = least(message.inbound.origin.trust for message in wishes.messages)
    if deed.trust is not None:
        return least((said, deed.trust))
    return Trust.EXTERNAL if wishes.external else said


def _memory(wishes: Wishes, deed: StageMemory) -> NewMemory:
    """What is remembered: said by who wrote last, heard where he was heard, trusted as the turn that asked."""
    said = _last_said(wishes.messages)
    origin = said.inbound.origin
    person = person_of(origin)
    return NewMemory(
        key=f"{wishes.by}:{deed.n}",
        kind=deed.kind,
        text=deed.text,
        scope=episode_scope(origin, said.lane),
        trust=_trust(wishes, deed),
        lane=said.lane,
        speaker=origin.name or origin.sender,
        speaker_id=person,
        chat_of=chat_of([message.inbound.origin for message in wishes.messages]),
        subject=deed.subject,
        subject_id=person if fold(deed.subject) in _SPEAKER else "",
        attribute=deed.attribute,
        value=deed.value,
        valid_from=deed.valid_from,
        valid_to=deed.valid_to,
        said_at=said.received_at,
        importance=IMPORTANCE[deed.kind],
        sources=(Source("turn", str(wishes.turn_id)), *(Source("message", str(one.id)) for one in wishes.messages)),
        derived=True,
        asked=any(asks_to_remember(message.text) for message in wishes.messages),
    )


def _last_said(messages: Sequence[Message]) -> Message:
    spoken = [one for one in messages if not one.inbound.content.event]
    return (spoken or list(messages))[-1]
