"""Entities in SQL: finds out which entity each name in a memory is, and writes the mentions."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from keepsaid.adapters.sql.memory.rows import MemoryAccess, bound, statements, storable
from keepsaid.adapters.sql.query import MemorySession, Row, as_json, column, every, reads
from keepsaid.domain.entities import (
    Entity,
    EntityKind,
    EntityTogether,
    MergeEntities,
    NamedEntity,
    Naming,
    entities_in,
    is_identity,
    key_name,
)
from keepsaid.domain.graph import name_words
from keepsaid.domain.memory import Listener, NewMemory
from keepsaid.text.normal import normalise

SQL = statements("memory_entities")
_LAST, _CALLED_MAX = 20, 8
"""The newest messages of an audience whose speakers are known by name there, and the entities of one name."""


_Place = tuple[str, str]


class _Candidate(NamedTuple):
    """An entity that has the name, and whether a memory of the same scope mentions it so."""

    key: str
    is_near: bool

    @property
    def kind(self) -> str:
        return self.key.partition(":")[0]

    def fits(self, kind: EntityKind) -> bool:
        """Whether a name of this kind may mean it; a person who is known elsewhere is another of the same name."""
        if not self.is_near and is_identity(self.key.partition(":")[2]):
            return False
        return EntityKind.THING in (kind, self.kind) or self.kind == kind


class _Named(NamedTuple):
    memory_id: int
    audience: int
    scope: str
    at: int
    entity: NamedEntity

    @property
    def place(self) -> _Place:
        """The words of the name, and the scope that they are used in."""
        return self.entity.words, self.scope


def name_entities(db: MemorySession, ids: Sequence[int]) -> None:
    """Write whom and what these memories mention, by rules; mentions that are there stay."""
    named = [
        _Named(id_, audience, scope, at, entity)
        for id_, audience, scope, at, *naming in every(db, SQL["to_name"], {"ids": as_json(ids)})
        for entity in entities_in(Naming(*naming))
    ]
    write_mentions(db, named)


def mention_learned(db: MemorySession, memory_id: int, memory: NewMemory) -> None:
    """Write what a memory is `about`, as whoever learned it says."""
    about = [NamedEntity(EntityKind(one.kind), one.name) for one in memory.about if name_words(one.name)]
    for id_, audience, scope, at, *_ in every(db, SQL["to_name"], {"ids": as_json([memory_id])}) if about else ():
        write_mentions(db, [_Named(id_, audience, scope, at, one) for one in about])


def write_mentions(db: MemorySession, named: Sequence[_Named]) -> None:
    """Find the entity of each name, or add one, and write the mentions."""
    if not named:
        return
    known = _known_names(db, named)
    for one in named:
        if key := _entity(db, one, known):
            known.called[one.place].append(_Candidate(key, is_near=True))
            name = {"name": normalise(one.entity.name), "words": one.entity.words, "weight": one.entity.weight}
            mention = {"memory_id": one.memory_id, "key": key, "at": one.at, **name}
            db.post(SQL["add_entity"], mention)
            db.post(SQL["mention"], mention)


class _KnownNames(NamedTuple):
    """Whom and what names mean: who speaks in an audience, what is called so, and persons with such a first name."""

    speakers: Mapping[tuple[int, str], set[str]]
    called: Mapping[_Place, list[_Candidate]]
    first_names: Mapping[_Place, list[str]]


def _known_names(db: MemorySession, named: Sequence[_Named]) -> _KnownNames:
    places = list(dict.fromkeys(one.place for one in named))
    known = _KnownNames(defaultdict(set), defaultdict(list), defaultdict(list))
    audiences = as_json({one.audience for one in named})
    for audience, speaker, speaker_id in every(db, SQL["speakers"], {"audiences": audiences, "last": _LAST}):
        for name in {name_words(speaker), *map(name_words, speaker.split()[:1])}:
            known.speakers[audience, name].add(speaker_id)
    bindings = {"names": as_json(places), "most": _CALLED_MAX, "last": _LAST}
    for n, key, is_near in every(db, SQL["called"], bindings):
        known.called[places[n]].append(_Candidate(key, bool(is_near)))
    unknown = [place for place in places if place not in known.called]
    for n, key in every(db, SQL["called_first"], {"names": as_json(unknown), "most": _CALLED_MAX * len(unknown)}):
        known.first_names[unknown[n]].append(key)
    return known


def _entity(db: MemorySession, one: _Named, known: _KnownNames) -> str:
    """The key of the entity that a name means; "" where it is uncertain that it is a name.

    A thing that turns out to be a person, a place or an organisation gets that key.
    """
    entity = one.entity
    if entity.identity:
        return entity.key
    may_be_person = entity.kind in (EntityKind.PERSON, EntityKind.THING)
    speakers = known.speakers.get((one.audience, entity.words), set())
    if may_be_person and len(speakers) == 1:
        return f"{EntityKind.PERSON}:{min(speakers)}"
    if fitting := [each for each in known.called.get(one.place, ()) if each.fits(entity.kind)]:
        best = max(fitting, key=lambda each: (each.kind == entity.kind, each.is_near, each.kind != EntityKind.THING))
        if best.kind == EntityKind.THING != entity.kind:
            db.post(SQL["rename"], {"old": best.key, "new": entity.key})
            for candidates in known.called.values():
                candidates[:] = [one._replace(key=entity.key) if one.key == best.key else one for one in candidates]
            return entity.key
        return best.key
    first_names = known.first_names.get(one.place, ())
    if may_be_person and len(first_names) == 1:
        return first_names[0]
    return entity.key if entity.certain else ""


def _listed(db: MemorySession, listener: Listener, kind: str, limit: int) -> Sequence[Entity]:
    bindings = {**bound(listener), "from": f"{kind}:" if kind else "", "to": f"{kind};" if kind else "\U0010ffff"}
    return [_entity_of(row) for row in every(db, SQL["listed"], {**bindings, "limit": max(0, limit)})]


def _found(db: MemorySession, listener: Listener, name: str) -> Sequence[Entity]:
    bindings = {**bound(listener), "key": storable(name), "words": name_words(name)}
    return [_entity_of(row) for row in every(db, SQL["found"], bindings)]


def _entity_of(row: Row) -> Entity:
    """An entity; the name that its key has comes first, then the most used."""
    key, names, memories, last_at = row
    own = key.partition(":")[2]
    ordered = sorted(json.loads(names), key=lambda name: key_name(name) != own)
    return Entity(key, tuple(ordered), memories, last_at)


def _mentioning(db: MemorySession, listener: Listener, keys: Sequence[str], limit: int, *, said: bool) -> Sequence[int]:
    return column(db, SQL["mentioning"], {**bound(listener), "keys": as_json(keys), "said": said, "limit": limit})


def _together(db: MemorySession, listener: Listener, keys: Sequence[str], limit: int) -> Sequence[EntityTogether]:
    found = every(db, SQL["together"], {**bound(listener), "keys": as_json(keys), "limit": limit})
    return [EntityTogether(*row) for row in found]


class SqlEntities(MemoryAccess):
    """Whom and what the memories mention."""

    listed = reads(_listed)
    found = reads(_found)
    mentioning = reads(_mentioning)
    together = reads(_together)

    async def merge(self, into: str, other: str) -> int:
        return await self._writer.apply(MergeEntities(into, other))


def merge_entities(db: MemorySession, commit: MergeEntities) -> int:
    """A memory that mentions both keeps its mention of the first."""
    names = {"into": storable(commit.into), "other": storable(commit.other)}
    mentions: dict[str, int] = dict(every(db, SQL["both"], names))
    if len(mentions) < 2:
        return 0
    for statement in ("move_mentions", "drop_mentions", "drop_entity"):
        db.post(SQL[statement], names)
    return mentions[names["other"]]
