"""Progress of a turn, as whoever waits for it needs it: ephemeral, never stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from keepsaid.domain.message import Message


@dataclass(frozen=True, slots=True)
class Progress:
    """Something that happened to a message's turn: a piece of the answer, a wait, or its end."""

    kind: Literal["delta", "waiting", "settled"]
    text: str = ""


class Progresses(Protocol):
    """Tells those who listen."""

    def tell(self, messages: Sequence[Message], progress: Progress) -> None:
        """Tell everybody who waits for one of the messages. Never blocks; nobody need listen."""
        ...
