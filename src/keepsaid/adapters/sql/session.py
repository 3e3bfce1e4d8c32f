"""Session: what a commit or a query may use of a database connection, which stands in a transaction already.

Each database adapts its connection to it (`adapters/sqlite/session.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

Row = tuple[Any, ...]
Bound = Sequence[Any] | Mapping[str, Any]
"""The values of a statement's `?` in their order, or of its `:name`s."""


class Rows(Protocol):
    """The rows of one statement; they are read once, before the next statement."""

    def __iter__(self) -> Iterator[Row]:
        """Give the rows one by one."""

    def fetchall(self) -> list[Row]:
        """Return the rows that were not read yet."""

    def get_description(self) -> Sequence[tuple[Any, ...]]:
        """Return one entry for each column, its name first."""


P = ParamSpec("P")
T = TypeVar("T")


class SearchSession(Protocol):
    """The search index of the database."""

    def reindex(self) -> None:
        """Make the search pieces of all memories that changed anew, in the transaction that changed them."""

    def stems(self, text: str) -> list[str]:
        """Return the stems of a text in order, as the full text has them."""

    def count_terms(self, most: int) -> bool:
        """Count some terms of the full text anew; returns whether that was all, or nothing is new."""

    def alike(self, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]:
        """Return the pairs of these memories, the smaller id first, whose vectors have a cosine above `above`."""


class SqlSession(SearchSession, Protocol):
    """Runs statements in the transaction of one commit or one query; raises the errors of the database as they are."""

    def execute(self, sql: str, bound: Bound = (), /) -> Rows:
        """Run one statement."""

    def executemany(self, sql: str, sets: Iterable[Bound], /) -> Rows:
        """Run one statement once for each set of values."""

    def changes(self) -> int:
        """Return how many rows the last statement inserted, updated or deleted."""

    def total_changes(self) -> int:
        """Return how many rows were changed since the connection was opened."""

    def numbers(self, values: Sequence[int]) -> object:
        """Return what whole numbers are bound as, all in one value."""

    def texts(self, values: Sequence[str] | Sequence[bytes]) -> object:
        """Return what texts or blobs are bound as, all in one value."""

    def altered(self, table: str, keys: Sequence[int], *outer: object) -> frozenset[int]:
        """Return keys of the rows that are not what was written; `outer` are the key's columns before the last."""

    def record_undo(self, number: int | None, tables: Sequence[str], keep: str) -> AbstractContextManager[None]:
        """Store what the block deletes from these tables by the statement `keep`; nothing if `number` is None."""

    def put_back(self, number: int, read: str) -> list[tuple[str, tuple[object, ...]]]:
        """Apply undo image `number`; returns the rows restored. Later changes are lost, later deletions stay."""

    def transaction(self) -> AbstractContextManager[None]:
        """Run the block in a transaction of its own; only for upkeep, which is no commit and no query."""

    def __enter__(self) -> object:
        """Begin a savepoint."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        """Release the savepoint; roll back to it where an error left the block."""


class SqlReaders(Protocol):
    """Runs queries on connections that cannot write, each in one snapshot."""

    async def run(self, query: Callable[Concatenate[SqlSession, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a query with a session; raises a StoreError."""
