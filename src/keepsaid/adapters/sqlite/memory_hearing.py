"""Who hears a memory, widened by a person's word: its audience is another from then on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import apsw

from keepsaid.adapters.sqlite.memory_index import settle
from keepsaid.adapters.sqlite.memory_people import joined_with
from keepsaid.adapters.sqlite.memory_rows import audience, bound, memories, statements, storable
from keepsaid.adapters.sqlite.query import every
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.domain.memory import OWNER, Listener
from keepsaid.domain.text import normalise
from keepsaid.domain.widening import Refusal, Widened, WidenMemory, wider
from keepsaid.ports.operations import Operations
from keepsaid.ports.redactor import Redactor, masked_texts

SQL = statements("memory_hearing")


class SqliteHearing:
    """The audiences of the memories in one SQLite file; `writer` must know how a WidenMemory is applied."""

    def __init__(self, writer: Operations, readers: Readers, redactor: Redactor | None = None) -> None:
        self._writer = writer
        self._readers = readers
        self._redactor = redactor

    async def widen(self, commit: WidenMemory) -> Widened | Refusal:
        """Let a memory be heard more widely, or say why not; nothing is changed then. The reason holds no secret."""
        if self._redactor is not None:
            [plain] = await masked_texts(self._redactor, [commit.reason])
            commit = replace(commit, reason=plain.text)
        return await self._writer.apply(commit)

    async def widened(self, listener: Listener, memory_id: int) -> Sequence[Widened]:
        """How a memory that the listener may hear was widened, the first first."""
        return await self._readers.run(_widened, listener, memory_id)


def widen(db: apsw.Connection, commit: WidenMemory) -> Widened | Refusal:
    """Apply one commit; what is heard as far already is left as it is, and noted no more."""
    found = memories(db, SQL["whole"], {"id": commit.memory_id})
    if not found:
        return Refusal.GONE
    new = found[0].new
    speakers = joined_with(db, new.speaker_id) if new.speaker_id else ()
    if storable(commit.by) not in (OWNER, *speakers):
        return Refusal.NOT_THEIRS
    scope = wider(new, commit.to)
    if isinstance(scope, Refusal):
        return scope
    told = Widened(new.scope, scope, commit.by, normalise(commit.reason), commit.at)
    if scope == new.scope:
        return told
    place = audience(replace(new, scope=scope))
    db.execute(SQL["open_audience"], place)
    db.execute(SQL["widen"], (*place, commit.memory_id))
    noted = {"before": told.before, "after": told.after, "by": storable(told.by), "reason": told.reason, "at": told.at}
    db.execute(SQL["note"], {**noted, "id": commit.memory_id})
    settle(db)
    return told


def _widened(db: apsw.Connection, listener: Listener, memory_id: int) -> tuple[Widened, ...]:
    return tuple(Widened(*row) for row in every(db, SQL["widened"], {**bound(listener), "id": memory_id}))
