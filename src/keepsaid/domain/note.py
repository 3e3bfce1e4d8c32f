"""Notes: what a process has to know again after its end, until a time."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.commits import Commit

ENDLESSLY = 1 << 62
"""Until when a note is kept that is never over (milliseconds UTC)."""


@dataclass(frozen=True, slots=True)
class Note(Commit[None]):
    """Keep a text under a name in place of the one before, until a time; times are milliseconds UTC.

    Notes that are over at `at` go with it.
    """

    name: str
    text: str
    until: int
    at: int
