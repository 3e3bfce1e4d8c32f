"""Personality: how the agent speaks, as set for a lane, for a person, or for everybody (seed 003, Personality)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import GLOBAL, person_scope
from keepsaid.domain.text import joined

PERSONALITY_CHARS_MAX = 2_000


@dataclass(frozen=True, slots=True)
class Personality:
    """A text that says how to speak; `set_at` is milliseconds UTC, `set_by` the person who set it."""

    scope: str
    text: str
    set_at: int = 0
    set_by: str = ""


BUILT_IN = Personality("built-in", "Be friendly, plain and brief. Answer in the language you are asked in.")


def session_scope(lane: Lane) -> str:
    """The scope of what is set for one lane."""
    return joined(":", "session", *lane)


def scopes_of(lane: Lane, person: str = "") -> tuple[str, ...]:
    """Where a personality is looked for, the first that is found wins: session, person, global."""
    return (session_scope(lane), *([person_scope(person)] if person else []), GLOBAL)


def effective(scopes: Iterable[str], found: Iterable[Personality]) -> Personality:
    """The personality in force: that of the first scope that has one, else the built-in."""
    known = {one.scope: one for one in found if one.text}
    return next((known[scope] for scope in scopes if scope in known), BUILT_IN)
