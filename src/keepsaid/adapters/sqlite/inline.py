"""Inline: writer and readers without threads, for a loop on which time is virtual. Not for a program at work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw

from keepsaid.adapters.sqlite.ledger import Ledger, Refused
from keepsaid.adapters.sqlite.memory_table import MEMORY_TABLE
from keepsaid.adapters.sqlite.migrate import migrate
from keepsaid.adapters.sqlite.operations import buffer_commits, open_ledger
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.tombs import tombs_beside
from keepsaid.domain.commits import Commit

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
_IN_MEMORY = Path(":memory:")


class InlineWriter:
    """Applies commits where it is asked, on the loop."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def apply(self, commit: Commit[R]) -> R:
        """Apply one commit; raises why it was not kept."""
        [result] = self._ledger.apply([commit])
        if isinstance(result, Refused):
            raise result.error
        self._ledger.tidy()
        kept: R = result
        return kept

    def drop(self) -> None:
        """Close the file as a death does: nothing more is written."""
        self._ledger.close(broken=True)


class InlineReaders(Readers):
    """Reads where it is asked, on the loop; over one connection, if it is given one."""

    def __init__(self, path: Path, db: apsw.Connection | None = None) -> None:
        super().__init__(path)
        if db is not None:
            self._local.db = db

    async def run(self, query: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `query` with a connection, inside one snapshot."""
        return self._run(query, *args, **kwargs)

    def drop(self) -> None:
        """Close what it opened."""
        for db in self._open:
            db.close()


def buffer_inline(path: Path) -> tuple[InlineWriter, InlineReaders]:
    """The operational store in a file, opened once more."""
    return InlineWriter(open_ledger(path, ("buffer",), buffer_commits)), InlineReaders(path)


def memory_inline(path: Path | None = None) -> tuple[InlineWriter, InlineReaders]:
    """The memory store in a file, opened once more; or a new one that is in no file."""
    if path is not None:
        return InlineWriter(open_ledger(path, ("memory",), lambda _: MEMORY_TABLE)), InlineReaders(path)
    db = apsw.Connection(str(_IN_MEMORY))
    migrate(db, _IN_MEMORY, "memory")
    tombs_beside(_IN_MEMORY).attach(db)
    return InlineWriter(Ledger(db, _IN_MEMORY, MEMORY_TABLE)), InlineReaders(_IN_MEMORY, db)
