from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from keepsaid.adapters.sql.query import only
from keepsaid.adapters.sql.search import full_text
from keepsaid.adapters.sql.search.piece_index import number, scores, settled
from keepsaid.adapters.sql.search.word_blocks import STRETCH, best, outside, pack_words, stretches
from keepsaid.adapters.sqlite.connection import SqliteSession, open_writer
from keepsaid.adapters.sqlite.integrity import check_integrity
from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.domain.memory import Found, Listener, NewMemory
from keepsaid.domain.message import Trust
from keepsaid.testing.clock import CountingIds
from keepsaid_testkit.contracts.memories import AUDIT, HERE, OWNER_HERE, STRAND, THERE, episode, sample

WORDS = [
    f"{first}{second}" for first in ("lan", "har", "quet", "her", "ti", "can") for second in ("tern", "bour", "zal")
]
QUERIES = (" ".join(WORDS[:4]), WORDS[5], f"{WORDS[1]} ann 1970", "nobody knows", "東京")
READ = STRETCH // 512
STEPS = READ + 256 // 32
"""So many steps make the blocks of a stretch, and so many of them read it."""

LISTENERS = (AUDIT, OWNER_HERE, Listener(STRAND), Listener(THERE, cross=True), Listener(None))


def said(first: int, count: int) -> list[NewMemory]:
    """So many things said, a long one, and something known."""
    chance = np.random.default_rng(first)
    texts = [" ".join(chance.choice(WORDS, chance.integers(2, 12)).tolist()) for _ in range(count)]
    texts[0] = f"東京に {texts[0]} " * 90
    made = [
        episode(f"{first}:{n}", text, (HERE, STRAND, THERE)[n % 3], Trust.OWNER, said_at=first + n, speaker="Ann")
        for n, text in enumerate(texts)
    ]
    return [*made, sample(f"known:{first}", f"{WORDS[0]} {WORDS[7]}")]


@contextmanager
def store(folder: Path) -> Iterator[SqliteSession]:
    """A store whose pieces lie in three stretches that are full, and in one that is not."""
    path = folder / "memory.db"
    asyncio.run(keep(path))
    with closing(open_writer(path)) as db:
        settled(db, True)
        yield db


async def keep(path: Path) -> None:
    memories = await open_memories(path, CountingIds())
    for first in range(0, 4_000, 1_000):
        await memories.keep(said(first, 60 if first < 3_000 else 10), 1)
        if first < 3_000:
            with closing(open_writer(path)) as db:
                end_of_a_stretch(db)
    await memories.close()


def end_of_a_stretch(db: SqliteSession) -> None:
    """As if many pieces had come and gone."""
    db.execute(f"UPDATE sqlite_sequence SET seq = (seq / {STRETCH} + 1) * {STRETCH} - 1 WHERE name = 'memory_piece'")


def answers(db: SqliteSession) -> list[tuple[Found, ...]]:
    return [full_text.search(db, listener, query, 999) for listener in LISTENERS for query in QUERIES]


def forget_one(db: SqliteSession) -> int:
    """The piece of the second stretch that was forgotten with its memory."""
    memory, piece = only(db, "SELECT memory_id, id FROM memory_piece WHERE id > ? LIMIT 1", (STRETCH,))
    with db:
        db.execute("UPDATE memory SET state = 'forgotten' WHERE id = ?", (memory,))
    return int(piece)


def test_the_same_is_found_by_blocks_and_by_the_full_text_whatever_went(tmp_path: Path) -> None:
    with store(tmp_path) as db:
        pack_words(db, True)
        assert stretches(db) == [0, 1, 2]
        by_blocks = answers(db)
        assert len(by_blocks[0]) > 40
        assert any(by_blocks[4]), "letters are found by pairs"
        for gone in ((1,), (0, 1), (0, 1, 2)):
            with db:
                db.executemany("DELETE FROM word_stretch WHERE number = ?", ((one,) for one in gone))
            assert answers(db) == by_blocks
            pack_words(db, False)
        with db:
            db.execute("DELETE FROM word_stretch")
        assert answers(db) == by_blocks


def test_a_small_store_has_none(tmp_path: Path) -> None:
    with store(tmp_path) as db:
        db.execute("DELETE FROM word_stretch")
        db.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'memory_piece'", (STRETCH - 2,))
        pack_words(db, True)
        assert stretches(db) == []
        end_of_a_stretch(db)
        pack_words(db, True)
        assert stretches(db) == [0]


