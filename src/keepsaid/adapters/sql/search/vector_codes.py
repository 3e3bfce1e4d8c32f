"""Vectors in memory: the signs of all, 1 bit a number, and in full those that a listener reads, where they are few."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keepsaid.values import frozen

Longs = NDArray[np.int64]
Mask = NDArray[np.bool_]

_CHUNK = 32_768
"""Rows scanned at once: what is counted of them stays in the cache."""

_SAMPLE = 64
"""Rows, evenly spread, that tell how near everything is on the whole; twice as many at most."""

_GUESSED_EACH = 4
"""The nearest rows by signs, for each requested row, that are scored with the query's full numbers."""

_LISTENERS = 8
"""The number of listeners whose masks are cached."""

_FEW, _EVERY = 50_000, 64
"""Of more values than this, the least are searched below a bound, estimated from every 64th value."""

_FAR = np.uint16(65_535)


@frozen
class BinaryVectors:
    """Binary-quantised vectors: ids, memories, audiences, and a row of 64-bit words per 64 dimensions."""

    ids: Longs
    memories: Longs
    audiences: Longs
    planes: NDArray[np.uint64]


@frozen
class NearRows:
    """Rows that are near, by the memory of each, and a sample of all: ids of vectors."""

    rows: dict[int, int]
    sample: tuple[int, ...]


def quantise_vectors(rows: Sequence[tuple[Any, ...]], dimension: int) -> BinaryVectors:
    """Quantise rows of (id, memory, audience, vector of 16-bit floats) to the sign bit of each dimension."""
    ids, memories, audiences = (np.array([row[n] for row in rows], np.int64) for n in range(3))
    # a float above zero is, read as an integer, one above zero: compared so, it takes a tenth of the time
    numbers = np.frombuffer(b"".join(row[3] for row in rows), np.int16).reshape(len(rows), dimension)
    return BinaryVectors(ids, memories, audiences, _planes(numbers))


