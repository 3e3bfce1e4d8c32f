"""Blocks: the signs of many vectors in one row, so that a million of them are at hand in a moment.

A block holds the vectors of one space whose ids lie in one range. It is made from them and worth nothing without:
deleting a vector deletes the block it is in, in the same transaction, and the next upkeep makes it anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import apsw

from keepsaid.adapters.sqlite.query import every, only
from keepsaid.adapters.sqlite.statements import load
from keepsaid.ports.failpoints import point

if TYPE_CHECKING:
    from keepsaid.adapters.sqlite.memory_codes import Codes, Signs

_SQL = load("memory_vectors")
_RANGE = 1_024
"""Ids that one block spans; the trigger `vector_delete` counts by the same number."""


def pack(db: apsw.Connection, finish: bool) -> None:
    """Upkeep: make a block that is not there, or all of them.

    While maintenance archives, it takes vectors out of the same blocks step by step: they are made anew after it.
    """
    while finish or not every(db, _SQL["archiving"]):
        (spaces, ranges, blocks) = only(db, _SQL["block_counts"], (_RANGE,))
        if spaces * ranges <= blocks:
            return
        space, dimension, number = next(_unpacked(db, ranges))
        point("block.before")
        with db:
            db.execute(_SQL["keep_block"], _block(db, space, dimension, number))
        point("block.after")
        if not finish:
            return


def opened(db: apsw.Connection, space: int, dimension: int) -> Codes:
    """All vectors of a space by their signs, as this snapshot has them: from blocks, and the rest row by row."""
    from keepsaid.adapters.sqlite.memory_codes import Codes  # noqa: PLC0415 - imports numpy

    (ranges,) = only(db, _SQL["ranges"], (_RANGE,))
    (packed,) = only(db, _SQL["packed"], (space,))
    packed_numbers = _numbers(db, space)
    rest = [number for number in range(ranges + 1) if number not in packed_numbers]
    codes = Codes(dimension, packed + _RANGE * len(rest))
    for row in every(db, _SQL["blocks"], (space,)):
        codes.add(_signs(row, dimension))
    for number in rest:
        for signs in _of_rows(db, space, dimension, number):
            codes.add(signs)
    return codes


def _unpacked(db: apsw.Connection, ranges: int) -> Iterator[tuple[int, int, int]]:
    """Spaces, their dimensions, and the ranges they have no block of."""
    spaces: list[tuple[Any, ...]] = every(db, _SQL["dimensions"])
    for space, dimension in spaces:
        there = _numbers(db, space)
        yield from ((space, dimension, number) for number in range(ranges) if number not in there)


def _numbers(db: apsw.Connection, space: int) -> set[int]:
    return {int(str(row[0])) for row in every(db, _SQL["block_numbers"], (space,))}


def _block(db: apsw.Connection, space: int, dimension: int, number: int) -> tuple[object, ...]:
    for signs in _of_rows(db, space, dimension, number):
        parts = (signs.ids, signs.memories, signs.audiences, signs.planes)
        return (space, number, len(signs.ids), *(part.tobytes() for part in parts))
    return (space, number, 0, b"", b"", b"", b"")


def _of_rows(db: apsw.Connection, space: int, dimension: int, number: int) -> Iterator[Signs]:
    """The signs of a range that has any vector of the space."""
    from keepsaid.adapters.sqlite.memory_codes import signs_of  # noqa: PLC0415 - imports numpy

    bound = (space, number * _RANGE, (number + 1) * _RANGE)
    rows: list[tuple[Any, ...]] = every(db, _SQL["vectors_between"], bound)
    if rows:
        yield signs_of(rows, dimension)


def _signs(row: tuple[Any, ...], dimension: int) -> Signs:
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    from keepsaid.adapters.sqlite.memory_codes import Signs  # noqa: PLC0415 - imports numpy

    ids, memories, audiences = (np.frombuffer(part, np.int64) for part in row[:3])
    return Signs(ids, memories, audiences, np.frombuffer(row[3], np.uint64).reshape(-(-dimension // 64), -1))
