"""Rows of memory: how they read as values, who may hear them, and memories without secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from keepsaid.adapters.sql.query import SqlSession, every, load
from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import LANE_BOUND, TASK, Kind, Listener, Memory, NewMemory, Source, VectorSpace
from keepsaid.domain.message import Trust
from keepsaid.errors import MessageDamaged
from keepsaid.ports.runtime import Redactor, masked_texts
from keepsaid.text.chunks import grams


async def without_secrets(redactor: Redactor | None, memories: Sequence[NewMemory]) -> Sequence[NewMemory]:
    """The memories, with the secrets that the redactor knows masked in text and value."""
    if redactor is None:
        return memories
    found = await masked_texts(redactor, [part for memory in memories for part in (memory.text, memory.value)])
    return [
        replace(memory, text=text.text, value=value.text) if text.marks or value.marks else memory
        for memory, text, value in zip(memories, found[::2], found[1::2], strict=True)
    ]


Row = tuple[Any, ...]
_log = logging.getLogger("keepsaid.store")

_KINDS = {str(kind): kind for kind in Kind}
_TRUSTS = {str(trust): trust for trust in Trust}


def statements(page: str) -> Mapping[str, str]:
    """The statements of a page, each with the one rule of who hears what, and the columns, written in."""
    parts = load("memory")
    found = dict(load(page))
    for part in ("heard", "audiences", "scopes", "same_lane", "columns"):
        found = {name: sql.replace(f"/*{part}*/", parts[part]) for name, sql in found.items()}
    return MappingProxyType(found)


SQL = statements("memory")


def rows(db: SqlSession, statement: str, bindings: Mapping[str, Any]) -> list[Row]:
    """All rows of a named statement of memory."""
    return every(db, SQL[statement], bindings)


def memories(db: SqlSession, sql: str, bindings: Mapping[str, Any]) -> list[Memory]:
    """The memories that a statement finds, without those that are not what was written: these are logged."""
    return [memory(row) for row in intact(db, every(db, sql, bindings))]


def intact(db: SqlSession, found: Sequence[Row]) -> list[Row]:
    """The rows that begin with the id of a memory, without those of memories that are not what was written."""
    damaged = db.altered("memory", [row[0] for row in found])
    for id_ in damaged:
        _log.error("memory %d is not what was stored: it is left out", id_, extra={"code": MessageDamaged.code})
    return [row for row in found if row[0] not in damaged] if damaged else list(found)


def hexadecimal(hashes: Iterable[bytes]) -> str:
    """Hashes as statements take them: a JSON list in hexadecimal."""
    return json.dumps([hash_.hex() for hash_ in hashes])


def storable(name: str) -> str:
    """A name as SQLite can hold it: NUL and lone surrogates are written out, so that two names stay two."""
    if name.isascii() and "\0" not in name:
        return name
    return name.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")


def bound(listener: Listener) -> dict[str, Any]:
    """What the rule `heard` is bound to; a listener outside any lane shares a lane with nothing."""
    return {
        "everything": listener.everything,
        "cross": listener.cross,
        "asked": listener.asked,
        "person": storable(listener.person) if listener.direct and listener.person else None,
        "scopes": json.dumps([storable(scope) for scope in listener.scopes], ensure_ascii=False),
        **lane_columns(listener.lane),
    }


def lane_columns(lane: Lane | None) -> dict[str, str | None]:
    """The names of a lane as memory stores them; NULL without a lane."""
    names = ("channel", "account", "conversation", "lane_key")
    return dict(zip(names, [None] * 4 if lane is None else map(storable, lane), strict=True))


def space_names(space: VectorSpace) -> dict[str, Any]:
    """What statements about a space are bound to."""
    return {name: getattr(space, name) for name in ("model", "revision", "dimension", "weights_hash")}


_ASKED_FOR = 2
"""What is bound so is heard by who asks for it, in any lane of its scope; 1 is bound to its lane."""


def audience(memory: NewMemory) -> tuple[str | int, ...]:
    """Who may hear a memory: its scope, whether it is external, whether it stays in its lane, and then that lane."""
    if any(source.kind == TASK for source in memory.sources):
        return (storable(memory.scope), 0, _ASKED_FOR, 0, "", "", "", "")
    external, bound_to_lane = memory.trust is Trust.EXTERNAL, memory.kind in LANE_BOUND
    lane = memory.lane if external or bound_to_lane else None
    parts = ("", "", "", "") if lane is None else tuple(map(storable, lane))
    return (storable(memory.scope), external, bound_to_lane, lane is not None, *parts)


def memory(row: Row) -> Memory:
    """The memory of a row of `columns`."""
    (id_, key, kind, state, scope, trust, channel, account, conversation, lane_key, said_at, recorded_at) = row[:12]
    importance, subject, speaker, text, derived, version, metadata, sources, access_count, last_access_at = row[12:22]
    attribute, value, valid_from, stated_to, confidence, corrects, superseded_by, valid_to, evidence, pinned = row[
        22:32
    ]
    speaker_id, subject_id, chat_of = row[32:]
    new = NewMemory(
        key=key,
        kind=_KINDS[kind],
        text=text,
        scope=scope,
        trust=_TRUSTS[trust],
        lane=None if lane_key is None else Lane(channel, account, conversation, lane_key),
        speaker=speaker,
        subject=subject,
        said_at=said_at,
        importance=importance,
        sources=tuple(Source(kind, ref) for kind, ref in json.loads(sources)),
        derived=bool(derived),
        version=version,
        metadata=metadata,
        attribute=attribute,
        value=value,
        valid_from=valid_from,
        valid_to=stated_to,
        confidence=confidence,
        corrects=bool(corrects),
        speaker_id=speaker_id,
        subject_id=subject_id,
        chat_of=chat_of,
    )
    used = (access_count, last_access_at)
    return Memory(id_, new, state, recorded_at, *used, superseded_by, valid_to, evidence, bool(pinned))


def own_terms(db: SqlSession, text: str) -> Iterator[str]:
    """What a piece is found by: its stems, and the pairs of letters where no spaces are set."""
    yield from db.stems(text)
    yield from grams(text, letters=True)
