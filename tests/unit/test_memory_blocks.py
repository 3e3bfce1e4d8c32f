from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from keepsaid.adapters.sql.search.vector_codes import BinaryVectorIndex, least, quantise_vectors
from keepsaid.adapters.sql.search.vector_index import VectorIndex, pack
from keepsaid.adapters.sqlite.connection import SqliteSession, open_writer
from keepsaid.adapters.sqlite.integrity import migrate
from keepsaid.domain.memory import Listener, VectorSpace

EACH, SIZE = 1_024, 70
SPACES = tuple(VectorSpace(f"model {n}", "1", SIZE, b"x") for n in range(2))
ALL = Listener(None, everything=True)
NOBODY = Listener(None)
Floats = NDArray[np.float32]


def directions(count: int, seed: int) -> Floats:
    """In clusters, as what is said is: the signs of random directions tell little."""
    clusters, chance = np.random.default_rng(0).normal(size=(400, SIZE)), np.random.default_rng(seed)
    made = clusters[chance.integers(0, 400, count)] + chance.normal(scale=0.3, size=(count, SIZE))
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made.astype(np.float32)


@contextmanager
def store(folder: Path) -> Iterator[SqliteSession]:
    """A memory store with two spaces and an audience that hears what is global."""
    with closing(open_writer(path := folder / "memory.db")) as db:
        migrate(db, path, "memory")
        db.execute("INSERT INTO memory_audience VALUES (1, 'global', 0, 0, 0, '', '', '', '', NULL)")
        db.execute("INSERT INTO memory_audience VALUES (2, 'person:x', 0, 0, 0, '', '', '', '', NULL)")
        for n, space in enumerate(SPACES, start=1):
            row = (n, space.model, space.revision, space.dimension, space.weights_hash)
            db.execute("INSERT INTO space VALUES (?, ?, ?, ?, ?, 0, 0, NULL)", row)
        yield db


def fill(db: SqliteSession, space: int, vectors: Floats, heard: int = 1) -> list[int]:
    """Vectors of pieces that are numbered like the memories they are of; returns their ids."""
    [(last,)] = db.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'vector'").fetchall()
    ids = [int(str(last)) + 1 + n for n in range(len(vectors))]
    with db:
        db.executemany(
            "INSERT INTO vector (space, piece_id, memory_id, audience, vector) VALUES (?, ?, ?, ?, ?)",
            ((space, i, i, heard, v.astype(np.float16).tobytes()) for i, v in zip(ids, vectors, strict=True)),
        )
    return ids


def forget(db: SqliteSession, ids: list[int]) -> None:
    """As the triggers do: the vectors go, and the log says that the memories changed."""
    with db:
        db.executemany("DELETE FROM vector WHERE id = ?", ((i,) for i in ids))
        db.executemany("INSERT INTO memory_change (memory_id, what, at) VALUES (?, 'changed', 1)", ((i,) for i in ids))


def blocks(db: SqliteSession, space: int = 1) -> list[tuple[object, ...]]:
    return db.execute("SELECT number, vectors FROM vector_block WHERE space = ? ORDER BY number", (space,)).fetchall()


def found(db: SqliteSession, index: VectorIndex, query: Floats, listener: Listener = ALL) -> list[int]:
    return [one.memory_id for one in index.search(db, listener, SPACES[0], query.tobytes(), 10)]


def best(ids: list[int], vectors: Floats, query: Floats) -> list[int]:
    """By an exact search of what is stored; equal to six places, the larger id is first."""
    cosines = (vectors.astype(np.float16).astype(np.float32) @ query).round(6)
    order = np.lexsort((-np.asarray(ids), -cosines))
    return [ids[place] for place in order[:10]]


def test_blocks_are_made_of_full_ranges_one_a_time_and_of_all_at_the_end(tmp_path: Path) -> None:
    with store(tmp_path) as db:
        pack(db, True)
        assert blocks(db) == [], "no vectors"
        fill(db, 1, directions(EACH * 2 + 9, 1))
        pack(db, False)
        assert blocks(db) == [(0, EACH - 1)], "ids begin with 1"
        pack(db, True)
        assert blocks(db) == [(0, EACH - 1), (1, EACH)]
        assert blocks(db, 2) == [(0, 0), (1, 0)], "a space without vectors there is known to have none"
        before = db.total_changes()
        pack(db, True)
        assert db.total_changes() == before


