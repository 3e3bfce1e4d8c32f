"""Commit table: how each type of commit is applied, in a transaction that whoever writes the database holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from keepsaid.adapters.sql.session import SqlSession
from keepsaid.domain.forgetting import EmptyLog

ApplyOne = Callable[[Any, Any], Any]
Upkeep = Callable[[Any, bool], None]
ApplySet = Callable[[Any, Sequence[Any]], Sequence[Any]]


@dataclass(frozen=True, slots=True)
class CommitTable:
    """How each type of commit is applied: one at a time, or as a set in few statements.

    `upkeep` are what the writer does between commits; told to finish, they leave nothing for later.
    `undone` are told when something was rolled back.
    """

    single: Mapping[type, ApplyOne]
    sets: Mapping[type, ApplySet]
    upkeep: tuple[Upkeep, ...] = ()
    undone: tuple[Callable[[], None], ...] = ()

    def __or__(self, other: CommitTable) -> CommitTable:
        """Both, for a file that holds both stores."""
        upkeep, undone = (*self.upkeep, *other.upkeep), (*self.undone, *other.undone)
        return CommitTable({**self.single, **other.single}, {**self.sets, **other.sets}, upkeep, undone)


def emptied(_db: SqlSession, _commit: EmptyLog) -> None:
    """Stands for a log that is emptied when the transaction is over."""
