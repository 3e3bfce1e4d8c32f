"""Which memories say the same: their vectors compared, all with all (design: section 4.3)."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Any

import apsw

from keepsaid.adapters.sqlite.query import every
from keepsaid.adapters.sqlite.statements import load

SQL = load("memory_alike")


def alike(db: apsw.Connection, ids: tuple[int, ...], above: float) -> tuple[tuple[int, int], ...]:
    """Pairs of memories, the smaller id first, each of whose pieces has one of the other's nearer than `above`.

    Compared in the newest space in which both have vectors; a memory that has none is like no other.
    """
    found: list[tuple[Any, ...]] = every(db, SQL["vectors_of"], {"ids": json.dumps(sorted(set(ids)))})
    pairs: set[tuple[int, int]] = set()
    for _, rows in groupby(found, key=lambda row: row[0]):
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
