"""Words in blocks: which pieces a word stands in and what it is worth there, read at once (docs/concepts/recall.md).

A stretch is all pieces whose ids lie in one range. Its blocks are made from the terms of its pieces and worth nothing
without: with a piece that goes, they go in the same transaction, and the next upkeep makes them anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import apsw

from keepsaid.adapters.sqlite.query import every, numbers, only
from keepsaid.adapters.sqlite.statements import load
from keepsaid.ports.points import point

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SQL = load("memory_words")

STRETCH = 4_096
"""Ids that one stretch spans; a place in it takes 16 bits. The triggers of memory_piece count by the same number."""

_STRETCHES_LEAST = 3
"""A store that has filled fewer is searched faster without: all but its commonest words are within FTS5's budget."""

_READ_EACH = 512
"""So many pieces are read at a time: some 4 ms, for which whoever has something to write waits."""

_PARTS = 256
"""Blocks of a stretch: a word stands in the one that the lowest bits of its number say."""

_WORTH = 255
"""What a word comes to in a piece is told in so many steps of the most it can come to."""


@dataclass(slots=True)
class _Reading:
    """A stretch whose pieces are being read: up to which, how many there were, and the words of each in order."""

    number: int
    upto: int
    pieces: int = 0
    words: list[tuple[NDArray[Any], NDArray[Any]]] = field(default_factory=list)


_reading: WeakKeyDictionary[apsw.Connection, _Reading] = WeakKeyDictionary()
"""How far each writer is; lost, it begins with the stretch anew."""


def pack_words(db: apsw.Connection, finish: bool) -> None:
    """Upkeep: a step towards the blocks of a full stretch that has none, or all of them; waits for the archive."""
    while finish or not db.execute(_SQL["archiving"]).fetchall():
        full, there = only(db, _SQL["full"], (STRETCH,))
        if full < _STRETCHES_LEAST or full <= there:
            return
        if _read_on(db, full):
            point("block.before")
            with db:
                _keep(db, _reading.pop(db))
            point("block.after")
        if not finish:
            return


def _read_on(db: apsw.Connection, full: int) -> bool:
    """Read some pieces; returns whether those of the stretch were all read."""
    reading = _reading.get(db)
    if reading is None:
        known = set(stretches(db))
        number = next(one for one in range(full) if one not in known)
        reading = _reading[db] = _Reading(number, number * STRETCH)
    rows = every(db, _SQL["pieces"], (reading.upto, reading.upto + _READ_EACH))
    if rows:
        reading.pieces += len(rows)
        reading.words.append(_words_of(rows, reading.number * STRETCH))
    reading.upto += _READ_EACH
    return reading.upto >= (reading.number + 1) * STRETCH


def stretches(db: apsw.Connection) -> list[int]:
    """The stretches that have their blocks, in order."""
    return [int(row[0]) for row in every(db, _SQL["stretches"])]


def outside(there: Sequence[int], newest: int) -> Iterator[tuple[int, int]]:
    """What no stretch of these spans up to the newest piece: from each piece, and until which."""
    begin = 0
    for number in there:
        if number * STRETCH > begin:
            yield begin, number * STRETCH
        begin = (number + 1) * STRETCH
    if begin <= newest:
        yield begin, newest + 1


