"""Codes: the signs of vectors, 1 bit a number, in memory; and all of the vectors while they are few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CHUNK = 16_384
"""Rows scanned at once: their codes stay in the cache."""

_SAMPLE = 64
"""Rows, evenly spread, that tell how near everything is on the whole; twice as many at most."""

_FAR = np.uint16(65_535)


@dataclass(frozen=True, slots=True)
class Near:
    """Rows that are near, with their memories, and a sample of all: ids of vectors."""

    ids: list[int]
    memories: list[int]
    sample: list[int]


class Codes:
    """The vectors of one space, as far as they are kept in memory; a row that went is masked, and its place lost."""

    def __init__(self, dimension: int, exact_max: int) -> None:
        self._words = -(-dimension // 64)
        self._dimension = dimension
        self._exact_max = exact_max
        self._count = 0
        self._bits = np.zeros((0, self._words), np.uint64)
        self._ids = np.zeros(0, np.int64)
        self._memories = np.zeros(0, np.int64)
        self._audiences = np.zeros(0, np.int64)
        self._alive = np.zeros(0, bool)
        self._full: NDArray[np.float32] | None = np.zeros((0, dimension), np.float32)

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows of (id, memory, audience, vector of 16-bit floats); their ids are larger than all before."""
        start, count = self._count, self._count + len(rows)
        if count > len(self._ids):
            self._grow(max(count, 2 * len(self._ids), 256))
        place = slice(start, count)
        vectors = np.frombuffer(b"".join(row[3] for row in rows), np.float16).reshape(len(rows), -1)
        self._ids[place] = [row[0] for row in rows]
        self._memories[place] = [row[1] for row in rows]
        self._audiences[place] = [row[2] for row in rows]
        self._alive[place] = True
        self._bits[place] = self._signs(vectors)
        self._count = count
        if self._full is not None:
            if count > self._exact_max:
                self._full = None
            else:
                self._full[place] = vectors

    def drop(self, memories: Sequence[int]) -> None:
        """The vectors of these memories count no more."""
        self._alive[: self._count] &= ~np.isin(self._memories[: self._count], memories)

    def near(self, query: bytes, audiences: Sequence[int] | None, depth: int) -> Near:
        """The rows nearest to a query among those that are heard."""
        asked = np.frombuffer(query, np.float32)
        heard = self._alive[: self._count]
        if audiences is not None:
            heard = heard & np.isin(self._audiences[: self._count], audiences)
        rows = np.flatnonzero(heard)
        far: NDArray[Any]
        if self._full is not None:
            far = -(self._full[: self._count] @ asked if len(rows) == self._count else self._full[rows] @ asked)
        else:
            far = self._distances(asked, heard)[rows]
        chosen = rows[_least(far, depth)]
        sample = rows[:: max(1, len(rows) // _SAMPLE)]
        return Near(self._ids[chosen].tolist(), self._memories[chosen].tolist(), self._ids[sample].tolist())

    def _distances(self, asked: NDArray[np.float32], heard: NDArray[np.bool_]) -> NDArray[np.uint16]:
        code = self._signs(asked.reshape(1, -1))[0]
        far = np.full(self._count, _FAR, np.uint16)
        for start in range(0, self._count, _CHUNK):
            place = slice(start, min(start + _CHUNK, self._count))
            if heard[place].any():
                np.bitwise_count(self._bits[place] ^ code).sum(axis=1, dtype=np.uint16, out=far[place])
        return far

    def _signs(self, vectors: NDArray[Any]) -> NDArray[np.uint64]:
        packed = np.packbits(vectors > 0, axis=1)
        padded = np.zeros((len(vectors), self._words * 8), np.uint8)
        padded[:, : packed.shape[1]] = packed
        return padded.view(np.uint64)

    def _grow(self, room: int) -> None:
        self._bits = _longer(self._bits, room)
        self._ids, self._memories = _longer(self._ids, room), _longer(self._memories, room)
        self._audiences, self._alive = _longer(self._audiences, room), _longer(self._alive, room)
        if self._full is not None:
            self._full = _longer(self._full, min(room, max(self._exact_max, self._count)))


def _longer(array: NDArray[Any], room: int) -> NDArray[Any]:
    longer = np.zeros((room, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _least(values: NDArray[Any], count: int) -> NDArray[np.intp]:
    """Places of the least values; all that are equal to the last of them too, so that none is left out by chance."""
    if len(values) <= count:
        return np.arange(len(values))
    return np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])
