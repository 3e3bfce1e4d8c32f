"""Vectors kept in memory as they are, for listeners who hear few: an exact search is then one product."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw
import numpy as np
from numpy.typing import NDArray

from keepsaid.adapters.sqlite.memory_codes import Codes, Mask, least, longer

Floats = NDArray[np.float32]
Read = Callable[[apsw.Connection, Sequence[int]], tuple[list[int], Floats]]

_LISTENERS = 4
"""So many listeners' vectors are kept: 30 MB each at most, for 20,000 of 384 numbers."""


class Whole:
    """The vectors one listener hears, each with its place among the codes."""

    def __init__(self) -> None:
        self.seen = 0
        self._count = 0
        self._places = np.zeros(0, np.int64)
        self._memories = np.zeros(0, np.int64)
        self._vectors = np.zeros((0, 0), np.float32)

    def add(self, places: NDArray[np.int64], memories: Sequence[int], vectors: Floats) -> None:
        """Take in vectors at places behind all others."""
        count = self._count + len(places)
        if count > len(self._places):
            room = max(count, 2 * len(self._places))
            self._places, self._memories = longer(self._places, room), longer(self._memories, room)
            self._vectors = longer(self._vectors.reshape(len(self._vectors), vectors.shape[1]), room)
        place = slice(self._count, count)
        self._places[place], self._memories[place], self._vectors[place] = places, memories, vectors
        self._count = count

    def nearest(self, asked: Floats, heard: Mask, depth: int) -> tuple[list[tuple[int, float]], float]:
        """The memories of the nearest vectors with their cosines; and the mean of all that are heard."""
        if not self._count:
            return [], 0.0
        cosines = self._vectors[: self._count] @ asked
        there = np.flatnonzero(heard[self._places[: self._count]])
        if len(there) < self._count:
            cosines = cosines[there]
        if not len(cosines):
            return [], 0.0
        chosen = least(-cosines, depth)
        memories = self._memories[there[chosen]]
        return list(zip(memories.tolist(), cosines[chosen].tolist(), strict=True)), float(cosines.mean())


class Wholes:
    """The vectors of the listeners that asked last, read when they first ask and from then on as they come."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._of: dict[tuple[int, ...] | None, Whole] = {}

    def of(self, db: apsw.Connection, audiences: tuple[int, ...] | None, codes: Codes) -> Whole:
        """What these audiences hear."""
        whole = self._of.pop(audiences, None) or Whole()
        self._of[audiences] = whole
        if len(self._of) > _LISTENERS:
            del self._of[next(iter(self._of))]
        if whole.seen < codes.count:
            places = whole.seen + np.flatnonzero(codes.heard(audiences)[whole.seen :])
            ids, memories = codes.of(places)
            found, vectors = self._read(db, ids)
            there = np.flatnonzero(np.isin(ids, found))
            if found:
                whole.add(places[there], np.asarray(memories)[there].tolist(), vectors)
                whole.seen = int(places[there[-1]]) + 1
            # what this snapshot does not show yet is read with a later one
            if len(found) == len(ids):
                whole.seen = codes.count
        return whole
