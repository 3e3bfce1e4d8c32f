"""Readers: read-only connections, each on its own thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from keepsaid.adapters.sqlite.connection import SEARCHES_KIB, open_reader, translated
from keepsaid.adapters.sqlite.session import SqliteSession

_MOMENT_S = 0.05

P = ParamSpec("P")
T = TypeVar("T")


class Readers:
    """A few read-only connections to one file, each of which holds at most `cached_kib` of it in memory."""

    def __init__(self, path: Path, count: int = 2, cached_kib: int = SEARCHES_KIB) -> None:
        self.path = path
        self._cached_kib = cached_kib
        self._local = threading.local()
        self._open: list[SqliteSession] = []
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="keepsaid-read")

    async def run(self, query: Callable[Concatenate[SqliteSession, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `query` with a connection, off the event loop, inside one snapshot."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: self._run(query, *args, **kwargs))

    def _run(self, query: Callable[Concatenate[SqliteSession, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with translated(self.path):
            db = self._connection()
            db.execute("BEGIN")
            try:
                return query(db, *args, **kwargs)
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")

    def _connection(self) -> SqliteSession:
        db: SqliteSession | None = getattr(self._local, "db", None)
        if db is None:
            db = open_reader(self.path, self._cached_kib)
            self._local.db = db
            self._open.append(db)
        return db

    async def close(self) -> None:
        """Cut short what still runs after a moment, and close every connection.

        Nobody waits for it any more: a search through all that was ever said would hold up the stop.
        """
        ended = asyncio.ensure_future(asyncio.to_thread(self._pool.shutdown))
        while not (await asyncio.wait([ended], timeout=_MOMENT_S))[0]:
            for db in self._open:
                db.interrupt()
        for db in self._open:
            db.close()
