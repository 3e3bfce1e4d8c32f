"""Writing to PostgreSQL: each group of commits is one transaction that holds the writer's place."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any, cast

import psycopg
from psycopg import errors

from keepsaid.adapters.postgres.connection import WRITER_LOCK, PostgresPlace, connect, in_our_words
from keepsaid.adapters.postgres.dialect import PACKAGE, translated
from keepsaid.adapters.postgres.session import PostgresSession, SentStatement
from keepsaid.adapters.sql.marks import check_move_mark
from keepsaid.adapters.sql.query import CommitTable, Row, SqlSession, T, load, only
from keepsaid.adapters.sql.scripts import check_numbers
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.adapters.sql.writer import SAVEPOINT, CommitGroup, RejectedCommit, Writer
from keepsaid.domain.commits import Commit
from keepsaid.domain.forgetting import EmptyLog
from keepsaid.domain.process import Relinquish, VoidLeases
from keepsaid.errors import KeepsaidError, ProcessFenced, StoreError, StoreUnreachable
from keepsaid.ports.runtime import point

SQL = load("place", PACKAGE)
_PLACE_S = 20.0
"""How long the place is waited for, in several tries; a frozen process that holds it is ended after the first."""

_UPKEEP = 0x6B656575
"""The advisory lock of the process that keeps up."""

_OUTCOME_S, _LOOK_S = 5.0, 0.05
"""How long the outcome of a transaction is asked for after its connection broke, and how often."""

_REST_S = 0.5
"""How long no upkeep is looked for after none was due: to ask takes as long as a commit."""

_UNKNOWN = "What was to be stored is kept whole or not at all; only the server knows which."


class WriterSession(PostgresSession):
    """A session whose transactions hold the writer's place, one process at a time.

    `life` is the owner whose life has begun with this session: once it is over on record, nothing more is written.
    """

    def __init__(self, place: PostgresPlace) -> None:
        self._place, self._holder = place, secrets.token_hex(8)
        self._name = f"keepsaid {self._holder}"
        self.life: str | None = None
        self._has_written = False
        super().__init__(self._connected())
        self.transaction_id = 0
        self._holds_place = False
        self._beginning: Sequence[str] = ()
        self._version = 0

    def reconnect(self) -> None:
        """Connect again, and end what the server may still hold for the connection before."""
        self.connection.close()
        self.connection = self._connected()
        self.execute(SQL["end_former"], (self._name,))
        self.forget_rows()

    def _connected(self) -> psycopg.Connection[Any]:
        connection = connect(self._place, self._name)
        connection.execute(SQL["wait_for_place"])
        return connection

    def version(self) -> int:
        self._take_place()
        return self._version

    def forget_rows(self) -> None:
        """Let those that remember rows read them again."""
        self._version += 1

    @contextmanager
    def transaction(self, *, of_many: bool = False) -> Iterator[None]:
        """Run the block in a transaction, which waits for the writer's place together with its first statement.

        One of many commits begins with a savepoint. Raises ProcessFenced when the life of this process is over,
        SchemaTooNew when a newer release has shut it out.
        """
        self.transaction_id, self._holds_place = 0, False
        self._beginning = (SAVEPOINT,) if of_many else ("",)
        try:
            if not self._has_written:
                check_move_mark(self, str(self._place))
            self._has_written = True
            with self._open():
                yield
                self._take_place()  # before the end: its outcome is asked for by the number of the transaction
        finally:
            self._beginning = ()
            self._roll_back()

    def flush(self, *, back_to: str = "", then: Sequence[str] = ()) -> None:
        if self._beginning and not back_to and not then:
            self._send()
        super().flush(back_to=back_to, then=then)

    @property
    def may_go_on(self) -> bool:
        """Whether the transaction may take more commits: it holds the place, or has not begun."""
        return self._holds_place or bool(self._beginning)

    def _take_place(self) -> None:
        """Begin the transaction now, if it has not begun."""
        if self._beginning:
            self._send()

    def _send(self, *asked: SentStatement) -> None:
        """Send statements, and what begins the transaction before the first of them.

        The server cuts off who is idle in a transaction. Who was frozen within a statement, or between those that are
        sent together, is not idle for it: the next process that waits ends that one.
        """
        if not self._beginning:
            super()._send(*asked)
            return
        (saved,), self._beginning = self._beginning, ()
        first = [
            self._blind("BEGIN"),
            self._blind(translated(SQL["hold"]).text, (WRITER_LOCK,)),
        ]
        ahead, self._first, self._ahead = [*self._first, *self._ahead], [], []
        until = time.monotonic() + _PLACE_S
        while True:
            cursor = self.connection.cursor()
            check = SentStatement(translated(SQL["check"]).text, (self._holder, self.life), cursor)
            after = [self._blind(saved)] if saved else []
            try:
                self._exchange([*first, check, *after, *ahead, *asked])
            except errors.LockNotAvailable:
                self._roll_back()
                if time.monotonic() > until:
                    raise
                self.execute(SQL["end_silent"], (WRITER_LOCK,))
            except psycopg.Error:
                if not self.connection.closed and cursor.pgresult is not None:
                    self._note_place(cursor.fetchall())  # this process may have lost its life all the same
                raise
            else:
                self._note_place(cursor.fetchall())
                return

    def _note_place(self, found: Sequence[Row]) -> None:
        """Note what the statement `check` found, after the place was taken."""
        self.transaction_id, is_anothers, lives = found[0][:3]
        if is_anothers:
            self.forget_rows()
        check_numbers(str(self._place), [row[3:] for row in found if row[3] is not None])
        if self.life is not None and not lives:
            raise ProcessFenced("this process was silent for too long, and others took over its work")
        self._holds_place = True


class PostgresExecutor:
    """Writes one database; not safe for use by two threads at once. Any number of processes may have one."""

    quiet_s = 0.03

    def __init__(
        self, place: PostgresPlace, table: Callable[[SqlSession], CommitTable], keyring: TombstoneKeyring
    ) -> None:
        self._place = place
        self._session = WriterSession(place)
        self._session.attach(keyring)
        with in_our_words(place), ExitStack() as undo:
            undo.callback(self._session.connection.close)
            self._table = table(self._session)
            undo.pop_all()
        self._group = CommitGroup(self._session, self._table, self._refused, begins_saved=True)
        self._keeps_up = False
        self._tidy_at = 0.0

    def apply(self, commits: Sequence[object]) -> list[Any]:
        """Apply the commits in one transaction; a result for each, RejectedCommit where one was not kept.

        When the connection breaks, the server is asked for the outcome; what it has not kept is applied once more.
        """
        names = sorted({type(commit).__name__ for commit in commits})
        for name in names:
            point(f"commit.{name}.before")
        try:
            with in_our_words(self._place):
                results = self._transaction(commits)
        except Exception as error:  # noqa: BLE001  # guard: store writer - the writer outlives any commit
            self._session.forget_rows()
            self._group.notify_undone()
            return [RejectedCommit(error)] * len(commits)
        self._note_life([one for one, of in zip(commits, results, strict=True) if not isinstance(of, RejectedCommit)])
        for name in names:
            point(f"commit.{name}.after")
        return results

    def _note_life(self, commits: Sequence[object]) -> None:
        """Remember whose life began with these commits, which were kept, or that it ended."""
        for commit in commits:
            if isinstance(commit, VoidLeases):
                self._session.life = commit.owner
            elif isinstance(commit, Relinquish):
                self._session.life = None

    def _transaction(self, commits: Sequence[object], *, again: bool = True, careful: bool = False) -> list[Any]:
        """Apply commits in a transaction; where it ends in an error, what the last one posted is checked by itself."""
        session = self._session
        if session.connection.closed:
            self._reconnect()
        results: list[Any] = []
        try:
            with session.transaction(of_many=len(commits) > 1):
                results = self._group.apply(commits, checks_last=careful)
        except psycopg.Error:
            if not session.connection.closed:
                if not results or len(commits) == 1 or careful:
                    raise
                session.forget_rows()
                self._group.notify_undone()
                return self._transaction(commits, again=again, careful=True)
            if not results or not session.transaction_id or not self._was_committed():
                if again:
                    return self._transaction(commits, again=False, careful=careful)
                raise
        return results

    def _was_committed(self) -> bool:
        """Ask the server, once it is there again, how the last transaction ended. Raises StoreUnreachable after 5 s."""
        until = time.monotonic() + _OUTCOME_S
        while True:
            try:
                self._reconnect()
                [outcome] = only(self._session, SQL["outcome"], (self._session.transaction_id,))
            except (StoreUnreachable, psycopg.OperationalError) as error:
                if time.monotonic() > until:
                    what = f"{self._place} cannot be reached, and did not tell how its last transaction ended"
                    raise StoreUnreachable(what, safe=_UNKNOWN) from error
            else:
                if outcome != "in progress":
                    return bool(outcome == "committed")
            time.sleep(_LOOK_S)

    def _reconnect(self) -> None:
        """Connect again. With the connection went the place of the one that keeps up, and so does what it had begun."""
        self._session.reconnect()
        self._keeps_up = False
        self._group.notify_undone()

    def _refused(self, error: Exception) -> Exception | None:
        if self._session.connection.closed or not self._session.may_go_on:
            return None
        try:
            with in_our_words(self._place):
                raise error
        except KeepsaidError as ours:
            return ours
        except Exception as other:  # noqa: BLE001  # guard: store writer - a fault of one commit refuses that one
            return other

    def tidy(self) -> bool:
        """Do some upkeep, if no other process does; the server moves its log by itself.

        One process keeps up as long as its connection lasts: what it makes step by step has one history.
        """
        now = time.monotonic()
        if now < self._tidy_at:
            return False
        written = self._session.written
        with in_our_words(self._place):
            if not self._keeps_up:
                [self._keeps_up] = only(self._session, SQL["try_lock"], (_UPKEEP,))
            steps = [keep_up(self._session, False) for keep_up in self._table.upkeep] if self._keeps_up else []
        is_done = self._session.written == written and not any(steps)
        self._tidy_at = now + _REST_S if is_done else now
        return not is_done

    def close(self, *, broken: bool = False) -> None:
        """Close the connection."""
        del broken
        self._session.connection.close()


class VacuumingWriter(Writer):
    """A writer that frees the space of deleted rows on a connection of its own: no commit waits for that.

    It may take longer than the life of a process that is silent.
    """

    def __init__(self, place: PostgresPlace, executor: PostgresExecutor) -> None:
        super().__init__(executor, "postgres")
        self._place = place
        self._vacuuming: set[psycopg.Connection[Any]] = set()

    async def apply(self, commit: Commit[T]) -> T:
        result = await super().apply(commit)
        if isinstance(commit, EmptyLog):
            freed: Any = await asyncio.to_thread(self._vacuum) if commit.whole else True
            return cast("T", freed)
        return result

    def _vacuum(self) -> bool:
        """Free the space of deleted rows; False, for another try, where that fails or the writer is being closed."""
        try:
            with closing(connect(self._place, "keepsaid vacuum")) as connection:
                self._vacuuming.add(connection)
                try:
                    connection.execute(SQL["wait_for_place"])
                    [tables] = only(PostgresSession(connection), SQL["our_tables"])
                    if not self.is_closed:
                        connection.execute(f"VACUUM {tables}")
                finally:
                    self._vacuuming.discard(connection)
        except (psycopg.Error, StoreError):
            return False
        return not self.is_closed

    async def close(self) -> None:
        await super().close()
        for connection in tuple(self._vacuuming):
            connection.cancel()
