"""The vector leg: sign bits of every vector in blocks, the best candidates compared in full, small sets exactly."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from keepsaid.adapters.sql.memory.commits import KeepVectors
from keepsaid.adapters.sql.memory.rows import SQL, bound, space_names
from keepsaid.adapters.sql.query import JointStatement, SqlSession, as_json, column, every, load, only
from keepsaid.domain.memory import Found, Listener, Reached, Unembedded, VectorSpace
from keepsaid.ports.runtime import point

if TYPE_CHECKING:
    from keepsaid.adapters.sql.search.vector_codes import BinaryVectorIndex, BinaryVectors, ExactVectorCache


_SQL, _ALIKE = load("memory_vectors"), load("memory_alike")
_RANGE = 1_024
"""Ids that one block spans; the trigger `vector_delete` counts by the same number."""


def pack(db: SqlSession, finish: bool) -> None:
    """Upkeep: make a block that is not there, or all of them.

    While maintenance archives, it takes vectors out of the same blocks step by step: they are rebuilt after it.
    """
    while finish or not every(db, _SQL["archiving"]):
        (spaces, ranges, blocks) = only(db, _SQL["block_counts"], (_RANGE,))
        if spaces * ranges <= blocks:
            return
        space, dimension, number = next(_unpacked(db, ranges))
        point("block.before")
        with db:
            db.post(_SQL["keep_block"], _block(db, space, dimension, number))
        point("block.after")
        if not finish:
            return


def opened(db: SqlSession, space: int, dimension: int) -> BinaryVectorIndex:
    """All vectors of a space by their signs, as this snapshot has them: from blocks, and the rest row by row."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    from keepsaid.adapters.sql.search.vector_codes import BinaryVectorIndex, BinaryVectors  # noqa: PLC0415 - imports numpy

    (ranges,) = only(db, _SQL["ranges"], (_RANGE,))
    (packed,) = only(db, _SQL["packed"], (space,))
    packed_numbers = _numbers(db, space)
    rest = [number for number in range(ranges + 1) if number not in packed_numbers]
    codes = BinaryVectorIndex(dimension, packed + _RANGE * len(rest))
    for *columns, planes in every(db, _SQL["blocks"], (space,)):
        ids, memories, audiences = (np.frombuffer(part, np.int64) for part in columns)
        words = np.frombuffer(planes, np.uint64).reshape(-(-dimension // 64), -1)
        codes.add(BinaryVectors(ids, memories, audiences, words))
    for number in rest:
        for signs in _of_rows(db, space, dimension, number):
            codes.add(signs)
    return codes


def _unpacked(db: SqlSession, ranges: int) -> Iterator[tuple[int, int, int]]:
    """Spaces, their dimensions, and the ranges they have no block of."""
    for space, dimension in every(db, _SQL["dimensions"]):
        there = _numbers(db, space)
        yield from ((space, dimension, number) for number in range(ranges) if number not in there)


def _numbers(db: SqlSession, space: int) -> set[int]:
    return set(column(db, _SQL["block_numbers"], (space,)))


def _block(db: SqlSession, space: int, dimension: int, number: int) -> tuple[object, ...]:
    for signs in _of_rows(db, space, dimension, number):
        parts = (signs.ids, signs.memories, signs.audiences, signs.planes)
        return (space, number, len(signs.ids), *(part.tobytes() for part in parts))
    return (space, number, 0, b"", b"", b"", b"")


def _of_rows(db: SqlSession, space: int, dimension: int, number: int) -> Iterator[BinaryVectors]:
    """The signs of a range that has any vector of the space."""
    from keepsaid.adapters.sql.search.vector_codes import quantise_vectors  # noqa: PLC0415 - imports numpy

    if rows := every(db, _SQL["vectors_between"], (space, number * _RANGE, (number + 1) * _RANGE)):
        yield quantise_vectors(rows, dimension)


_READ_EACH = 20_000

_READ_BACK, _READ_BACK_EACH = 250, 2.5
"""The best by signs that are compared in full: the least number, and the number for each requested result. The first
ten are then those of an exact search, and 93 of the first hundred."""

_MEANS = 8
"""The number of cached means of readable vectors."""

_SAME = 1e-6
"""Cosines that differ by less may count as equal."""

_COSINE = itemgetter(1)

EXACT_MAX = 20_000
"""Up to this number of readable vectors, all are compared in full."""


class VectorReach(NamedTuple):
    """What a query may look at: a space, the audiences it hears (None for all), and how far the store has come."""

    space: int
    dimension: int
    audiences: tuple[int, ...] | None
    changes: int
    newest: int


@dataclass(slots=True)
class _Held:
    """One space in memory, and how far it followed the store: the last change, the last vector."""

    codes: BinaryVectorIndex
    wholes: ExactVectorCache
    changes: int
    newest: int
    means: dict[tuple[int, ...], Any] = field(default_factory=dict)


class VectorIndex:
    """What the vectors of each space are compared by; follows the store when asked, whoever wrote to it."""

    def __init__(self, exact_max: int = EXACT_MAX) -> None:
        self._exact_max = exact_max
        self._lock = threading.Lock()
        self._held: dict[int, _Held] = {}

    def search(
        self, db: SqlSession, listener: Listener, space: VectorSpace, query: bytes, limit: int
    ) -> tuple[Found, ...]:
        """The nearest memories that are readable; of equal ones the larger id first.

        A score is a memory's cosine to the query minus the mean of all readable memories; one that is not above
        zero is not found.
        """
        if limit < 1:
            return ()
        asked = [JointStatement(_SQL["space"], space_names(space)), JointStatement(_SQL["last_change"])]
        if not listener.everything:
            asked.append(JointStatement(SQL["audiences"], bound(listener)))
        found, [(changes, newest)], *heard = db.ask(*asked)
        if not found:
            return ()
        audiences = tuple(row[0] for row in heard[0]) if heard else None
        return self._nearest(db, VectorReach(found[0][0], space.dimension, audiences, changes, newest), query, limit)

    def _nearest(self, db: SqlSession, reach: VectorReach, query: bytes, limit: int) -> tuple[Found, ...]:
        import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

        asked, depth = np.frombuffer(query, np.float32), max(_READ_BACK, int(limit * _READ_BACK_EACH))
        with self._lock:
            held = self._follow(db, reach)
            heard = held.codes.mask_visible(reach.audiences)
            if np.count_nonzero(heard) <= self._exact_max:
                whole = held.wholes.of(partial(_read, db), reach.audiences, held.codes)
                return ranked(*whole.nearest(asked, heard, depth), limit)
            near = held.codes.near(asked, heard, depth)
            mean = _mean(db, held.means, near.sample)
        read, vectors = _read(db, sorted(near.rows))
        cosines = (vectors @ asked).tolist() if read else []
        there = [(near.rows[id_], cosine) for id_, cosine in zip(read, cosines, strict=True)]
        return ranked(there, float(mean @ asked) if mean.size else 0.0, limit)

    def _follow(self, db: SqlSession, reach: VectorReach) -> _Held:
        """The space as this snapshot has it: first what went, then what came."""
        from keepsaid.adapters.sql.search.vector_codes import ExactVectorCache, quantise_vectors  # noqa: PLC0415 - imports numpy

        space, dimension, _, changes, newest = reach
        if (held := self._held.get(space)) is None:
            held = _Held(opened(db, space, dimension), ExactVectorCache(), changes, newest)
            self._held[space] = held
            return held
        # a snapshot may be older than what another reader saw already
        if changes > held.changes:
            if gone := column(db, _SQL["changed"], (held.changes,)):
                held.codes.drop(gone)
            held.changes = changes
        while newest > held.newest:
            reached = min(newest, held.newest + _READ_EACH)
            if rows := every(db, _SQL["vectors_between"], (space, held.newest + 1, reached + 1)):
                held.codes.add(quantise_vectors(rows, dimension))
            held.newest = reached
        return held


def ranked(there: Sequence[tuple[int, float]], background: float, limit: int) -> tuple[Found, ...]:
    """Memories by their nearest piece."""
    best: dict[int, float] = {}
    for memory, cosine in there:
        if cosine > best.get(memory, -2.0):
            best[memory] = cosine
    nearest = sorted(best.items(), key=_COSINE, reverse=True)
    least = nearest[limit - 1][1] - _SAME if len(nearest) > limit else -2.0
    ranked = sorted(
        ((round(cosine - background, 6), memory) for memory, cosine in nearest if cosine >= least), reverse=True
    )
    return tuple(Found(memory, score) for score, memory in ranked[:limit] if score > 0)


def _mean(db: SqlSession, means: dict[tuple[int, ...], Any], sample: tuple[int, ...]) -> Any:
    """The mean vector of a sample; its cosine is the mean of theirs."""
    if (mean := means.pop(sample, None)) is None:
        _, vectors = _read(db, sample)
        mean = vectors.mean(axis=0) if len(vectors) else vectors.ravel()
    means[sample] = mean
    if len(means) > _MEANS:
        del means[next(iter(means))]
    return mean


def _read(db: SqlSession, ids: Sequence[int]) -> tuple[list[int], Any]:
    """Vectors read back, with their ids: those that are gone in this snapshot are not there to be read."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    rows = every(db, _SQL["vectors_by_id"], (db.numbers(ids),)) if ids else []
    stored = np.frombuffer(b"".join(row[1] for row in rows), np.float16).astype(np.float32)
    return [row[0] for row in rows], stored.reshape(len(rows), -1 if rows else 0)


def unembedded(db: SqlSession, space: VectorSpace, after: int, limit: int) -> tuple[Unembedded, ...]:
    named = {**space_names(space), "after": after, "limit": limit}
    return tuple(Unembedded(*row) for row in every(db, _SQL["unembedded"], named))


def spaces(db: SqlSession) -> tuple[Reached, ...]:
    return tuple(Reached(VectorSpace(*row[:4]), row[4]) for row in every(db, _SQL["spaces"]))


def keep_vectors(db: SqlSession, commit: KeepVectors) -> int:
    """Write vectors, with numbers of 16 bits: that costs no rank and half the file."""
    import numpy as np  # noqa: PLC0415 - a program that keeps no vectors starts without

    named = {**space_names(commit.space), "at": commit.at}
    db.post(_SQL["open_space"], named)
    [(space,)] = every(db, _SQL["space"], named)
    kept = 0
    for one in commit.vectors:
        short = np.frombuffer(one.vector, np.float32).astype(np.float16).tobytes()
        db.execute(_SQL["keep_vector"], {"space": space, "piece_id": one.piece_id, "vector": short})
        kept += db.changes()
    if commit.reached:
        db.post(_SQL["reach"], {"space": space, "reached": commit.reached})
    return kept


def alike(db: SqlSession, ids: Sequence[int], above: float) -> tuple[tuple[int, int], ...]:
    """Pairs of memories, the smaller id first, each of whose pieces has one of the other's nearer than `above`.

    Compared in the newest space in which both have vectors; a memory that has none is like no other.
    """
    found, pairs = every(db, _ALIKE["vectors_of"], {"ids": as_json(sorted(set(ids)))}), set[tuple[int, int]]()
    for _, rows in groupby(found, key=itemgetter(0)):
        there, same = _compared(list(rows), above)
        pairs = {pair for pair in pairs if not there.issuperset(pair)} | same
    return tuple(sorted(pairs))


def _compared(rows: list[tuple[Any, ...]], above: float) -> tuple[frozenset[int], set[tuple[int, int]]]:
    """The memories that have vectors in one space, and the pairs of them that are alike."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    vectors = np.frombuffer(b"".join(row[2] for row in rows), np.float16).astype(np.float32).reshape(len(rows), -1)
    near = vectors @ vectors.T > above
    places: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row[1], []).append(place)
    touching = {(rows[one][1], rows[other][1]) for one, other in np.argwhere(near).tolist()}
    same = {
        (one, other)
        for one, other in touching
        if one < other
        for part in (near[np.ix_(places[one], places[other])],)
        if part.any(axis=1).all() and part.any(axis=0).all()
    }
    return frozenset(places), same
