"""What readers see of collection: marked sessions, and what was said in one."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite.collection import RUN, SQL
from keepsaid.adapters.sqlite.query import Row, every, one
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.domain.collection import CollectionLine, Passage, Utterance
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Role
from keepsaid.domain.visibility import OWN_TOOLS

_OWN_TOOLS = json.dumps(sorted(OWN_TOOLS))


class SqliteCollections:
    """Marked sessions and their records, read only."""

    _readers: Readers

    async def collections(self, states: Sequence[str], limit: int) -> Sequence[CollectionLine]:
        """Sessions whose collection is in one of these states."""
        return await self._readers.run(_lines, states, limit)

    async def passage(self, session_id: int, after: int, limit: int) -> Passage | None:
        """What was said in a session after a position."""
        return await self._readers.run(_passage, session_id, after, limit)

    async def marked_at(self) -> int | None:
        """When the last run that marked every unread session ended."""
        return await self._readers.run(_marked_at)


def _lines(db: apsw.Connection, states: Sequence[str], limit: int) -> Sequence[CollectionLine]:
    rows = every(db, SQL["lines"], (json.dumps(list(states)), limit))
    return [CollectionLine(row[0], Lane(*row[1:5]), *row[5:]) for row in rows]


def _passage(db: apsw.Connection, session_id: int, after: int, limit: int) -> Passage | None:
    extent = one(db, SQL["extent"], (session_id,))
    if extent is None:
        return None
    lane_id, *place, first, last, external = extent
    begins = max(after, first - 1)
    rows = every(db, SQL["utterances"], (lane_id, begins, last, limit, external, first, _OWN_TOOLS))
    ends = rows[-1][0] if len(rows) == limit else last
    return Passage(Lane(*place), begins + 1, ends, tuple(map(_utterance, rows)))


def _utterance(row: Row) -> Utterance:
    position, role, text, ref, speaker, sender, trust, direct, at = row
    believed = Trust(trust) if trust else Trust.EXTERNAL
    return Utterance(position, Role(role), text, ref, speaker, sender, believed, bool(direct), at)


def _marked_at(db: apsw.Connection) -> int | None:
    row = one(db, SQL["last_run"], (RUN,))
    return None if row is None else row[0]