def test_what_is_forgotten_is_in_no_block_from_the_same_moment_on(tmp_path: Path) -> None:
    with store(tmp_path) as db:
        pack_words(db, True)
        piece = forget_one(db)
        assert stretches(db) == [0, 2]
        blocks = db.execute("SELECT DISTINCT id / 256 FROM word_block ORDER BY 1").fetchall()
        assert blocks == [(0,), (2,)]
        for _ in range(STEPS):
            assert stretches(db) == [0, 2], "512 pieces are read at a time, and 32 blocks written"
            pack_words(db, False)
        assert stretches(db) == [0, 1, 2]
        worth = {number(word): 1.0 for word in WORDS}
        assert piece not in best(db, [0, 1, 2], worth, 99_999)


@pytest.mark.parametrize("done", [1, READ - 1, READ, READ + 1, READ + 4, STEPS - 1])
def test_what_is_forgotten_while_blocks_are_made_is_in_none(done: int, tmp_path: Path) -> None:
    with store(tmp_path) as db:
        pack_words(db, True)
        with db:
            db.execute("DELETE FROM word_stretch WHERE number = 1")
        for _ in range(done):
            pack_words(db, False)
        piece = forget_one(db)
        assert not any(db.execute("SELECT 1 FROM word_block WHERE id / 256 = 1")), "and none that was made before"
        for _ in range(STEPS - done):
            pack_words(db, False)
        assert stretches(db) == [0, 2], "it is begun anew"
        pack_words(db, True)
        found = best(db, stretches(db), {number(word): 1.0 for word in WORDS}, 99_999)
        assert len(found) > 100
        assert piece not in found


@pytest.mark.parametrize("done", [1, READ, READ + 1, STEPS - 1])
def test_blocks_that_an_end_left_half_made_are_not_read_and_are_made_anew(done: int, tmp_path: Path) -> None:
    with store(tmp_path) as db:
        pack_words(db, True)
        by_blocks = answers(db)
        with db:
            db.execute("DELETE FROM word_stretch WHERE number = 1")
        for _ in range(done):
            pack_words(db, False)
    path = tmp_path / "memory.db"
    assert check_integrity(path, ("memory",), mend=False).astray == ()
    with closing(open_writer(path)) as db:
        assert (stretches(db), answers(db)) == ([0, 2], by_blocks)
        for _ in range(STEPS):
            pack_words(db, False)
        assert (stretches(db), answers(db)) == ([0, 1, 2], by_blocks)
    assert check_integrity(path, ("memory",), mend=False).astray == ()


def test_blocks_that_do_not_fit_are_dropped_and_made_anew(tmp_path: Path) -> None:
    with store(tmp_path) as db:
        pack_words(db, True)
        with db:
            db.execute("UPDATE word_stretch SET pieces = 7 WHERE number = 1")
            db.execute("DELETE FROM word_block WHERE id < 256")
    path = tmp_path / "memory.db"
    assert check_integrity(path, ("memory",), mend=False).astray == (
        "2 stretches have blocks of other words than those that are there",
    )
    assert check_integrity(path, ("memory",), mend=True).damage == ()
    with closing(open_writer(path)) as db:
        assert stretches(db) == [2]
        pack_words(db, True)
    assert check_integrity(path, ("memory",), mend=False).astray == ()


def test_the_best_are_those_that_score_best_by_what_words_are_worth(tmp_path: Path) -> None:
    with store(tmp_path) as db:
        pack_words(db, True)
        worth = {number(word): 1.0 + n for n, word in enumerate(WORDS[:6])}
        rows = db.execute("SELECT id, own_terms, mark_terms, terms FROM memory_piece WHERE id < ?", (3 * STRETCH,))
        scored = {}
        for id_, own, marks, terms in rows.fetchall():
            assert isinstance(own, int)
            assert isinstance(marks, int)
            assert isinstance(terms, bytes)
            found = scores(worth, [(own, marks, terms[: 4 * (own + marks)])])
            scored[id_] = found[0]
        told = best(db, [0, 1, 2], worth, 30)
        least = sorted(scored.values())[-30]
        step = sum(worth.values()) * 2.2 / 255
        assert len(told) == 30
        assert all(scored[one] > least - step for one in told)
        assert (
            best(db, [1], worth, 30)
            == [one for one in best(db, [0, 1, 2], worth, 999) if STRETCH <= one < 2 * STRETCH][:30]
        )
        assert best(db, [0], {number("nobody"): 1.0}, 30) == []


@pytest.mark.parametrize(
    ("there", "gaps"), [([], [(0, 5)]), ([0, 1], [(2, 5)]), ([1, 3], [(0, 1), (2, 3), (4, 5)]), (range(5), [])]
)
def test_what_is_in_no_block_is_told_from_where_to_where(there: Sequence[int], gaps: list[tuple[int, int]]) -> None:
    assert list(outside(there, 5 * STRETCH - 1)) == [(first * STRETCH, until * STRETCH) for first, until in gaps]
