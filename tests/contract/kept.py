"""What an operational store keeps that no view shows, looked up in memory or in its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apsw

from keepsaid.adapters.ram.operations import RamOperations
from keepsaid.domain.event import Line
from keepsaid.testing.contracts.operations import Store


class Kept:
    """What the store keeps for later parts: tasks, session marks, injections, the journal."""

    def __init__(self, store: Store, file: Path) -> None:
        self.store = store
        self.file = file

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a statement reads on SQLite."""
        db = apsw.Connection(str(self.file), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def tasks(self) -> list[tuple[Any, ...]]:
        """Key, state, description, count of messages."""
        if isinstance(self.store, RamOperations):
            return [(t.key, t.state, t.description, t.messages) for t in self.store.state.tasks.values()]
        return self.rows("SELECT key, state, description, messages FROM task ORDER BY id")

    def sessions(self) -> list[tuple[Any, ...]]:
        """Id, state, activity, mark and its reason."""
        if isinstance(self.store, RamOperations):
            sessions = [session for lane in self.store.state.lanes.values() for session in lane.sessions]
            return [(s.id, s.state, s.active_at, s.invalidated_at, s.invalidated_reason) for s in sessions]
        return self.rows("SELECT id, state, active_at, invalidated_at, invalidated_reason FROM session ORDER BY id")

    def injections(self) -> list[tuple[Any, ...]]:
        """Turn and memory, in rank."""
        if isinstance(self.store, RamOperations):
            return [(turn.id, memory) for turn in self.store.state.turns.values() for memory in turn.chosen]
        return self.rows("SELECT turn_id, memory_id FROM injection ORDER BY turn_id, rank")

    def batches(self) -> list[tuple[Any, ...]]:
        """State, end, error."""
        if isinstance(self.store, RamOperations):
            return [(b.state, b.ended_at, b.error) for b in self.store.state.batches.values()]
        return self.rows("SELECT state, ended_at, error FROM batch ORDER BY id")

    def tries(self) -> list[tuple[Any, ...]]:
        """Number and tries of each step."""
        if isinstance(self.store, RamOperations):
            return [(n, row.tries) for turn in self.store.state.turns.values() for n, row in turn.steps.items()]
        return self.rows("SELECT n, tries FROM step ORDER BY turn_id, n")

    def replies(self) -> list[tuple[Any, ...]]:
        """State, end, provider's id, and what was said of it."""
        if isinstance(self.store, RamOperations):
            return [(r.state, r.ended_at, r.provider_id, r.detail) for r in self.store.state.replies.values()]
        return self.rows("SELECT state, ended_at, provider_id, detail FROM reply ORDER BY id")

    def lines(self) -> list[Line]:
        """The journal, line by line."""
        if isinstance(self.store, RamOperations):
            return list(self.store.state.journal)
        rows = self.rows("SELECT id, topic, payload, correlation_id, created_at FROM journal ORDER BY id")
        return [Line(*row) for row in rows]

    def journal(self) -> list[tuple[Any, ...]]:
        """Topic, correlation, payload, time."""
        return [(one.topic, one.correlation_id, json.loads(one.payload), one.at) for one in self.lines()]