class BinaryVectorIndex:
    """Binary-quantised vectors of one space; the place of a deleted row is masked and not reused."""

    def __init__(self, dimension: int, room: int = 256) -> None:
        self._count = 0
        self._planes = np.zeros((-(-dimension // 64), room), np.uint64)
        self._ids = np.zeros(room, np.int64)
        self._memories = np.zeros(room, np.int64)
        self._audiences = np.zeros(room, np.int64)
        self._alive = np.zeros(room, bool)
        self._heard: dict[tuple[int, ...], Mask] = {}

    @property
    def count(self) -> int:
        """How many places there are, those of rows that went included."""
        return self._count

    def add(self, signs: BinaryVectors) -> None:
        """Take in vectors that are not there yet."""
        start, count = self._count, self._count + len(signs.ids)
        if count > len(self._ids):
            self._grow(max(count, 2 * len(self._ids)))
        place = slice(start, count)
        self._ids[place], self._memories[place] = signs.ids, signs.memories
        self._audiences[place], self._alive[place] = signs.audiences, True
        self._planes[:, place] = signs.planes
        self._count = count

    def drop(self, memories: Sequence[int]) -> None:
        """The vectors of these memories count no more."""
        self._alive[: self._count] &= ~np.isin(self._memories[: self._count], memories)

    def mask_visible(self, audiences: Sequence[int] | None) -> Mask:
        """Mask of the places that these audiences may read; None means all audiences."""
        alive = self._alive[: self._count]
        if audiences is None:
            return alive
        key = tuple(audiences)
        known = self._heard.pop(key, np.zeros(0, bool))
        new = np.isin(self._audiences[len(known) : self._count], audiences)
        mask = self._heard[key] = np.concatenate((known, new)) if len(new) else known
        if len(self._heard) > _LISTENERS:
            del self._heard[next(iter(self._heard))]
        return alive & mask

    def of(self, places: Longs) -> tuple[list[int], list[int]]:
        """The ids at these places, and their memories."""
        return self._ids[places].tolist(), self._memories[places].tolist()

    def near(self, asked: NDArray[np.float32], heard: Mask, depth: int) -> NearRows:
        """The rows nearest to a query among the visible: preselected by signs, then ranked by the query's numbers."""
        far = self._distances(asked)
        far[~heard] = _FAR
        chosen = least(far, depth * _GUESSED_EACH)
        chosen = chosen[heard[chosen]]
        if len(chosen) > depth:
            # what the query has in common with these rows, were each of their numbers 1 or 0 by its sign
            codes = np.ascontiguousarray(self._planes[:, chosen].T).view(np.uint8)
            signs = np.unpackbits(codes, axis=1, count=len(asked)).astype(np.float32)
            chosen = chosen[least(-(signs @ asked), depth)]
        ids, memories = self.of(chosen)
        return NearRows(dict(zip(ids, memories, strict=True)), tuple(self._ids[_spread(heard)].tolist()))

    def _distances(self, asked: NDArray[np.float32]) -> NDArray[np.uint16]:
        """In how many signs each row differs from a query; three words' bits are summed in bytes, as they fit."""
        code = _planes(asked.reshape(1, -1))[:, 0]
        far = np.zeros(self._count, np.uint16)
        room = min(_CHUNK, self._count)
        differing, counted, summed = np.empty(room, np.uint64), np.empty(room, np.uint8), np.empty(room, np.uint8)
        for start in range(0, self._count, _CHUNK):
            end = min(start + _CHUNK, self._count)
            words, bits, sums = differing[: end - start], counted[: end - start], summed[: end - start]
            for n, (plane, word) in enumerate(zip(self._planes, code, strict=True)):
                np.bitwise_xor(plane[start:end], word, out=words)
                if n % 3 == 0:
                    np.bitwise_count(words, out=sums)
                else:
                    np.bitwise_count(words, out=bits)
                    np.add(sums, bits, out=sums)
                if n % 3 == 2 or n == len(code) - 1:
                    far[start:end] += sums
        return far

    def _grow(self, room: int) -> None:
        planes = np.zeros((len(self._planes), room), np.uint64)
        planes[:, : self._count] = self._planes[:, : self._count]
        self._planes = planes
        self._ids, self._memories = longer(self._ids, room), longer(self._memories, room)
        self._audiences, self._alive = longer(self._audiences, room), longer(self._alive, room)


def longer(array: NDArray[Any], room: int) -> NDArray[Any]:
    """The array with room for more rows."""
    made = np.zeros((room, *array.shape[1:]), array.dtype)
    made[: len(array)] = array
    return made


def least(values: NDArray[Any], count: int) -> Longs:
    """Places of the least values; all that are equal to the last of them too, so that none is left out by chance."""
    if len(values) <= count:
        return np.arange(len(values))
    if len(values) > _FEW:
        bound = _bound(values, count)
        below = np.flatnonzero(values <= bound)
        if len(below) >= count:
            return below[_up_to(values[below], count)]
    return _up_to(values, count)


def _up_to(values: NDArray[Any], count: int) -> Longs:
    return np.flatnonzero(values <= np.partition(values, count - 1)[count - 1])


def _bound(values: NDArray[Any], count: int) -> Any:
    """What a few times `count` of many values do not exceed, by a sample of them; seldom fewer."""
    sampled = values[::_EVERY]
    share = count / _EVERY
    place = min(len(sampled) - 1, int(share + 5 * share**0.5 + 5))
    return np.partition(sampled, place)[place]


def _spread(heard: Mask) -> Longs:
    """Places of a sample of the readable vectors, spread evenly."""
    step = max(1, len(heard) // (4 * _SAMPLE))
    places = np.flatnonzero(heard[::step]) * step
    if len(places) < _SAMPLE:
        places = np.flatnonzero(heard)
    return places[:: max(1, len(places) // _SAMPLE)]


def _planes(numbers: NDArray[Any]) -> NDArray[np.uint64]:
    """For every 64 numbers of the rows one row of words."""
    packed = np.packbits(numbers > 0, axis=1)
    padded = np.zeros((len(numbers), -(-packed.shape[1] // 8) * 8), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(padded.view(np.uint64).T)


Floats = NDArray[np.float32]
Read = Callable[[Sequence[int]], tuple[list[int], Floats]]

_WHOLES = 4
"""The number of listeners whose vectors are cached: 30 MB each at most, for 20,000 of 384 numbers."""


class ExactVectors:
    """The full vectors that one listener may read, each with its place in the binary index."""

    def __init__(self) -> None:
        self.seen = 0
        self._count = 0
        self._places = np.zeros(0, np.int64)
        self._memories = np.zeros(0, np.int64)
        self._vectors = np.zeros((0, 0), np.float32)

    def add(self, places: NDArray[np.int64], memories: Sequence[int], vectors: Floats) -> None:
        """Take in vectors at places behind all others."""
        if (count := self._count + len(places)) > len(self._places):
            room = max(count, 2 * len(self._places))
            self._places, self._memories = longer(self._places, room), longer(self._memories, room)
            self._vectors = longer(self._vectors.reshape(len(self._vectors), vectors.shape[1]), room)
        place = slice(self._count, count)
        self._places[place], self._memories[place], self._vectors[place] = places, memories, vectors
        self._count = count

    def nearest(self, asked: Floats, heard: Mask, depth: int) -> tuple[list[tuple[int, float]], float]:
        """The memories of the nearest vectors with their cosines; and the mean of all that are readable."""
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


class ExactVectorCache:
    """Cache of the full vectors of the newest listeners, read at their first query and extended afterwards."""

    def __init__(self) -> None:
        self._of: dict[tuple[int, ...] | None, ExactVectors] = {}

    def of(self, read: Read, audiences: tuple[int, ...] | None, codes: BinaryVectorIndex) -> ExactVectors:
        """What these audiences hear; `read` gives the vectors of ids, of those that are there."""
        whole = self._of.pop(audiences, None) or ExactVectors()
        self._of[audiences] = whole
        if len(self._of) > _WHOLES:
            del self._of[next(iter(self._of))]
        if whole.seen < codes.count:
            places = whole.seen + np.flatnonzero(codes.mask_visible(audiences)[whole.seen :])
            ids, memories = codes.of(places)
            found, vectors = read(ids)
            there = np.flatnonzero(np.isin(ids, found))
            if found:
                whole.add(places[there], np.asarray(memories)[there].tolist(), vectors)
                whole.seen = int(places[there[-1]]) + 1
            # what this snapshot does not show yet is read with a later one
            if len(found) == len(ids):
                whole.seen = codes.count
        return whole
