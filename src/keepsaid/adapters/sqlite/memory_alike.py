"""Which memories say the same: their vectors compared, all with all (design: section 4.3)."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import apsw

from keepsaid.adapters.sqlite.statements import load

SQL = load("memory_alike")


def alike(db: apsw.Connection, ids: tuple[int, ...], above: float) -> tuple[tuple[int, int], ...]:
    """Pairs of memories, the smaller id first, each of whose pieces has one of the other's nearer than `above`.

    Compared in the newest space in which both have vectors; a memory that has none is like no other.
    """
    found: list[tuple[Any, ...]] = db.execute(SQL["vectors_of"], {"ids": json.dumps(sorted(set(ids)))}).fetchall()
    pairs: dict[tuple[int, int], bool] = {}
    for _, rows in groupby(found, key=lambda row: row[0]):
        pairs.update(_compared(list(rows), above))
    return tuple(sorted(pair for pair, same in pairs.items() if same))


def _compared(rows: list[tuple[Any, ...]], above: float) -> dict[tuple[int, int], bool]:
    """Every pair of memories of one space, and whether they are alike."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    vectors = np.frombuffer(b"".join(row[2] for row in rows), np.float16).astype(np.float32).reshape(len(rows), -1)
    near = vectors @ vectors.T > above
    places: dict[int, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row[1], []).append(place)
    memories = sorted(places)
    return {
        (one, other): bool(part.any(axis=1).all() and part.any(axis=0).all())
        for n, one in enumerate(memories)
        for other in memories[n + 1 :]
        for part in (near[np.ix_(places[one], places[other])],)
    }
