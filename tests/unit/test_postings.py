"""Postings: the best pieces by what the index has of each word are those that FTS5 ranks first, in its order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from keepsaid.adapters.sql.query import only
from keepsaid.adapters.sql.search.session import SearchedSession
from keepsaid.adapters.sql.search.tokens import any_of, stems_of
from keepsaid.adapters.sqlite import postings
from keepsaid.adapters.sqlite.connection import SqliteSession, open_reader
from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.domain.memory import Kind, NewMemory, conversation_scope
from keepsaid.domain.message import Lane, Trust
from keepsaid.testing.clock import CountingIds

LANE = Lane("library", "default", "talk", "root:talk")
SAID = ["boiler", "walked", "walking", "Größe", "café", "über", "東京で会議", "2024", "naïveté", *"abcdefgh"]
ASKED = ["boiler", "walks", "Größen", "cafe", "uber", "東京", "2024", "monday", "nowhere", "ben", *"abcdefgh"]
LONG = 400
"""Words of a long text: the lengths of its pieces take two bytes each in the index."""


def text(chance: random.Random) -> str:
    """Some words far rarer than others; one text in ten is long, and one in ten says a word again and again."""
    count = LONG if chance.random() < 0.1 else chance.randint(1, 12)
    words = chance.choices(SAID, [1 / (n + 1) for n in range(len(SAID))], k=count)
    return " ".join(words if chance.random() < 0.9 else words[:1] * count)


def memory(chance: random.Random, number: int) -> NewMemory:
    kind, said_at = chance.choice([Kind.EPISODE, Kind.FACT]), chance.choice([0, 1_700_000_000_000 + number * 3_600_000])
    where = (conversation_scope(LANE), Trust.KNOWN, LANE, chance.choice(["Ann", "Ben Boiler", ""]))
    return NewMemory(f"made:{number}", kind, text(chance), *where, said_at=said_at)


async def fill(path: Path) -> None:
    chance = random.Random(5)
    store = await open_memories(path, CountingIds())
    ids = await store.keep([memory(chance, number) for number in range(400)], 1)
    await store.forgetful.hide(ids[::7], (), 1)
    await store.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of which a part was forgotten."""
    path = tmp_path_factory.mktemp("postings") / "memory.db"
    asyncio.run(fill(path))
    return path


@pytest.fixture
def db(path: Path) -> Iterator[SqliteSession]:
    with closing(open_reader(path)) as db:
        yield db


def by_fts5(db: SqliteSession, words: Sequence[str], span: tuple[int, int], depth: int) -> list[int]:
    return SearchedSession.matches(db, {**any_of(words), "first": span[0], "until": span[1], "depth": depth}, 0)


@pytest.mark.parametrize("seed", range(60))
def test_the_best_pieces_are_those_of_fts5(db: SqliteSession, seed: int) -> None:
    chance = random.Random(seed)
    words, depth = chance.sample(ASKED, chance.randint(1, 9)), chance.choice([1, 5, 40, 5_000])
    (newest,) = only(db, "SELECT max(id) FROM memory_piece")
    first = chance.choice([0, chance.randint(0, newest)])
    span = first, chance.choice([newest + 1, chance.randint(first, newest + 1)])
    terms = [stem for word in words for stem in stems_of(word)]
    assert postings.best(db, terms, span, depth) == by_fts5(db, words, span, depth)


def test_a_word_that_stands_twice_counts_twice(db: SqliteSession) -> None:
    (newest,) = only(db, "SELECT max(id) FROM memory_piece")
    words, span = ["walked", "a", "walking"], (0, newest + 1)
    assert postings.best(db, ["walk", "a", "walk"], span, 50) == by_fts5(db, words, span, 50)


def test_words_that_stand_nowhere_find_nothing(db: SqliteSession) -> None:
    assert postings.best(db, ["nowhere"], (0, 1_000), 10) == []
    assert postings.best(db, ["a"], (5_000, 6_000), 10) == []


def test_of_many_entries_the_reader_of_a_store_looks_up_each_word(db: SqliteSession) -> None:
    pytest.importorskip("numpy")
    ran: list[str] = []
    db.trace_v2(apsw.SQLITE_TRACE_STMT, lambda event: ran.append(event["sql"]))
    wanted = {**any_of(["boiler", "a"]), "first": 0, "until": 10_000, "depth": 20}
    few = db.matches(wanted, postings.VISITS_LEAST - 1)
    assert not any("piece_term" in sql for sql in ran)
    assert db.matches(wanted, postings.VISITS_LEAST) == few
    assert any("piece_term" in sql for sql in ran)


def test_an_empty_store_has_no_best_pieces(tmp_path: Path) -> None:
    async def made() -> None:
        await (await open_memories(tmp_path / "memory.db", CountingIds())).close()

    asyncio.run(made())
    with closing(open_reader(tmp_path / "memory.db")) as db:
        assert postings.best(db, ["a", "b"], (0, 1), 10) == []
