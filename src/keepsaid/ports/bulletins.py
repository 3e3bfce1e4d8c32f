"""Bulletins: the standing briefings of what is known, as the context and those who make them need them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from keepsaid.domain.bulletin import Bulletin, Material
from keepsaid.domain.memory import Listener
from keepsaid.domain.turn import Claimed, Usage


class Bulletins(Protocol):
    """What a turn is briefed with."""

    async def told(self, claimed: Claimed) -> str:
        """The bulletins of the scopes that this turn hears; "" for none. Never raises, and never waits for a model."""
        ...


class BulletinStore(Protocol):
    """Where bulletins stand, and what they are made of. No read is without a scope."""

    async def standing(self, listener: Listener, now: int) -> Sequence[Bulletin]:
        """The bulletins of all scopes that a listener hears, the widest first; one of version 0 where there is none."""
        ...

    async def of(self, scope: str, now: int) -> Bulletin:
        """The bulletin of one scope; of version 0 where there is none."""
        ...

    async def material(self, scope: str, now: int) -> Material:
        """What is known in exactly this scope and holds now: no episodes, nothing external, no results of tasks."""
        ...


@dataclass(frozen=True, slots=True)
class ToEdit:
    """The lines of a bulletin, by section; it is to have about so many words, and to be there in `limit_s` seconds."""

    text: str
    words: int = 500
    limit_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Edited:
    """A bulletin in an editor's words, and what it cost."""

    text: str
    model: str
    usage: Usage = Usage()


class Editor(Protocol):
    """Writes bulletins."""

    async def edit(self, given: ToEdit) -> Edited:
        """One bulletin; raises a ModelError when there is none."""
        ...
