"""Statements that are sent with the next one: what fails refuses its own commit, and what was undone is not sent."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from tests.postgres.server import empty

from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.adapters.postgres.writer import PostgresExecutor
from keepsaid.adapters.sql.query import CommitTable, SqlSession, scalar
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.adapters.sql.writer import RejectedCommit

_KEEP = "INSERT INTO note (name, text, until) VALUES (?, '', 1)"


@dataclass(frozen=True)
class Note:
    """Posts notes of these names; no two may have one name."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class HalfUndone:
    """Posts a note in a savepoint that is undone, and one after it."""

    undone: str
    kept: str


def note(db: SqlSession, commit: Note) -> int:
    for name in commit.names:
        db.post(_KEEP, (name,))
    return len(commit.names)


def count(db: SqlSession, commit: HalfUndone) -> Any:
    with suppress(ValueError), db:
        db.post(_KEEP, (commit.undone,))
        raise ValueError("undo")
    db.post(_KEEP, (commit.kept,))
    return scalar(db, "SELECT count(*) FROM note")


@pytest.fixture
def executor(place: PostgresPlace) -> Iterator[PostgresExecutor]:
    empty(place)
    table = CommitTable({Note: note, HalfUndone: count}, {})
    made = PostgresExecutor(place, lambda _: table, TombstoneKeyring(None))
    yield made
    made.close()
    empty(place)


def notes(place: PostgresPlace) -> list[str]:
    with psycopg.connect(place.url) as db:
        return [name for (name,) in db.execute(f"SELECT name FROM {place.schema}.note ORDER BY name")]


def test_a_posted_statement_that_fails_refuses_its_commit_and_no_other(
    place: PostgresPlace, executor: PostgresExecutor
) -> None:
    results = executor.apply([Note(("a", "b")), Note(("c", "a")), Note(("d",))])
    assert [isinstance(one, RejectedCommit) for one in results] == [False, True, False]
    assert notes(place) == ["a", "b", "d"]


def test_the_last_commit_of_a_group_and_one_by_itself_are_refused_like_any(
    place: PostgresPlace, executor: PostgresExecutor
) -> None:
    first, refused = executor.apply([Note(("a",)), Note(("b", "a"))])
    assert (first, isinstance(refused, RejectedCommit)) == (1, True)
    [refused] = executor.apply([Note(("c", "a"))])
    assert isinstance(refused, RejectedCommit)
    assert executor.apply([Note(("c",))]) == [1]
    assert notes(place) == ["a", "c"]


def test_what_was_posted_is_there_for_the_next_statement_unless_it_was_undone(
    place: PostgresPlace, executor: PostgresExecutor
) -> None:
    assert executor.apply([Note(("a",)), HalfUndone("b", "c")]) == [1, 2]
    assert notes(place) == ["a", "c"]
