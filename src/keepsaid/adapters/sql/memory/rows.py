"""Rows of memory: how they read as values, who may read them, and which identities are one person."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from keepsaid.adapters.sql.memory.standing import not_current
from keepsaid.adapters.sql.query import (
    MemorySession,
    Row,
    SqlReaders,
    as_json,
    column,
    every,
    load,
    log,
    post_each,
    reads,
    writes,
)
from keepsaid.adapters.sql.search.tokens import stems_of
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain import ids, message, visibility
from keepsaid.domain.memory import LANE_BOUND, OWNER, TASK, Kind, Listener, Memory, NewMemory, Source, VectorSpace
from keepsaid.errors import MessageDamaged
from keepsaid.ports import runtime, store_views
from keepsaid.text import normal
from keepsaid.text.languages import indexed_terms


class MemoryParts(NamedTuple):
    """What all parts of the memory store share; no secret that the `redactor` knows is ever written."""

    writer: store_views.Operations
    readers: SqlReaders
    ids: runtime.Ids
    redactor: runtime.Redactor | None
    keyring: TombstoneKeyring


class MemoryAccess:
    """A part of the memory store; its methods are `reads(...)` and `writes(...)`."""

    def __init__(self, parts: MemoryParts) -> None:
        self._writer, self._readers, self._ids, self._redactor, self._keyring = parts

    def _new_ids(self, count: int) -> tuple[int, ...]:
        return tuple(self._ids.next() for _ in range(count))

    async def _masked(self, texts: Sequence[str]) -> Sequence[str]:
        """The texts, with the secrets that the redactor knows masked."""
        return [one.text for one in await runtime.masked_texts(self._redactor, texts)] if self._redactor else texts

    async def _without_secrets(self, memories: Sequence[NewMemory]) -> Sequence[NewMemory]:
        """The memories, with the secrets in text and value masked."""
        found = await self._masked([part for memory in memories for part in (memory.text, memory.value)])
        plain = zip(memories, found[::2], found[1::2], strict=True)
        return [replace(memory, text=text, value=value) for memory, text, value in plain]


_KINDS = {str(kind): kind for kind in Kind}
_TRUSTS = {str(trust): trust for trust in message.Trust}


_PARTS = ("heard", "audiences", "scopes", "same_lane", "columns", "replaced_by", "held_until", "learned_from")


def filled(found: Mapping[str, str]) -> Mapping[str, str]:
    """The statements with the common rule of visibility and the columns inserted."""
    parts = load("memory")
    for part in _PARTS:
        found = {name: sql.replace(f"/*{part}*/", parts[part]) for name, sql in found.items()}
    return found


def statements(page: str) -> Mapping[str, str]:
    """The statements of a page, filled."""
    return filled(load(page))


SQL = statements("memory")


def rows(db: MemorySession, statement: str, bindings: Mapping[str, Any]) -> list[Row]:
    """All rows of a named statement of memory."""
    return every(db, SQL[statement], bindings)


def memories(db: MemorySession, sql: str, bindings: Mapping[str, Any]) -> list[Memory]:
    """The memories that a statement finds, without those that are not what was written: these are logged."""
    return [memory(row) for row in intact(db, every(db, sql, bindings))]


def intact(db: MemorySession, found: Sequence[Row]) -> list[Row]:
    """The rows that begin with the id of a memory, without those of memories that are not what was written."""
    damaged = db.altered("memory", [row[0] for row in found])
    for id_ in damaged:
        log.error("memory %d is not what was stored: it is left out", id_, extra={"code": MessageDamaged.code})
    return [row for row in found if row[0] not in damaged] if damaged else list(found)


def hexadecimal(hashes: Iterable[bytes]) -> str:
    """Hashes as statements take them: a JSON list in hexadecimal."""
    return as_json(hash_.hex() for hash_ in hashes)


def storable(name: str) -> str:
    """A name as SQLite can hold it: NUL and lone surrogates are written out, so that two names stay two."""
    if name.isascii() and "\0" not in name:
        return name
    return name.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def storable_texts(memory: NewMemory) -> dict[str, Any]:
    """The names and texts of a memory as they are stored."""
    names = {name: storable(getattr(memory, name)) for name in ("key", "scope", "speaker_id", "subject_id", "chat_of")}
    texts = ("subject", "speaker", "attribute", "value", "text")
    return {**names, **{name: normal.normalise(getattr(memory, name)) for name in texts}}


def bound(listener: Listener) -> dict[str, Any]:
    """What the rule `heard` is bound to; a listener outside any lane shares a lane with nothing."""
    person = storable(listener.person) if listener.direct and listener.person else None
    names = {"person": person, "scopes": as_json(map(storable, listener.scopes)), **lane_columns(listener.lane)}
    may = {name: getattr(listener, name) for name in ("everything", "cross", "asked", "chats")}
    return {**names, **may}


def lane_columns(lane: message.Lane | None) -> dict[str, str | None]:
    """The names of a lane as memory stores them; NULL without a lane."""
    names = ("channel", "account", "conversation", "lane_key")
    return dict(zip(names, [None] * 4 if lane is None else map(storable, lane), strict=True))


def space_names(space: VectorSpace) -> dict[str, Any]:
    """What statements about a space are bound to."""
    return {name: getattr(space, name) for name in ("model", "revision", "dimension", "weights_hash")}


_ASKED_FOR = 2
"""A memory bound with this value is readable on request, in any lane of its scope; 1 binds it to its lane."""


def audience(memory: NewMemory) -> tuple[str | int, ...]:
    """The readers of a memory: its scope, whether it is external, whether it stays in its lane, and then that lane."""
    if any(source.kind == TASK for source in memory.sources):
        return (storable(memory.scope), 0, _ASKED_FOR, 0, "", "", "", "")
    external, bound_to_lane = memory.trust is message.Trust.EXTERNAL, memory.kind in LANE_BOUND
    lane = memory.lane if external or bound_to_lane else None
    parts = ("", "", "", "") if lane is None else tuple(map(storable, lane))
    return (storable(memory.scope), int(external), int(bound_to_lane), int(lane is not None), *parts)


def memory(row: Row) -> Memory:
    """The memory of a row of `columns`."""
    id_, key, kind, state, scope, trust = row[:6]
    said_at, recorded_at, importance, subject, speaker, text, derived, version, metadata, sources = row[10:20]
    attribute, value, valid_from, stated_to, confidence, corrects = row[22:28]
    what = (key, _KINDS[kind], text, scope, _TRUSTS[trust], None if row[9] is None else message.Lane(*row[6:10]))
    of = (speaker, subject, said_at, importance, _sources(sources), bool(derived))
    slot = (attribute, value, valid_from, stated_to, confidence, bool(corrects))
    new = NewMemory(*what, *of, version, metadata, *slot, *row[32:])
    return Memory(id_, new, state, recorded_at, *(*row[20:22], *row[28:31], bool(row[31])))


def _sources(listed: str) -> tuple[Source, ...]:
    """The sources of a row of `columns`; most memories have none."""
    return () if listed == "[]" else tuple(Source(*one) for one in json.loads(listed))


def own_terms(text: str) -> Iterator[str]:
    """What a piece is found by: its stems, and further terms of its language."""
    yield from stems_of(text)
    yield from indexed_terms(text)


PEOPLE = load("memory_people")


def joined_with(db: MemorySession, name: str) -> tuple[str, ...]:
    return tuple(column(db, PEOPLE["same"], (storable(name),))) or (storable(name),)


def listed(db: MemorySession) -> tuple[visibility.Person, ...]:
    return _persons(every(db, PEOPLE["everybody"]))


def _seen(db: MemorySession, limit: int) -> tuple[visibility.SeenIdentity, ...]:
    rows = every(db, PEOPLE["seen"], {"limit": max(1, limit)})
    return tuple(visibility.SeenIdentity(*row) for row in rows[: max(0, limit)])


class SqlPeople(MemoryAccess):
    """The people that the memories are for."""

    joined_with = reads(joined_with)
    everybody = reads(listed)
    seen = reads(_seen)
    split = writes(visibility.SplitPerson)

    async def join(self, names: Sequence[str], by: str, at: int) -> visibility.Person | None:
        person = ids.show("person", self._ids.next())
        return await self._writer.apply(visibility.JoinPeople(person, tuple(names), by, at))


def join(db: MemorySession, commit: visibility.JoinPeople) -> visibility.Person | None:
    """A person that some of the names belong to already is joined with all its identities."""
    names = as_json(map(storable, commit.names))
    known = column(db, PEOPLE["persons"], (names,))
    if OWNER in {*commit.names, *column(db, PEOPLE["together"], (names,))} and commit.by != OWNER:
        return None
    person = (*known, commit.id)[0]
    values = {"names": names, "person": person, "by": storable(commit.by), "at": commit.at}
    db.post(PEOPLE["absorb"], values)
    db.post(PEOPLE["join"], values)
    [joined] = _persons(every(db, PEOPLE["person"], (person,)))
    return joined


def split(db: MemorySession, commit: visibility.SplitPerson) -> bool:
    """Of two, the other is alone then too."""
    left = every(db, PEOPLE["leave"], (storable(commit.name),))
    post_each(db, PEOPLE["alone"], left)
    return bool(left)


def _persons(rows: Sequence[Row]) -> tuple[visibility.Person, ...]:
    grouped = groupby(rows, key=itemgetter(0))
    return tuple(visibility.Person(id_, tuple(visibility.Joined(*row[1:]) for row in of)) for id_, of in grouped)


MEMORY_HEARING = statements("memory_hearing")


def _list_shares(db: MemorySession, listener: Listener, memory_id: int) -> tuple[visibility.MemoryShared, ...]:
    found = every(db, MEMORY_HEARING["widened"], {**bound(listener), "id": memory_id})
    return tuple(visibility.MemoryShared(*row) for row in found)


class SqlSharing(MemoryAccess):
    """Sharing of memories; secrets in the reason that a command gives are masked."""

    list_shares = reads(_list_shares)

    async def share(self, commit: visibility.ShareMemory) -> visibility.ShareResult:
        [reason] = await self._masked([commit.reason])
        return await self._writer.apply(replace(commit, reason=reason))


def share(db: MemorySession, commit: visibility.ShareMemory) -> visibility.ShareResult:
    """If the memory is shared as widely already, nothing is changed or recorded."""
    if not (found := memories(db, MEMORY_HEARING["whole"], {"id": commit.memory_id})):
        return visibility.ShareRefusal.GONE
    new = found[0].new
    speakers = joined_with(db, new.speaker_id) if new.speaker_id else ()
    if storable(commit.by) not in (OWNER, *speakers):
        return visibility.ShareRefusal.NOT_THEIRS
    if (refusal := not_current(db, commit.memory_id, commit.at)) is not None:
        return refusal
    if isinstance(scope := visibility.wider(new, commit.to), visibility.ShareRefusal):
        return scope
    shared = visibility.MemoryShared(new.scope, scope, commit.by, normal.normalise(commit.reason), commit.at)
    if scope == new.scope:
        return shared
    place = audience(replace(new, scope=scope))
    db.post(MEMORY_HEARING["open_audience"], place)
    db.post(MEMORY_HEARING["widen"], (*place, commit.memory_id))
    values = {"before": new.scope, "after": scope, "by": storable(commit.by), "reason": shared.reason, "at": commit.at}
    db.post(MEMORY_HEARING["note"], {**values, "id": commit.memory_id})
    db.reindex()
    return shared
