"""Libraries on SQLite: one commit a message, and synchronous=FULL, whatever their own default is.

The queues are fed by one producer, directly: their calls block, and a file has one writer, so that threads only add
waiting.
"""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from bench.contender import Absent, needed
from bench.intake import Put, one_commit_each
from keepsaid.domain.message import Inbound

_FULL = 2


@asynccontextmanager
async def aiosqlite(folder: Path) -> AsyncIterator[Put]:
    """aiosqlite, as it is measured beside intake."""
    needed("aiosqlite")
    async with one_commit_each(folder / "peer.db") as put:
        yield put


@asynccontextmanager
async def litequeue(folder: Path) -> AsyncIterator[Put]:
    """litequeue; it sets synchronous=NORMAL itself, which is undone on its connection."""
    queue = needed("litequeue").LiteQueue(folder / "queue.db")
    queue.conn.execute("PRAGMA synchronous = FULL")

    async def put(one: Inbound) -> object:
        return queue.put(one.content.payload.decode())

    with closing(queue):
        yield put


@asynccontextmanager
async def persist_queue(folder: Path) -> AsyncIterator[Put]:
    """persist-queue's SQLiteAckQueue; it has no setting for synchronous and leaves SQLite's default."""
    with closing(sqlite3.connect(":memory:")) as db:
        if db.execute("PRAGMA synchronous").fetchone()[0] != _FULL:
            raise Absent("it takes the default of this SQLite, which does not sync every commit")
    queue = needed("persistqueue").SQLiteAckQueue(str(folder), auto_commit=True)

    async def put(one: Inbound) -> object:
        return queue.put(one.content.payload)

    with closing(queue):
        yield put


@asynccontextmanager
async def huey(folder: Path) -> AsyncIterator[Put]:
    """huey's SqliteHuey with its own setting for it; a message is a task that is called with it."""
    program = needed("huey").SqliteHuey(filename=str(folder / "huey.db"), fsync=True)

    @program.task()  # type: ignore[untyped-decorator]
    def store(payload: str) -> str:
        return payload

    async def put(one: Inbound) -> object:
        return store(one.content.payload.decode())

    try:
        yield put
    finally:
        program.storage.close()
