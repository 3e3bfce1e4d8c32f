"""News of memory: what was saved, superseded and put away, on its way from the memory store to the journal.

No transaction spans the two stores. News is written with what happened, told in a commit of the operational store
that remembers the last of it, and only then removed: what a crash leaves between the two is not told again.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from keepsaid.domain.commits import Commit

TOLD = "memory.told"
"""The name of the note that remembers the last news that was told."""


class Happened(StrEnum):
    """What happened to a memory."""

    SAVED = "saved"
    SUPERSEDED = "superseded"
    ARCHIVED = "archived"


class News(NamedTuple):
    """One piece: its number, and which memory; `kind` is its kind, `by` the memory that took its place."""

    n: int
    memory_id: int
    what: Happened
    kind: str
    by: int | None = None

    @property
    def mark(self) -> str:
        """What is remembered of it."""
        return f"{self.n}:{self.memory_id}"


@dataclass(frozen=True, slots=True)
class TellNews(Commit[int]):
    """Write news to the journal, in order and each piece once; returns how many were written."""

    news: tuple[News, ...]
    at: int


@dataclass(frozen=True, slots=True)
class DropNews(Commit[int]):
    """Remove news up to a number from the memory store, once it is told."""

    until: int


def untold(news: tuple[News, ...], told: str) -> tuple[News, ...]:
    """What follows the last that was told; all of it, where that is not among it."""
    place = next((n for n, one in enumerate(news, 1) if one.mark == told), 0)
    return news[place:]
