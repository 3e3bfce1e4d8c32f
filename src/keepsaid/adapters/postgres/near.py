"""Nearest vectors by pgvector: an index of the server's, for stores whose vectors would fill each process.

Upkeep fills it where the extension is installed and a space is large. All that can be read by a
listener with few is compared in full; of others an index (HNSW) gives the candidates, which it reads until enough of
them can be read by the listener. What it does not hold yet is compared in full, too.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import psycopg

from keepsaid.adapters.postgres.dialect import PACKAGE
from keepsaid.adapters.postgres.session import PostgresSession
from keepsaid.adapters.sql.query import MemorySession, SqlSession, load
from keepsaid.adapters.sql.search.vector_index import EXACT_MAX, VectorIndex, VectorReach, ranked
from keepsaid.domain.memory import Found

NEAR = load("near", PACKAGE)
NEAR_MIN = 1_000_000
"""A space with fewer vectors is searched by the signs that each process holds, which takes as long."""

_FILL_EACH, _FILL_S = 16, 0.02
"""Vectors in one statement, and how long upkeep fills at a time."""

_LOOK_S = 1.0
"""How often upkeep looks for the extension and for spaces that became large."""

_REST_MAX = 1_024
"""Vectors that the index may lack: they are compared in full."""

_DEPTH_MIN, _DEPTH_EACH = 250, 2.5
"""Candidates of the index: the least number, and the number for each requested result."""

_SAMPLE_ROWS = 3_000
"""Rows from which the mean cosine of all readable memories is taken."""


def _named(sql: str, schema: str, vector: str, space: int = 0, dimension: int = 0) -> str:
    """A statement with the names of schemas and numbers that cannot be bound."""
    parts = {"near": f"{schema}_near", "vector": vector, "space": str(space), "dimension": str(dimension)}
    for name, part in parts.items():
        sql = sql.replace(f"/*{name}*/", part)
    return sql


def _literal(vector: Any) -> str:
    """A vector as pgvector reads it."""
    return f"[{','.join(f'{number:.6g}' for number in vector.tolist())}]"


def _extension(connection: psycopg.Connection[Any]) -> str | None:
    """The schema of the extension; None where it is not installed."""
    row = connection.execute(NEAR["extension"]).fetchone()
    return None if row is None else str(row[0])


class NearFiller:
    """Upkeep that makes and fills the index; one for each writer."""

    def __init__(self, schema: str, least: int = NEAR_MIN) -> None:
        self._schema = schema
        self._least = least
        self._looked_at = -_LOOK_S
        self._vector = ""
        self._left: list[tuple[int, int]] = []

    def fill(self, db: SqlSession, finish: bool) -> None:
        """Add vectors to the index of each large space, for a moment or, with `finish`, all of them."""
        assert isinstance(db, PostgresSession), "other databases have no such index"
        until = time.monotonic() + _FILL_S
        if until - self._looked_at > _LOOK_S or finish:
            self._look(db.connection)
            self._looked_at = until
        while self._left and (finish or time.monotonic() < until):
            with db:
                if not self._step(db, *self._left[0]):
                    self._left.pop(0)

    def _look(self, connection: psycopg.Connection[Any]) -> None:
        """Find the large spaces where the extension is installed."""
        self._left = []
        if (vector := _extension(connection)) is not None:
            self._vector = vector
            self._left = [(space, dimension) for space, dimension in connection.execute(NEAR["large"], (self._least,))]

    def _step(self, db: PostgresSession, space: int, dimension: int) -> bool:
        """Add some vectors of a space; False if none is left."""
        import numpy as np  # noqa: PLC0415 - a program that keeps no vectors starts without

        db.flush()
        connection = db.connection
        names = self._schema, self._vector, space, dimension
        is_made = connection.execute(NEAR["is_made"], (f"{self._schema}_near.near_vector_{space}",)).fetchone()
        if is_made is None or not is_made[0]:
            connection.execute(_named(NEAR["make"], *names))
            connection.execute(_named(NEAR["make_space"], *names))
        row = connection.execute(_named(NEAR["reached"], *names), (space,)).fetchone()
        reached = 0 if row is None else int(row[0])
        waiting = connection.execute(NEAR["waiting"], (space, reached, _FILL_EACH)).fetchall()
        if not waiting:
            return False
        rows = [
            (id_, space, audience, memory, _literal(np.frombuffer(stored, np.float16)))
            for id_, audience, memory, stored in waiting
        ]
        connection.cursor().executemany(_named(NEAR["fill"], *names), rows)
        connection.execute(_named(NEAR["reach"], *names), (space, waiting[-1][0]))
        db.written += len(rows)
        return True


class NearVectors(VectorIndex):
    """The vector leg: by the index of the server where there is one that is filled, else by signs."""

    def __init__(self, schema: str, exact_max: int = EXACT_MAX) -> None:
        super().__init__(exact_max)
        self._schema = schema
        self._small = exact_max

    def _nearest(self, db: SqlSession, reach: VectorReach, query: bytes, limit: int) -> tuple[Found, ...]:
        assert isinstance(db, PostgresSession), "other databases have no such index"
        near = self._opened(db, reach.space, reach.dimension)
        found = None if near is None else near.search(query, reach.audiences, limit, self._small)
        return super()._nearest(db, reach, query, limit) if found is None else found

    def _opened(self, db: MemorySession, space: int, dimension: int) -> _NearSpace | None:
        """The index of a space; None where there is none."""
        assert isinstance(db, PostgresSession), "other databases have no such index"
        row = db.connection.execute(NEAR["is_made"], (f"{self._schema}_near.near_vector_{space}",)).fetchone()
        if row is None or not row[0] or (vector := _extension(db.connection)) is None:
            return None
        return _NearSpace(db.connection, self._schema, vector, space, dimension)


class _NearSpace:
    """The index of one space, as one snapshot has it."""

    def __init__(
        self, connection: psycopg.Connection[Any], schema: str, vector: str, space: int, dimension: int
    ) -> None:
        self._connection = connection
        self._names = schema, vector, space, dimension
        self._space = space

    def search(self, query: bytes, audiences: Sequence[int] | None, limit: int, small: int) -> tuple[Found, ...] | None:
        """The nearest memories that the audiences hear; None while the index lacks too much."""
        import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

        asked = np.frombuffer(query, np.float32)
        if (rest := self._rest(asked, audiences)) is None:
            return None
        heard = None if audiences is None else list(audiences)
        depth, literal = max(_DEPTH_MIN, int(limit * _DEPTH_EACH)), _literal(asked)
        if heard is not None and self._count(heard, small + 1) <= small:
            rows = self._rows("compared", (self._space, literal, heard, depth))
            there, background = [(memory, cosine) for memory, cosine, _ in rows], rows[0][2] if rows else 0.0
        else:
            self._connection.execute(NEAR["tune"])
            there = self._rows("nearest", (literal, heard, depth))
            background = self._background(literal, heard)
        return ranked([*there, *rest], background, limit)

    def _rest(self, asked: Any, audiences: Sequence[int] | None) -> list[tuple[int, float]] | None:
        """The vectors that the index lacks, compared in full; None for too many."""
        import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

        [(reached,)] = self._rows("reached", (self._space,))
        waiting = self._rows("waiting", (self._space, reached, _REST_MAX + 1))
        if len(waiting) > _REST_MAX:
            return None
        heard = [row for row in waiting if audiences is None or row[1] in audiences]
        stored = np.frombuffer(b"".join(row[3] for row in heard), np.float16).astype(np.float32)
        cosines = (stored.reshape(len(heard), -1) @ asked).tolist() if heard else []
        return [(row[2], cosine) for row, cosine in zip(heard, cosines, strict=True)]

    def _count(self, audiences: list[int], at_most: int) -> int:
        [(count,)] = self._rows("readable", (self._space, audiences, at_most))
        return int(count)

    def _background(self, literal: str, audiences: list[int] | None) -> float:
        """The mean cosine of a sample of the readable memories."""
        schema = self._names[0]
        [(rows,)] = self._rows("filled", (f"{schema}_near.near_vector",))
        percent = min(100.0, 100 * _SAMPLE_ROWS / max(rows, 1))
        sql = _named(NEAR["background"], *self._names).replace("/*percent*/", f"{percent:.4f}")
        row = self._connection.execute(sql, (self._space, literal, audiences)).fetchone()
        return 0.0 if row is None or row[0] is None else float(row[0])

    def _rows(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._connection.execute(_named(NEAR[statement], *self._names), values).fetchall()
