"""Entities: the people, places, organisations and things that memories name, and what a memory says of each."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from keepsaid.domain.attribute_values import ValueKind, kind_of
from keepsaid.domain.attributes import slot_name
from keepsaid.domain.commits import Commit
from keepsaid.domain.graph import name_words
from keepsaid.domain.memory import OWNER, Memory
from keepsaid.text.memory_commands import is_question, sentences
from keepsaid.text.names import NAME_WORDS_MAX, names_in
from keepsaid.text.words import fold, spelled
from keepsaid.values import frozen


class EntityKind(StrEnum):
    """What an entity is. A thing may be anything, until a fact says what it is."""

    PERSON = "person"
    PLACE = "place"
    ORGANISATION = "organisation"
    THING = "thing"


_OF_VALUES = {
    ValueKind.PLACE: EntityKind.PLACE,
    ValueKind.PERSON: EntityKind.PERSON,
    ValueKind.WORKPLACE: EntityKind.ORGANISATION,
}
_ATTRIBUTES_OF_PEOPLE = """
lives_in born_in employer job birthday spouse child friend likes dislikes speaks allergy hobby pet diet name nickname
email phone visited owes plans
"""
_OF_PEOPLE = frozenset(_ATTRIBUTES_OF_PEOPLE.split())
"""Attributes that only people have."""

_OWN_NAMES = frozenset(["name", "nickname"])
"""Attributes whose value is another name of their subject."""

_ASKING_CHARS_MAX = 300
"""A longer text tells something, too."""

IN_TEXT = 0.5
"""The weight of a mention in running text; measured, see docs/develop/benchmarks-archive.md."""

_ARTICLES = ("the ", "a ", "an ")


@frozen
class NamedEntity:
    """An entity as a memory names it.

    `identity` is the person's, as `person_of` names it, where it is known who is meant. One that is not `certain` is
    written like a name and may be none: it counts only if there is such an entity. `weight` is its mention's.
    """

    kind: EntityKind
    name: str
    identity: str = ""
    certain: bool = True
    weight: float = 1.0

    @property
    def words(self) -> str:
        """What the ways to write the name have in common."""
        return name_words(self.name)

    @property
    def key(self) -> str:
        """The key of a new entity of this name."""
        return f"{self.kind}:{self.identity or key_name(self.name)}"


def key_name(name: str) -> str:
    """A name as keys have it: its words, folded."""
    return " ".join(map(fold, spelled(name)))


@frozen
class Naming:
    """What of a memory its entities are read from; `subject_id` is the person it is about, "" where nobody knows."""

    text: str
    subject: str = ""
    subject_id: str = ""
    attribute: str = ""
    value: str = ""


def entities_in(naming: Naming) -> tuple[NamedEntity, ...]:
    """Return whom and what a memory names, each once: its subject, the value of its slot, and names in its text."""
    found: dict[str, NamedEntity] = {}
    for one in (*_of_slot(naming), *_of_text(naming.text)):
        if one.words and (one.words not in found or one.certain > found[one.words].certain):
            found[one.words] = one
    return tuple(found.values())


def _of_slot(naming: Naming) -> Iterator[NamedEntity]:
    attribute = slot_name(naming.attribute) if naming.attribute else ""
    subject, value = _bare(naming.subject), _bare(naming.value)
    if value and attribute in _OWN_NAMES:
        yield NamedEntity(EntityKind.PERSON, value, naming.subject_id)
    if subject:
        is_person = naming.subject_id or attribute in _OF_PEOPLE
        kind = EntityKind.PERSON if is_person else EntityKind.THING
        yield NamedEntity(kind, subject, naming.subject_id)
    if value and attribute not in _OWN_NAMES and (of_value := _OF_VALUES.get(kind_of(naming.attribute))):
        yield NamedEntity(of_value, value)


def _of_text(text: str) -> Iterator[NamedEntity]:
    """The names in a text; none in one that only asks: it says nothing about anybody."""
    if len(text) <= _ASKING_CHARS_MAX and all(map(is_question, sentences(text))):
        return
    for name in names_in(text):
        yield NamedEntity(EntityKind.THING, name.text, certain=name.certain, weight=IN_TEXT)


def _bare(name: str) -> str:
    """A name without an article; "" for what is too long for one."""
    name = " ".join(name.split())
    for article in _ARTICLES:
        if name.casefold().startswith(article):
            name = name[len(article) :]
    return name if len(name.split()) <= NAME_WORDS_MAX else ""


@frozen
class Entity:
    """An entity with the names that memories have for it, the most used first, and how many memories mention it.

    `key` is its kind and, behind a colon, its name or the person that it is. `last_at` is milliseconds UTC.
    """

    key: str
    names: tuple[str, ...]
    memories: int
    last_at: int

    @property
    def kind(self) -> str:
        """What it is."""
        return self.key.partition(":")[0]

    @property
    def identity(self) -> str:
        """The person that it is, as `person_of` names it; "" for one that is known by name only."""
        name = self.key.partition(":")[2]
        return name if self.kind == EntityKind.PERSON and is_identity(name) else ""


def is_identity(name: str) -> bool:
    """Whether what stands in a key is a person's identity and not a name."""
    return ":" in name or name == OWNER


class EntityTogether(NamedTuple):
    """An entity that is mentioned together with another, and in how many memories."""

    entity: str
    name: str
    memories: int


@frozen
class EntityPage:
    """What is known of an entity: facts that hold, facts that held before, messages that mention it, what is near it.

    Each list has the newest or most frequent first and is bounded.
    """

    entity: Entity
    facts: tuple[Memory, ...] = ()
    past: tuple[Memory, ...] = ()
    messages: tuple[Memory, ...] = ()
    together: tuple[EntityTogether, ...] = ()


@frozen
class MergeEntities(Commit[int]):
    """Move the mentions of one entity to another, by their keys; returns how many were moved, 0 if either is gone."""

    into: str
    other: str
