"""Scores: a text as numbered terms, and the exact score of pieces for a query."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from sys import byteorder, modules
from typing import TYPE_CHECKING, Any
from zlib import crc32

import apsw

if TYPE_CHECKING:
    from numpy.typing import NDArray


def stems(db: apsw.Connection, text: str) -> list[str]:
    """The stems of a text in order, as the full text has them."""
    cut = db.fts5_tokenizer("porter", ["unicode61"])
    found = cut(text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [str(token) for token in found]


def number(term: str) -> int:
    """A term as 32 bits; two terms with one number are so rare that a score may take the one for the other."""
    return crc32(term.encode())


def numbers(terms: Iterable[str]) -> bytes:
    """Terms as they stand in a piece."""
    return array("I", map(number, terms)).tobytes()


_K1 = 1.2
"""How soon more of the same word counts for little."""

MOST = _K1 + 1
"""What a word comes to at most, times what it is worth: however often it is said, it is never quite so much."""

_OWN_TERMS, _OWN_SHARE, _OWN_MOST = 30.0, 0.5, 1.8
"""A word in a longer piece counts less, by half of how much longer than this, and not below 1 / 1.8."""

_NEAR_WEIGHT, _NEAR_TERMS, _NEAR_SHARE = 0.5, 70.0, 0.75
"""A word beside a piece never counts more than one in it, be the piece as long as it may."""


_FEW_TERMS = 8_000
"""So many are counted one by one in a millisecond; importing numpy takes a hundred."""


def scores(idf: Mapping[int, float], rows: Sequence[tuple[Any, ...]]) -> list[float]:
    """BM25 over all fields together, one score for each row of (own terms, terms of its marks, all terms).

    Lengths are held against fixed ones, so that a score does not change because other memories are longer.
    """
    if not rows:
        return []
    if "numpy" not in modules and sum(len(row[2]) for row in rows) <= 4 * _FEW_TERMS:
        return of_few(idf, rows)
    found: list[float] = of_many(idf, rows).tolist()
    return found


def of_few(idf: Mapping[int, float], rows: Sequence[tuple[int, int, bytes]]) -> list[float]:
    """The same, term by term."""
    packed = [row[2] for row in rows]
    terms, ends = b"".join(packed), list(accumulate(map(len, packed)))
    total = [0.0] * len(rows)
    for term, worth in idf.items():
        often: dict[int, float] = {}
        for at in _found(terms, term.to_bytes(4, byteorder)):
            row = bisect_right(ends, at)
            often[row] = often.get(row, 0.0) + _counts(rows[row], (at - ends[row] + len(packed[row])) // 4)
        for row, weight in often.items():
            total[row] += worth * weight * MOST / (weight + _K1)
    return total


def _found(terms: bytes, term: bytes) -> Iterator[int]:
    """Where a term begins; between two that stand side by side others may seem to stand."""
    at = terms.find(term)
    while at >= 0:
        if at % 4 == 0:
            yield at
        at = terms.find(term, at + 1)


def _counts(row: tuple[int, int, bytes], place: int) -> float:
    """What a word counts that stands in this place of a piece."""
    own, marks, packed = row
    if place < own:
        return 1.0 / min(1 - _OWN_SHARE + _OWN_SHARE * own / _OWN_TERMS, _OWN_MOST)
    if place < own + marks:
        return 1.0
    return _NEAR_WEIGHT / max(1 - _NEAR_SHARE + _NEAR_SHARE * (len(packed) // 4 - own - marks) / _NEAR_TERMS, 1.0)


def of_many(idf: Mapping[int, float], rows: Sequence[tuple[Any, ...]]) -> NDArray[Any]:
    """The same for any number of rows, all terms at once."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    owns, marks, packed = zip(*rows, strict=True)
    own, lengths = np.array(owns), np.array([len(one) // 4 for one in packed])
    marked, ends = own + np.array(marks), np.cumsum(lengths)
    within = inside(own)
    near = _NEAR_WEIGHT / np.maximum(1 - _NEAR_SHARE + _NEAR_SHARE * (lengths - marked) / _NEAR_TERMS, 1.0)
    terms = np.frombuffer(b"".join(packed), np.uint32)
    found = [np.flatnonzero(terms == term) for term in idf]
    hits = np.concatenate(found)
    piece = np.searchsorted(ends, hits, "right")
    place = hits - ends[piece] + lengths[piece]
    weight = np.where(place < own[piece], within[piece], np.where(place < marked[piece], 1.0, near[piece]))
    each = np.repeat(np.arange(len(idf)) * len(rows), list(map(len, found))) + piece
    often = np.bincount(each, weights=weight, minlength=len(idf) * len(rows)).reshape(len(idf), len(rows))
    total: NDArray[Any] = MOST * (np.array([[worth] for worth in idf.values()]) * share(often)).sum(0)
    return total


def inside(own: NDArray[Any]) -> NDArray[Any]:
    """What a word counts that stands in a piece of so many terms itself."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    counted: NDArray[Any] = 1.0 / np.minimum(1 - _OWN_SHARE + _OWN_SHARE * own / _OWN_TERMS, _OWN_MOST)
    return counted


def share(often: NDArray[Any]) -> NDArray[Any]:
    """Which share of the most a word comes to that stands in a piece so often."""
    shared: NDArray[Any] = often / (often + _K1)
    return shared
