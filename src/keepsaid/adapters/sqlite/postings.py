"""Postings: the pieces that FTS5 would rank first for many words, from what its index has of each word.

FTS5's `bm25` looks up the length of every piece in which any of the words stands. Here each word's entries are read as
one value, and only the lengths of pieces that can be among the best. Scores are computed in the same steps as FTS5's,
so that the best pieces and their order are the same: https://sqlite.org/fts5.html#the_bm25_function
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from math import log
from typing import TYPE_CHECKING, Any

from keepsaid.adapters.sql.query import SqlSession, column, load, only
from keepsaid.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SQL = load("postings", "keepsaid.adapters.sqlite")
_K1, _B, _IDF_LEAST = 1.2, 0.75, 1e-6
"""The constants of FTS5's `bm25`."""

_FIRST_SHARE = 4
"""How many times the wanted number of pieces are scored at once: the least score of the best is known then."""

VISITS_LEAST = 1_500
"""Fewer entries of the index FTS5 ranks as fast itself."""

_ROUNDING = 1 + 1e-9
"""What an upper bound of a score is multiplied with, because sums in another order are rounded otherwise."""

_HIGH, _LARGEST = 0x80, 2**64 - 1
"""In FTS5's lengths and totals, a byte from the first on is followed by another one of the same number, and no number
exceeds the second."""


def open_postings(db: SqlSession) -> None:
    """Open the list of the index's entries, in the temporary schema of a connection that is in no transaction."""
    db.execute(_SQL["open"])


@frozen
class _Entries:
    """Where terms stand: one entry for each term in each piece, by term and piece; `often` is how often it is there."""

    term: NDArray[Any]
    piece: NDArray[Any]
    often: NDArray[Any]

    def among(self, chosen: NDArray[Any]) -> _Entries:
        return _Entries(self.term[chosen], self.piece[chosen], self.often[chosen])


@frozen
class _Scoring:
    """What BM25 takes from the whole index: how rare each term is, and the mean length of a piece, in terms."""

    idf: Sequence[float]
    mean: float

    def of(self, often: NDArray[Any], length: NDArray[Any] | float) -> NDArray[Any]:
        """What a term comes to that stands so often in pieces of these lengths, but for how rare it is."""
        part: NDArray[Any] = (often * (_K1 + 1.0)) / (often + _K1 * (1 - _B + _B * length / self.mean))
        return part


def best(db: SqlSession, terms: Sequence[str], span: tuple[int, int], depth: int) -> list[int]:
    """The `depth` pieces of a span of ids that FTS5 ranks first for any of these terms; of equals the larger id first.

    The span begins with its first id and ends before its second.
    """
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    first, until = span
    whole = _read(db, terms)
    entries = whole.among((whole.piece >= first) & (whole.piece < until))
    if not len(entries.term):
        return []
    scoring = _scoring(db, np.bincount(whole.term, minlength=len(terms)).tolist())
    most = np.array(scoring.idf)[entries.term] * scoring.of(entries.often, 1.0) * _ROUNDING
    bounds = np.bincount(entries.piece - first, most)
    pieces, scores = np.zeros(0, np.int64), np.zeros(0)
    for chosen in _chosen(bounds, depth):
        scored = chosen if not len(scores) else chosen[bounds[chosen] >= np.partition(scores, -depth)[-depth]]
        scored.sort()
        if len(scored):
            pieces = np.concatenate((pieces, scored + first))
            scores = np.concatenate((scores, _scores(db, entries, scoring, scored + first)))
    found: list[int] = pieces[np.lexsort((-pieces, -scores))][:depth].tolist()
    return found


def _chosen(bounds: NDArray[Any], depth: int) -> Iterator[NDArray[Any]]:
    """The pieces whose upper bounds are the highest, at least `depth` of them if there are; then all others."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    there = np.flatnonzero(bounds)
    if len(there) <= _FIRST_SHARE * depth:
        yield there
        return
    order = np.argpartition(-bounds[there], _FIRST_SHARE * depth)
    yield there[order[: _FIRST_SHARE * depth]]
    yield there[order[_FIRST_SHARE * depth :]]


def _read(db: SqlSession, terms: Sequence[str]) -> _Entries:
    """The entries of all these terms in the whole index."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    listed = [listed or "" for listed in column(db, _SQL["postings"], (json.dumps(terms, ensure_ascii=False),))]
    joined = ",".join(filter(None, listed))
    pieces = np.fromstring(joined, np.int64, sep=",") if joined else np.zeros(0, np.int64)
    counts = [one.count(",") + 1 if one else 0 for one in listed]
    numbers = np.repeat(np.arange(len(terms)), counts)
    begins = np.flatnonzero(np.diff(pieces, prepend=-1) | np.diff(numbers, prepend=-1))
    often = np.diff(begins, append=len(pieces)).astype(np.float64)
    return _Entries(numbers[begins], pieces[begins], often)


def _scoring(db: SqlSession, pieces_of: Sequence[int]) -> _Scoring:
    """How rare terms are, by the number of pieces that each is in."""
    pieces, *lengths = _numbers(only(db, _SQL["totals"])[0])
    rare = (log((pieces - having + 0.5) / (having + 0.5)) for having in pieces_of)
    return _Scoring([idf if idf > 0 else _IDF_LEAST for idf in rare], sum(lengths) / pieces)


def _numbers(packed: bytes) -> Iterator[int]:
    """The whole numbers of a record of FTS5: seven bits a byte, the highest first."""
    number = 0
    for byte in packed:
        number = (number << 7 | byte & ~_HIGH) & _LARGEST
        if byte < _HIGH:
            yield number
            number = 0


def _scores(db: SqlSession, entries: _Entries, scoring: _Scoring, pieces: NDArray[Any]) -> NDArray[Any]:
    """The exact scores of some pieces in ascending order, added up term by term as FTS5 does."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    base = min(int(entries.piece.min()), int(pieces[0]))
    lengths = _lengths(column(db, _SQL["sizes"], (db.numbers(pieces.tolist()),)))
    place = np.full(max(int(entries.piece.max()), int(pieces[-1])) + 1 - base, -1)
    place[pieces - base] = np.arange(len(pieces))
    at = place[entries.piece - base]
    chosen = at >= 0
    often = np.zeros((len(scoring.idf), len(pieces)))
    often[entries.term[chosen], at[chosen]] = entries.often[chosen]
    scores = np.zeros(len(pieces))
    for worth, row in zip(scoring.idf, often, strict=True):
        scores += worth * scoring.of(row, lengths)
    return scores


def _lengths(packed: Sequence[bytes]) -> NDArray[Any]:
    """The terms of each piece, in all columns together."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    return np.array([sum(one) if one.isascii() else sum(_numbers(one)) for one in packed], np.float64)
