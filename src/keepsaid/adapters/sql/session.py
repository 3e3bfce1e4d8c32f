"""Session: what a commit or a query may use of a database connection, which stands in a transaction already.

A connection of apsw is one as it is. Another database adapts its connection to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

Row = tuple[Any, ...]
Bound = Sequence[Any] | Mapping[str, Any]
"""The values of a statement's `?` in their order, or of its `:name`s."""


class Rows(Protocol):
    """The rows of one statement; they are read once, before the next statement."""

    def __iter__(self) -> Iterator[Row]:
        """Give the rows one by one."""
        ...

    def fetchall(self) -> list[Row]:
        """Return the rows that were not read yet."""
        ...

    def get_description(self) -> Sequence[tuple[Any, ...]]:
        """Return one entry for each column, its name first."""
        ...


class SqlSession(Protocol):
    """Runs statements in the transaction of one commit or one query.

    It never begins, commits or rolls back: the writer and the readers do. An error of the database is raised as the
    database's own; whoever holds the transaction translates it.
    """

    def execute(self, sql: str, bound: Bound = (), /) -> Rows:
        """Run one statement."""
        ...

    def executemany(self, sql: str, sets: Iterable[Bound], /) -> Rows:
        """Run one statement once for each set of values."""
        ...

    def changes(self) -> int:
        """Return how many rows the last statement inserted, updated or deleted."""
        ...

    def total_changes(self) -> int:
        """Return how many rows were changed since the connection was opened."""
        ...

    def __enter__(self) -> Self:
        """Begin a savepoint."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Release the savepoint; roll back to it where an error left the block."""
        ...
