"""A small database is written again once something was forgotten: no copy of a moved row stays in unused space."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from keepsaid.adapters.sql.query import CommitTable, SqlSession, emptied, post_each
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.writer import TransactionExecutor
from keepsaid.domain.commits import Commit
from keepsaid.domain.forgetting import EmptyLog
from keepsaid.values import frozen

_ROWS = 600


@frozen
class Execute(Commit[None]):
    """Run a statement with each of some rows of values."""

    sql: str
    values: tuple[tuple[str, ...], ...] = ((),)


def _execute(db: SqlSession, commit: Execute) -> None:
    post_each(db, commit.sql, commit.values)


@pytest.mark.parametrize("seed", [0, 2])
def test_no_copy_of_a_row_that_moved_is_left_in_the_file(tmp_path: Path, seed: int) -> None:
    """With secure_delete alone, a text of the first run stays."""
    file, chance = tmp_path / "store.db", Random(seed)
    db = open_writer(file)
    executor = TransactionExecutor(db, file, CommitTable({Execute: _execute, EmptyLog: emptied}, {}))

    def apply(commit: Execute | EmptyLog) -> object:
        return executor.apply((commit,))[0]

    apply(Execute("CREATE TABLE said (place TEXT PRIMARY KEY, words TEXT) WITHOUT ROWID"))
    places = [f"{n:05d}" for n in range(_ROWS)]
    chance.shuffle(places)
    for place in places:
        words = f"zebraquix{place}x " + "and so on " * chance.randint(2, 40)
        apply(Execute("INSERT INTO said VALUES (?, ?)", ((place, words),)))
    gone = sorted(chance.sample(places, 250))
    for place in places:
        if place not in gone:
            apply(Execute("UPDATE said SET words = words || words WHERE place = ?", ((place,),)))
    apply(Execute("DELETE FROM said WHERE place = ?", tuple((place,) for place in gone)))
    assert apply(EmptyLog()) is True
    db.close()
    raw = file.read_bytes()
    assert [place for place in gone if f"zebraquix{place}x".encode() in raw] == []
    assert raw.count(b"zebraquix") >= _ROWS - len(gone), "the others are there"