def best(db: apsw.Connection, there: Sequence[int], worth: Mapping[int, float], depth: int) -> list[int]:
    """The pieces of these stretches that match best, by what each word is worth; of equal ones the larger id first."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    found: list[tuple[bytes, bytes, int, float, int]] = []
    for base, words, asked in _blocks(db, there, worth):
        head = memoryview(words).cast("I")
        size = head[0]
        places = 4 + 8 * size
        worths = places + 2 * head[2 * size]
        for term in asked:
            at = bisect_left(head, term, 1, size + 1)
            if at <= size and head[at] == term:
                start, end = head[at + size - 1] if at > 1 else 0, head[at + size]
                stands = words[places + 2 * start : places + 2 * end]
                found.append((stands, words[worths + start : worths + end], base, worth[term], end - start))
    if not found:
        return []
    stood, comes_to, bases, weights, counts = zip(*found, strict=True)
    pieces = np.frombuffer(b"".join(stood), np.uint16) + np.repeat(np.array(bases), counts)
    each = np.frombuffer(b"".join(comes_to), np.uint8) * np.repeat(np.array(weights, np.float32), counts)
    return _highest(np.bincount(pieces, each), depth)


def _blocks(
    db: apsw.Connection, there: Sequence[int], worth: Mapping[int, float]
) -> Iterator[tuple[int, bytes, list[int]]]:
    """Where a stretch begins, one of its blocks, and the words that may stand in it."""
    parts: dict[int, list[int]] = {}
    for term in worth:
        parts.setdefault(term % _PARTS, []).append(term)
    wanted = numbers([number * _PARTS + part for number in there for part in parts])
    for id_, words in every(db, _SQL["words"], (wanted,)):
        yield id_ // _PARTS * STRETCH, words, parts[id_ % _PARTS]


def _highest(scores: NDArray[Any], depth: int) -> list[int]:
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    from keepsaid.adapters.sqlite.memory_codes import least  # noqa: PLC0415 - imports numpy

    chosen = least(-scores, depth)
    chosen = chosen[np.lexsort((-chosen, -scores[chosen]))][:depth]
    found: list[int] = chosen[scores[chosen] > 0].tolist()
    return found


def _keep(db: apsw.Connection, reading: _Reading) -> None:
    """Write the blocks of a stretch, unless one of its pieces went since it was read: none ever comes."""
    first = reading.number * STRETCH
    if only(db, _SQL["pieces_in"], (first, first + STRETCH))[0] != reading.pieces:
        return
    db.execute(_SQL["keep_stretch"], (reading.number, reading.pieces))
    if reading.words:
        made = ((reading.number * _PARTS + part, words) for part, words in _blocks_of(reading))
        db.executemany(_SQL["keep_words"], made)


def _words_of(rows: Sequence[tuple[Any, ...]], first: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Every word in every one of some pieces, in order of block, word and place, and what it comes to there."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    from keepsaid.adapters.sqlite.memory_score import inside, share  # noqa: PLC0415 - beside numpy

    ids, own, marks, packed = zip(*rows, strict=True)
    owns, lengths = np.array(own), np.array(own) + np.array(marks)
    row = np.repeat(np.arange(len(rows)), lengths)
    within = np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    weight = np.where(within < owns[row], inside(owns)[row], 1.0)
    terms = np.frombuffer(b"".join(packed), np.uint32).astype(np.int64)
    key = (terms % _PARTS << 48) | (terms << 16) | (np.array(ids)[row] - first)
    order = np.argsort(key)
    key, starts = _runs(key[order])
    return key, np.ceil(share(np.add.reduceat(weight[order], starts)) * _WORTH).astype(np.uint8)


def _blocks_of(reading: _Reading) -> Iterator[tuple[int, bytes]]:
    """The blocks of a stretch: how many words, the words, where the places of each end, the places, their worths."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    keys, worths = (np.concatenate(some) for some in zip(*reading.words, strict=True))
    order = np.argsort(keys, kind="stable")
    keys, worths = keys[order], worths[order]
    words, starts = _runs(keys >> 16)
    ends = np.append(starts[1:], len(keys))
    parts, firsts = _runs(words >> 32)
    for part, start, end in zip(parts.tolist(), firsts.tolist(), [*firsts[1:].tolist(), len(words)], strict=True):
        begin, until = starts[start], ends[end - 1]
        head = np.concatenate(([end - start], words[start:end] & 0xFFFF_FFFF, ends[start:end] - begin))
        places = (keys[begin:until] & 0xFFFF).astype(np.uint16)
        made = head.astype(np.uint32).tobytes() + places.tobytes() + worths[begin:until].tobytes()
        yield part, made + bytes(-len(made) % 4)


def _runs(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Of sorted values each once, and where each begins."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
    return values[starts], starts
