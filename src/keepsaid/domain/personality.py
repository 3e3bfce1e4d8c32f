"""Personality and skills: how the agent speaks, for whom it was set, and what it can look up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from keepsaid.domain.memory import GLOBAL, OWNER, person_of, person_scope
from keepsaid.domain.message import Lane, StoredMessage, Trust
from keepsaid.text.normal import joined
from keepsaid.values import frozen

PERSONALITY_CHARS_MAX = 2_000


@frozen
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


def scopes_around(lane: Lane, messages: Iterable[StoredMessage]) -> tuple[str, ...]:
    """Every scope that may matter to a turn of these messages."""
    people = dict.fromkeys(person_scope(person_of(message.inbound.origin)) for message in messages)
    return (session_scope(lane), *people, GLOBAL)


def settable(lane: Lane, messages: Sequence[StoredMessage]) -> Mapping[str, str]:
    """The scopes that who wrote these messages may set, by the words `session`, `person` and `global`.

    The owner may set all; who is known, in a direct chat, its own. Where others speak only the owner alone may, and
    what is external never does.
    """
    origins = [message.inbound.origin for message in messages]
    people = {person_of(origin) for origin in origins}
    if len(people) != 1 or any(origin.trust is Trust.EXTERNAL for origin in origins):
        return {}
    [person] = people
    if not all(origin.direct for origin in origins):
        return {"session": session_scope(lane), "global": GLOBAL} if person == OWNER else {}
    own = {"session": session_scope(lane), "person": person_scope(person)}
    return {**own, "global": GLOBAL} if person == OWNER else own


def effective(scopes: Iterable[str], found: Iterable[Personality]) -> Personality:
    """The personality in force: that of the first scope that has one, else the built-in."""
    known = {one.scope: one for one in found if one.text}
    return next((known[scope] for scope in scopes if scope in known), BUILT_IN)


@frozen
class Skill:
    """One skill: its name, when to use it, and the text that says how."""

    name: str
    description: str
    body: str


@frozen
class Skills:
    """The skills of an agent, by name, and those that were left out: each a folder with what is wrong with it."""

    known: tuple[Skill, ...] = ()
    broken: tuple[tuple[str, str], ...] = ()

    def named(self, name: str) -> Skill | None:
        """The skill of that name."""
        return next((one for one in self.known if one.name == name), None)
