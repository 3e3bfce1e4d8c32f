"""Told: what one command in a chat came to."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.effects import Effect

DONE, REFUSED, ASKED = "done", "refused", "asked"
"""Outcomes: carried out, not allowed or not possible, or answered with a question."""


@dataclass(frozen=True, slots=True)
class Told:
    """The words of the answer, and what the turn's commit does."""

    text: str
    outcome: str = DONE
    effects: tuple[Effect, ...] = ()
    begins_anew: bool = False
