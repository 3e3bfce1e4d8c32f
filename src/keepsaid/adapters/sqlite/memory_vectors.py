"""The vector leg: every vector's signs in memory, the best read back and compared in full (docs/concepts/recall.md)."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import apsw

from keepsaid.adapters.sqlite.memory_rows import SQL, bound, space_names
from keepsaid.adapters.sqlite.query import only
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.memory import Found, Listener
from keepsaid.domain.space import Unembedded, VectorSpace

if TYPE_CHECKING:
    from keepsaid.adapters.sqlite.memory_codes import Codes, Near

_SQL = load("memory_index")
_READ_EACH = 20_000

_READ_BACK = 500
"""So many of the best by their signs are compared in full: with 500, the first ten are those of an exact search."""

EXACT_MAX = 20_000
"""In a store of so many vectors, and for a listener who may hear so few, all are compared in full."""


class VectorIndex:
    """What the vectors of each space are compared by; follows the store when asked, whoever wrote to it."""

    def __init__(self, exact_max: int = EXACT_MAX) -> None:
        self._exact_max = exact_max
        self._lock = threading.Lock()
        self._codes: dict[int, Codes] = {}
        self._seen: dict[int, tuple[int, int]] = {}

    def search(
        self, db: apsw.Connection, listener: Listener, space: VectorSpace, query: bytes, limit: int
    ) -> tuple[Found, ...]:
        """The nearest memories that are heard; of equal ones the larger id first.

        A score is how much nearer a memory is to the query than what is heard is on the whole, in cosines; one that
        is no nearer is not found.
        """
        found = db.execute(_SQL["space"], space_names(space)).fetchall()
        if not found or limit < 1:
            return ()
        number = int(str(found[0][0]))
        heard = None
        if not listener.everything:
            heard = [int(str(row[0])) for row in db.execute(SQL["audiences"], bound(listener))]
        with self._lock:
            codes = self._follow(db, number, space.dimension)
            near = codes.near(query, heard, max(_READ_BACK, limit * 2))
        return _exact(db, near, query, limit)

    def _follow(self, db: apsw.Connection, space: int, dimension: int) -> Codes:
        """The space as this snapshot has it: first what went, then what came."""
        from keepsaid.adapters.sqlite.memory_codes import Codes  # noqa: PLC0415 - imports numpy

        codes = self._codes.get(space) or Codes(dimension, self._exact_max)
        self._codes[space] = codes
        changes, newest = self._seen.get(space, (0, 0))
        last_change, last_vector = only(db, _SQL["last_change"])
        if changes and last_change > changes:
            codes.drop([int(str(row[0])) for row in db.execute(_SQL["changed"], {"after": changes})])
        while last_vector > newest:
            rows: list[tuple[Any, ...]] = db.execute(
                _SQL["vectors_after"], {"after": newest, "space": space, "limit": _READ_EACH}
            ).fetchall()
            if rows:
                codes.add(rows)
            newest = rows[-1][0] if len(rows) == _READ_EACH else last_vector
        # a snapshot may be older than what another reader saw already
        self._seen[space] = (max(changes, last_change), max(self._seen.get(space, (0, 0))[1], newest))
        return codes


def _exact(db: apsw.Connection, near: Near, query: bytes, limit: int) -> tuple[Found, ...]:
    """The best read back: those that are gone in this snapshot are not there to be read."""
    cosines = _cosines(db, sorted({*near.ids, *near.sample}), query)
    sampled = [cosines[id_] for id_ in near.sample if id_ in cosines]
    background = sum(sampled) / max(1, len(sampled))
    best: dict[int, float] = {}
    for id_, memory in zip(near.ids, near.memories, strict=True):
        if id_ in cosines:
            best[memory] = max(best.get(memory, -2.0), cosines[id_])
    ranked = sorted(((round(cosine - background, 6), memory) for memory, cosine in best.items()), reverse=True)
    return tuple(Found(memory, score) for score, memory in ranked[:limit] if score > 0)


def _cosines(db: apsw.Connection, ids: list[int], query: bytes) -> dict[int, float]:
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    rows: list[tuple[Any, ...]] = db.execute(_SQL["vectors_by_id"], {"ids": json.dumps(ids)}).fetchall()
    if not rows:
        return {}
    stored = np.frombuffer(b"".join(row[1] for row in rows), np.float16).astype(np.float32).reshape(len(rows), -1)
    cosines = stored @ np.frombuffer(query, np.float32)
    return dict(zip((row[0] for row in rows), cosines.tolist(), strict=True))


def unembedded(db: apsw.Connection, space: VectorSpace, after: int, limit: int) -> tuple[Unembedded, ...]:
    """Pieces without a vector in a space, by id."""
    named = {**space_names(space), "after": after, "limit": limit}
    rows: list[tuple[Any, ...]] = db.execute(_SQL["unembedded"], named).fetchall()
    return tuple(Unembedded(*row) for row in rows)
