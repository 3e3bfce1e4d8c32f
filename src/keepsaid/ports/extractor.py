"""What finds statements in what was said, as the collector needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from keepsaid.domain.collection import Passage
from keepsaid.domain.finding import Statement
from keepsaid.domain.turn import Usage


@dataclass(frozen=True, slots=True)
class Extracted:
    """What was found, in how many calls of a model, at what cost, and by which."""

    statements: tuple[Statement, ...]
    calls: int = 0
    usage: Usage = Usage()
    model: str = ""


class Extractor(Protocol):
    """Finds what people said to be so."""

    @property
    def name(self) -> str:
        """Which extractor this is, with its version: kept with every finding."""
        ...

    @property
    def thorough(self) -> bool:
        """Whether what it has read is done with; else it waits, marked, for one that is."""
        ...

    async def extract(self, passage: Passage) -> Extracted:
        """The statements in a passage, each naming records of it that people said. Raises a ModelError for none."""
        ...
