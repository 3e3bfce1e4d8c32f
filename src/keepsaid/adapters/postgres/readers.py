"""Readers of PostgreSQL: a few connections that cannot write, on threads of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Concatenate

import psycopg
from psycopg.pq import TransactionStatus

from keepsaid.adapters.postgres.connection import PostgresPlace, connect, in_our_words
from keepsaid.adapters.postgres.session import FetchedRows, PostgresSession, SentStatement
from keepsaid.adapters.sql.query import Bound, JointStatement, P, Row, T

_MOMENT_S = 0.05
_BEGIN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"


class _SeveralStatements(Exception):
    """A query that was taken for one statement has more."""


class ReadingSession(PostgresSession):
    """A session whose transaction begins with its first statement, and that can refuse a second one.

    Statements that end a query end its transaction in the same trip; where they are all of it, they also begin it.
    """

    _statements_left: int | None = None
    _has_ended = False

    def execute(self, sql: str, bound: Bound = (), /) -> FetchedRows:
        self._allow(1)
        return super().execute(sql, bound)

    def ask(self, *asked: JointStatement, ends: bool = False) -> list[list[Row]]:
        self._allow(1 if ends else len(asked))
        if ends and self._statements_left is not None and len(asked) > 1:
            self.begin()
        self._has_ended = ends
        return super().ask(*asked, ends=ends)

    def _send(self, *asked: SentStatement) -> None:
        is_open = self._first or self.connection.info.transaction_status != TransactionStatus.IDLE
        super()._send(*asked, *([self._blind("COMMIT")] if self._has_ended and is_open else ()))

    def _allow(self, count: int) -> None:
        assert not self._has_ended, "a query asks for nothing after its end"
        if self._statements_left is not None:
            if self._statements_left < count:
                raise _SeveralStatements
            self._statements_left -= count

    def begin(self) -> None:
        """Begin a transaction together with the next statement."""
        self._first, self._has_ended = [self._blind(_BEGIN)], False

    def end(self) -> None:
        """End the transaction, if there is one."""
        with suppress(psycopg.Error):
            self._roll_back()

    @contextmanager
    def one_statement(self) -> Iterator[None]:
        """Within it, a second statement raises."""
        self._statements_left, self._has_ended = 1, False
        try:
            yield
        finally:
            self._statements_left = None


class PostgresReaders:
    """A few connections that only read; each query sees one moment of the database.

    A statement sees one moment by itself. So a query is taken for one statement, until it turns out to have more: it is
    run once more in a transaction then, and in one at once from then on.
    """

    def __init__(self, place: PostgresPlace, count: int = 2) -> None:
        self.place = place
        self._local = threading.local()
        self._open: list[ReadingSession] = []
        self._several: set[object] = set()
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="keepsaid-read")

    async def run(self, query: Callable[Concatenate[PostgresSession, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query with a session, off the event loop; raises a StoreError."""
        return await self._answer(lambda db: _in_transaction(db, query, *args, **kwargs))

    async def view(self, query: Callable[Concatenate[PostgresSession, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query that does nothing but read."""
        if query in self._several:
            return await self.run(query, *args, **kwargs)
        try:
            return await self._answer(lambda db: _at_once(db, query, *args, **kwargs))
        except _SeveralStatements:
            self._several.add(query)
        return await self.run(query, *args, **kwargs)

    async def _answer(self, work: Callable[[ReadingSession], T]) -> T:
        """The result of a query, as soon as it is known: its transaction is ended afterwards."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            try:
                loop.call_soon_threadsafe(_settle, answer, self._run(work))
            finally:
                if (session := getattr(self._local, "session", None)) is not None:
                    session.end()

        def fail(ended: asyncio.Future[None]) -> None:
            error = None if ended.cancelled() else ended.exception()
            if error is not None and not answer.done():
                answer.set_exception(error)

        loop.run_in_executor(self._pool, run).add_done_callback(fail)
        return await answer

    def _run(self, work: Callable[[ReadingSession], T]) -> T:
        with in_our_words(self.place):
            session = self._session()
            try:
                return work(session)
            except psycopg.Error:
                if not session.connection.closed:
                    raise
            return work(self._session())  # the server was away for a moment; a query may be repeated

    def _session(self) -> ReadingSession:
        """The session of this thread, connected."""
        session: ReadingSession | None = getattr(self._local, "session", None)
        if session is None:
            session = self._local.session = ReadingSession(self._connected())
            self._open.append(session)
        elif session.connection.closed:
            session.connection = self._connected()
        return session

    def _connected(self) -> psycopg.Connection[Any]:
        connection = connect(self.place)
        connection.execute("SET default_transaction_read_only TO on")
        return connection

    async def close(self) -> None:
        """Cut short what still runs after a moment, and close every connection."""
        ended = asyncio.ensure_future(asyncio.to_thread(self._pool.shutdown))
        while not (await asyncio.wait([ended], timeout=_MOMENT_S))[0]:
            for session in self._open:
                session.connection.cancel()
        for session in self._open:
            session.connection.close()


def _settle(answer: asyncio.Future[T], result: T) -> None:
    if not answer.done():
        answer.set_result(result)


def _in_transaction(
    db: ReadingSession, query: Callable[Concatenate[PostgresSession, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    db.begin()
    return query(db, *args, **kwargs)


def _at_once(
    db: ReadingSession, query: Callable[Concatenate[PostgresSession, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    with db.one_statement():
        return query(db, *args, **kwargs)
