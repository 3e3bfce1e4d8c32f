"""Summaries of a lane, as compaction needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from keepsaid.domain.prompt import Record
from keepsaid.domain.summary import Made, Sections
from keepsaid.domain.turn import Usage


@dataclass(frozen=True, slots=True)
class ToSummarise:
    """Texts of earlier summaries, the oldest first, and the records to be taken in with them.

    The summary is to cost `tokens_max` estimated tokens at most, and to be there within `limit_s` seconds.
    """

    earlier: tuple[str, ...]
    records: tuple[Record, ...]
    tokens_max: int = 1_000
    limit_s: float = 60.0


@dataclass(frozen=True, slots=True)
class Summarised:
    """What a summariser made, who it was, and what it cost."""

    sections: Sections
    made: Made
    model: str = ""
    usage: Usage = Usage()


class Summariser(Protocol):
    """Writes summaries."""

    async def summarise(self, given: ToSummarise) -> Summarised:
        """One summary; raises a ModelError when there is none: no answer, a refusal, an empty or unreadable one."""
        ...
