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
from keepsaid.errors import ProcessFenced

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


@dataclass(frozen=True)
class Fault:
    """Raises an error of the program."""


@dataclass(frozen=True)
class Twice:
    """Writes a note twice, and waits for the second."""

    name: str


def fail(db: SqlSession, commit: Fault) -> None:
    raise LookupError(str(commit))


def write_twice(db: SqlSession, commit: Twice) -> None:
    db.post(_KEEP, (commit.name,))
    db.execute(_KEEP, (commit.name,))


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
    table = CommitTable({Note: note, HalfUndone: count, Fault: fail, Twice: write_twice}, {})
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


def test_a_commit_that_fails_before_it_says_anything_undoes_none_before_it(
    place: PostgresPlace, executor: PostgresExecutor
) -> None:
    first, refused, nothing, last = executor.apply([Note(("a",)), Fault(), Note(()), Note(("b",))])
    assert (first, nothing, last) == (1, 0, 1)
    assert isinstance(refused, RejectedCommit)
    refused, last = executor.apply([Fault(), Note(("c",))])
    assert isinstance(refused, RejectedCommit)
    assert notes(place) == ["a", "b", "c"]


def test_a_process_whose_life_is_over_is_refused_also_where_its_first_statement_fails(
    place: PostgresPlace, executor: PostgresExecutor
) -> None:
    assert executor.apply([Note(("a",))]) == [1]
    executor._session.life = "one that is over"
    for commits in ([Note(("b",))], [Twice("c"), Note(("d",))], [Fault(), Note(("e",))]):
        results = executor.apply(commits)
        assert all(isinstance(one.error, ProcessFenced) for one in results)
    assert notes(place) == ["a"]


def test_what_was_posted_is_there_for_the_next_statement_unless_it_was_undone(
    place: PostgresPlace, executor: PostgresExecutor
) -> None:
    assert executor.apply([Note(("a",)), HalfUndone("b", "c")]) == [1, 2]
    assert notes(place) == ["a", "c"]
