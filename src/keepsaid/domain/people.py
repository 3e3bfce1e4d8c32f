"""People: who is known by several identities. They are joined by command, never because of what they are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from keepsaid.domain.commits import Commit
from keepsaid.text.normal import joined, parted

_PARTS = 3


class Identity(NamedTuple):
    """Who somebody is in one medium: an id there that never changes, unlike a name."""

    channel: str
    account: str
    sender: str

    @property
    def person(self) -> str:
        """The person it is until it is joined with others, as `person_of` names it."""
        return joined(":", *self)


def identity_in(person: str) -> Identity | None:
    """The identity that a person's name says; None for the owner, and for what names no identity."""
    parts = parted(":", person, _PARTS)
    return Identity(*parts) if len(parts) == _PARTS and all(parts) else None


@dataclass(frozen=True, slots=True)
class Joined:
    """One identity of a person: by its name, when it was joined and by whom."""

    name: str
    at: int
    by: str


@dataclass(frozen=True, slots=True)
class Person:
    """Identities that are one person. The owner's own, which the configuration names, stand as `owner`."""

    id: str
    identities: tuple[Joined, ...]


@dataclass(frozen=True, slots=True)
class SeenIdentity:
    """An identity that something is remembered from: what it was last called, how much, and when the last was said."""

    name: str
    called: str
    memories: int
    last_at: int


@dataclass(frozen=True, slots=True)
class JoinPeople(Commit[Person | None]):
    """Make one person of these, and of all whom they were joined with before; `id` is for one that is new.

    Whoever is joined with the owner hears what is for the owner: where one of them is, and it is not the owner who
    commands it, nothing is changed and the result is None.
    """

    id: str
    names: tuple[str, ...]
    by: str
    at: int

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names) or len(self.names) < 2:
            raise ValueError("a person is made of two or more, each named once")


@dataclass(frozen=True, slots=True)
class SplitPerson(Commit[bool]):
    """Let one be a person alone again; whether it was joined. Of two, the other is alone then too."""

    name: str
