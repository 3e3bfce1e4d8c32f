"""What an operational store keeps that no view shows, looked up in its tables."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw

from keepsaid.adapters.postgres.connection import PostgresPlace, connect
from keepsaid.adapters.postgres.session import PostgresSession
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.event import JournalLine
from keepsaid_testkit.contracts.operations import ContractStore


class Kept:
    """What the store keeps for later parts: tasks, session marks, injections, the journal."""

    def __init__(self, store: ContractStore, place: Path | PostgresPlace) -> None:
        self.store = store
        self.place = place

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a statement reads."""
        if isinstance(self.store, InMemoryOperations):
            return self.store.database.rows(sql)
        if isinstance(self.place, PostgresPlace):
            with closing(connect(self.place)) as connection:
                return PostgresSession(connection).execute(sql).fetchall()
        db = apsw.Connection(str(self.place), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def tasks(self) -> list[tuple[Any, ...]]:
        """Key, state, description, count of messages."""
        return self.rows("SELECT key, state, description, messages FROM task ORDER BY id")

    def sessions(self) -> list[tuple[Any, ...]]:
        """Id, state, activity, mark and its reason."""
        return self.rows("SELECT id, state, active_at, invalidated_at, invalidated_reason FROM session ORDER BY id")

    def injections(self) -> list[tuple[Any, ...]]:
        """Turn and memory, in rank."""
        return self.rows("SELECT turn_id, memory_id FROM injection ORDER BY turn_id, rank")

    def batches(self) -> list[tuple[Any, ...]]:
        """State, end, error."""
        return self.rows("SELECT state, ended_at, error FROM batch ORDER BY id")

    def tries(self) -> list[tuple[Any, ...]]:
        """Number and tries of each step."""
        return self.rows("SELECT n, tries FROM step ORDER BY turn_id, n")

    def replies(self) -> list[tuple[Any, ...]]:
        """State, end, provider's id, and what was said of it."""
        return self.rows("SELECT state, ended_at, provider_id, detail FROM reply ORDER BY id")

    def lines(self) -> list[JournalLine]:
        """The journal, line by line."""
        rows = self.rows("SELECT id, topic, payload, correlation_id, created_at FROM journal ORDER BY id")
        return [JournalLine(*row) for row in rows]

    def journal(self) -> list[tuple[Any, ...]]:
        """Topic, correlation, payload, time."""
        return [(one.topic, one.correlation_id, json.loads(one.payload), one.at) for one in self.lines()]