def test_the_same_is_found_with_blocks_and_without_whatever_went_and_came(tmp_path: Path) -> None:
    """By signs and in full, by one that was there all the time and by one that opens now."""
    with store(tmp_path) as db:
        vectors = directions(EACH * 2 + 500, 2)
        ids = fill(db, 1, vectors)
        steady = [VectorIndex(), VectorIndex(exact_max=1)]
        queries = directions(3, 3)
        for step in range(6):
            if step % 2:
                pack(db, True)
            if step == 2:
                gone = set(ids[300:400]) | set(ids[-9:])
                forget(db, sorted(gone))
                assert [number for number, _ in blocks(db)] == [1], "what was forgotten is in no block"
                kept = [n for n, one in enumerate(ids) if one not in gone]
                ids, vectors = [ids[n] for n in kept], vectors[kept]
            if step == 4:
                more = directions(300, 4)
                fill(db, 2, more)
                ids, vectors = ids + fill(db, 1, more), np.concatenate((vectors, more))
            for index in (*steady, VectorIndex(), VectorIndex(exact_max=1)):
                for query in queries:
                    assert found(db, index, query) == best(ids, vectors, query)


def test_who_hears_little_is_answered_in_full_and_hears_nothing_else(tmp_path: Path) -> None:
    with store(tmp_path) as db:
        loud, soft = directions(EACH, 5), directions(700, 6)
        heard, other = fill(db, 1, soft), fill(db, 1, loud, heard=2)
        index = VectorIndex(exact_max=1_000)
        for query in directions(5, 7):
            assert found(db, index, query, NOBODY) == best(heard, soft, query)
            assert found(db, index, query) == best(heard + other, np.concatenate((soft, loud)), query)
        forget(db, heard[:600])
        heard = heard[600:] + fill(db, 1, soft[:50])
        assert set(found(db, index, soft[10], NOBODY)) <= set(heard)
        assert found(db, index, soft[10], NOBODY)[0] == heard[110]


def test_a_reader_whose_snapshot_is_old_takes_nothing_from_later_ones(tmp_path: Path) -> None:
    with store(tmp_path) as db, closing(SqliteSession(str(tmp_path / "memory.db"))) as old:
        vectors = directions(40, 8)
        ids = fill(db, 1, vectors[:20])
        index = VectorIndex()
        old.execute("BEGIN")
        old.execute("SELECT count(*) FROM vector").fetchall()
        ids += fill(db, 1, vectors[20:])
        index.search(db, NOBODY, SPACES[0], vectors[0].tobytes(), 10)  # follows as far as the newest
        found(old, index, vectors[30])  # the first of this listener, who does not see the last twenty
        assert found(db, index, vectors[30])[0] == ids[30]


@pytest.mark.parametrize("dimension", [2, 64, 70, 200, 384, 1_536])
def test_distances_count_the_signs_that_differ(dimension: int) -> None:
    vectors = np.random.default_rng(9).normal(size=(300, dimension)).astype(np.float16)
    codes = BinaryVectorIndex(dimension, room=1)
    codes.add(quantise_vectors([(n, n, 1, v.tobytes()) for n, v in enumerate(vectors)], dimension))
    asked = vectors[7].astype(np.float32)
    differing = ((vectors > 0) != (asked > 0)).sum(axis=1)
    assert codes._distances(asked).tolist() == differing.tolist()


@pytest.mark.parametrize("values", [np.zeros(90_000), np.arange(90_000), np.arange(90_000) // 40 % 7, np.arange(90)])
def test_the_least_of_many_are_those_a_full_sort_gives(values: NDArray[np.int64]) -> None:
    values = np.random.default_rng(1).permutation(values).astype(np.uint16)
    bound = np.sort(values)[min(500, len(values)) - 1]
    assert sorted(least(values, 500).tolist()) == np.flatnonzero(values <= bound).tolist()
