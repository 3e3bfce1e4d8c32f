"""Trails: where memories come from, looked up in the operational store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import apsw

from keepsaid.adapters.sqlite.query import every, numbers, only
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.memory import Source

SQL = load("trails")
_LOOKUPS = {"message": "said", "reply": "answered", "turn": "answered", "finding": "found"}


class SqliteTrails:
    """What memories were made from; read only."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def missing(self, sources: Sequence[Source]) -> frozenset[Source]:
        """Those of the messages, replies, turns and findings that are there no more."""
        return await self._readers.run(_missing, frozenset(sources))

    async def shown(self, turns: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """The memories that these turns were shown."""
        return await self._readers.run(_shown, tuple(turns))


def _missing(db: apsw.Connection, sources: frozenset[Source]) -> frozenset[Source]:
    return frozenset(one for one in sources if not _is_there(db, one))


def _is_there(db: apsw.Connection, source: Source) -> bool:
    """What is of another kind, or named otherwise, came from elsewhere: nothing is known of it here."""
    number = source.ref.partition(":")[0]
    lookup = _LOOKUPS.get(source.kind)
    return lookup is None or not number.isdecimal() or bool(only(db, SQL[lookup], (int(number),))[0])


def _shown(db: apsw.Connection, turns: tuple[int, ...]) -> Mapping[int, Sequence[int]]:
    found: dict[int, list[int]] = {}
    for turn_id, memory_id in every(db, SQL["shown"], (numbers((0, *turns)),)):
        found.setdefault(turn_id, []).append(memory_id)
    return found
