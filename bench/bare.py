"""The bare loop: one thread that inserts all that waits and commits it, and nothing else. The ceiling of intake.

A log of rows needs no index, a queue does: the loop runs on a table without any, and on one with the seed design's.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from queue import Empty, SimpleQueue

import apsw

from bench.intake import Put
from keepsaid.domain.message import Inbound

_GROUP_MAX = 512
_SCHEMA = """
CREATE TABLE message (
  id INTEGER PRIMARY KEY, channel TEXT NOT NULL, account TEXT NOT NULL, conversation TEXT NOT NULL,
  sender TEXT NOT NULL, sender_name TEXT NOT NULL, direct INTEGER NOT NULL, trust TEXT NOT NULL, external_id TEXT,
  provider_id TEXT, reply_to TEXT, topic TEXT, reply_url TEXT, event TEXT NOT NULL, priority INTEGER NOT NULL,
  received_at INTEGER NOT NULL, text TEXT NOT NULL, payload BLOB NOT NULL
) STRICT;
"""
_INDEXES = """
CREATE INDEX message_waiting ON message (priority, id);
CREATE INDEX message_conversation ON message (conversation, received_at);
CREATE INDEX message_retention ON message (received_at);
"""
_INSERT = "INSERT INTO message VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
Row = tuple[str | int | bytes | None, ...]
Job = tuple[Row, "asyncio.Future[None]"]


class BareLoop:
    """A group commit of rows: no de-duplication, no lanes, no ids, no seals."""

    def __init__(self, path: Path, schema: str) -> None:
        self._db = apsw.Connection(str(path))
        self._db.pragma("journal_mode", "wal")
        self._db.pragma("synchronous", "full")
        self._db.execute(schema)
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    async def put(self, one: Inbound) -> None:
        """Store a message; returns after it is on disk."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((row(one), future))
        await future

    async def close(self) -> None:
        """End the thread and close the file."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)
        self._db.close()

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            group = self._group(job)
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(_INSERT, [values for values, _ in group])
            self._db.execute("COMMIT")
            self._loop.call_soon_threadsafe(_tell, group)

    def _group(self, first: Job) -> list[Job]:
        group = [first]
        while len(group) < _GROUP_MAX:
            try:
                job = self._queue.get_nowait()
            except Empty:
                break
            if job is None:
                self._queue.put(None)
                break
            group.append(job)
        return group


def _tell(group: list[Job]) -> None:
    for _, future in group:
        future.set_result(None)


def row(one: Inbound) -> Row:
    """The columns that a message has in our store, less those that are worked out."""
    origin, content, marks = one.origin, one.content, one.marks
    return (
        origin.channel,
        origin.account,
        origin.conversation,
        origin.sender,
        origin.name,
        origin.direct,
        str(origin.trust),
        marks.external_id,
        marks.provider_id,
        marks.reply_to,
        one.topic,
        one.reply_url,
        content.event,
        one.priority,
        time.time_ns() // 1_000_000,
        content.text,
        content.payload,
    )


@asynccontextmanager
async def bare(folder: Path, schema: str = _SCHEMA) -> AsyncIterator[Put]:
    """The bare loop on a new file, its table without an index."""
    loop = BareLoop(folder / "bare.db", schema)
    try:
        yield loop.put
    finally:
        await loop.close()


def bare_indexed(folder: Path) -> AbstractAsyncContextManager[Put]:
    """The same, its rows found by what waits, by conversation and by age."""
    return bare(folder, _SCHEMA + _INDEXES)
