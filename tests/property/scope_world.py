"""A world of people, rooms and direct chats, and who hears what in it, told in plain Python.

Nothing here asks the store, its statements, or the scopes by which it keeps memories apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from keepsaid.domain.message import Lane

OWNER = "owner"
PEOPLE = ("chat:bot:ann", "chat:bot:ben", "post:bot%3A1:7", "post:bot%3A1:cat:x", "mail:x:dan")
"""Everybody but the owner, by the names of their identities."""

_PLACES = {"chat:bot:ann": ("chat", "bot"), "chat:bot:ben": ("chat", "bot"), "mail:x:dan": ("mail", "x")}
DIRECT: dict[tuple[str, str, str], str] = {
    **{(*_PLACES.get(one, ("post", "bot:1")), f"dm:{one}"): one for one in PEOPLE},
    ("terminal", "default", "me"): OWNER,
    ("chat", "bot", "dm:me"): OWNER,
}
"""Direct chats, and with whom each is."""

ROOMS = (("chat", "bot", "room"), ("chat", "bot", "room:2"), ("post", "bot", "room"))
LANES = tuple(Lane(*place, key) for place in (*DIRECT, *ROOMS) for key in ("root", "topic:1"))


class Reach(NamedTuple):
    """Whom a memory is for: `all`, or a person, a conversation or a lane, which is named."""

    kind: str
    who: str | tuple[str, str, str] | Lane = ""


ALL = Reach("all")


class Ear(NamedTuple):
    """Somebody who listens: where, who, whether nobody else does, and whether other lanes or own chats are read."""

    lane: Lane | None
    person: str
    direct: bool
    cross: bool = False
    chats: bool = True


@dataclass(frozen=True, slots=True)
class Known:
    """A memory: whom it is for, what keeps it in its lane, who said it, and the word that stands in it alone."""

    id: int
    key: str
    reach: Reach
    lane: Lane | None
    outside: bool
    bound: bool
    speaker: str
    said_at: int
    kind: str
    word: str
    there: bool = True

    @property
    def chat_of(self) -> str:
        """With whom it was said alone."""
        return "" if self.lane is None else DIRECT.get(self.lane[:3], "")


class World:
    """What is known, and who is one person with whom."""

    def __init__(self) -> None:
        self.known: dict[int, Known] = {}
        self.persons: list[set[str]] = []

    def same(self, person: str) -> set[str]:
        """Everybody who is that person."""
        return next((one for one in self.persons if person in one), {person})

    def join(self, names: tuple[str, ...], by: str) -> bool:
        """Make them one; whether that was allowed."""
        whole = {other for name in names for other in self.same(name)}
        if OWNER in whole and by != OWNER:
            return False
        self.persons = [*(one for one in self.persons if not one & whole), whole]
        return True

    def split(self, name: str) -> bool:
        """Take one out; whether there was anybody to take it from."""
        was = self.same(name)
        if len(was) == 1:
            return False
        self.persons = [one for one in self.persons if one is not was]
        if len(was) > 2:
            self.persons.append(was - {name})
        return True

    def hears(self, ear: Ear, one: Known) -> bool:
        """The rule of who hears what."""
        here = one.lane is not None and one.lane == ear.lane
        crosses = ear.cross or (ear.chats and one.reach.kind == "person")
        if not one.there or (one.outside and not here) or (one.bound and not here and not crosses):
            return False
        return within_earshot(ear, one.reach, self.same(ear.person))

    def heard(self, ear: Ear) -> list[Known]:
        """All that somebody hears, newest first."""
        return sorted((one for one in self.known.values() if self.hears(ear, one)), key=newest)

    def widen(self, one: Known, to: str, by: str) -> bool:
        """Let more hear it, if that may be; whether it may."""
        reach = _reach(one, to)
        speakers = self.same(one.speaker) if one.speaker else set[str]()
        if not one.there or one.outside or reach is None or by not in {OWNER, *speakers}:
            return False
        if any(within_earshot(ear, one.reach, {ear.person}) > within_earshot(ear, reach, {ear.person}) for ear in EARS):
            return False
        self.known[one.id] = replace(one, reach=reach)
        return True


def newest(one: Known) -> tuple[int, int]:
    """What was said last stands first."""
    return -one.said_at, -one.id


def within_earshot(ear: Ear, reach: Reach, same: set[str]) -> bool:
    """Whether somebody who is all of `same` is among those that a memory is for."""
    if reach.kind == "person":
        return ear.direct and reach.who in same
    if reach.kind == "conversation":
        return ear.lane is not None and ear.lane[:3] == reach.who
    return reach.kind == "all" or ear.lane == reach.who


def _reach(one: Known, to: str) -> Reach | None:
    if to == "global":
        return ALL
    if to == "person":
        return Reach("person", one.chat_of) if one.chat_of else None
    return None if one.lane is None else Reach("conversation", one.lane[:3])


EARS = (
    *(Ear(lane, DIRECT[lane[:3]], direct=True) for lane in LANES if lane[:3] in DIRECT),
    *(Ear(lane, person, direct=False) for lane in LANES if lane[:3] not in DIRECT for person in (OWNER, *PEOPLE)),
    *(Ear(None, person, direct=True) for person in (OWNER, *PEOPLE)),
)
"""Everybody there can be."""
