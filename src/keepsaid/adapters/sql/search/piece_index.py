"""The index of memory: pieces of what was said as numbered terms, and their exact scores for a query."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from sys import byteorder, modules
from typing import TYPE_CHECKING, Any
from zlib import crc32

from keepsaid.adapters.sql.memory.entities import name_entities
from keepsaid.adapters.sql.memory.learning import renew_slots
from keepsaid.adapters.sql.memory.rows import own_terms
from keepsaid.adapters.sql.query import (
    JointStatement,
    MemorySession,
    MentionsOf,
    Row,
    chunks,
    column,
    every,
    load,
    only,
    post_each,
)
from keepsaid.adapters.sql.search.tokens import stems_of
from keepsaid.text.languages import indexed_terms
from keepsaid.text.words import pieces, said_words
from keepsaid.values import frozen

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
"""Up to this number, terms are counted one by one in a millisecond; importing numpy takes a hundred."""


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
    """The weight of a word in a piece itself, by the number of the piece's terms."""
    import numpy as np  # noqa: PLC0415 - a program that asks nothing starts without

    counted: NDArray[Any] = 1.0 / np.minimum(1 - _OWN_SHARE + _OWN_SHARE * own / _OWN_TERMS, _OWN_MOST)
    return counted


def share(often: NDArray[Any]) -> NDArray[Any]:
    """Which share of the most a word comes to that stands in a piece so often."""
    shared: NDArray[Any] = often / (often + _K1)
    return shared


BEFORE, AFTER = 2, 1
"""How many of what was said before and after a piece lend it their words."""

NEAR_CHARS = 200
"""The characters of each that are used."""

KNOWN = "\ue000known"
"""Stands beside the time of what was learned, as no word of anybody's, so that what is known is searched by itself."""

_SQL = load("memory_index")
_COUNTED_AT_ONCE = 2_000
_REINDEXED_AT_ONCE = 32
_COUNTED_AGAIN = 1.25
"""Terms are counted again when the number of pieces has grown by this factor since the last count."""


@frozen
class _Stale:
    memory_id: int
    text: str
    speaker: str
    said_at: int
    audience: int
    beside: bool


def reindex(db: MemorySession, mentions: MentionsOf = "new") -> None:
    named = []
    for memory, wanted, there in _compared([_Stale(*row) for row in every(db, _SQL["stale"])], db):
        if [row[3:] for row in there] == [(one["body"], one["speaker"], one["said"]) for one in wanted]:
            pairs = list(zip(wanted, there, strict=True))
            found_otherwise = [one for one, row in pairs if one["grams"] != row[2]]
            moved = [one for one, row in pairs if one["grams"] == row[2] and one["terms"] != row[1]]
            post_each(db, _SQL["change_grams"], found_otherwise)
            post_each(db, _SQL["change_piece"], moved)
            is_new = False
        else:
            db.post(_SQL["drop_pieces"], {"memory_id": memory.memory_id})
            post_each(db, _SQL["add_piece"], wanted)
            is_new = True
        if mentions == "all" or (mentions == "new" and is_new):
            named.append(memory.memory_id)
    name_entities(db, named)
    db.post(_SQL["settled"])


def _compared(stale: Sequence[_Stale], db: MemorySession) -> Iterator[tuple[_Stale, list[dict[str, Any]], list[Row]]]:
    """Each memory with its pieces as they are to be, and as they are."""
    for part in chunks(stale):
        found = iter(db.ask(*(one for memory in part for one in _ask_of(memory))))
        for memory in part:
            before, after = (next(found)[::-1], next(found)) if memory.beside else ([], [])
            texts = [[str(text) for (text,) in side] for side in (before, after)]
            yield memory, list(_made(memory, *texts)), next(found)


def _ask_of(memory: _Stale) -> Iterator[JointStatement]:
    """What is to be known of a memory: what was said before and after it, and its pieces."""
    place = {"audience": memory.audience, "said_at": memory.said_at, "id": memory.memory_id, "chars": NEAR_CHARS}
    if memory.beside:
        yield JointStatement(_SQL["before"], {**place, "count": BEFORE})
        yield JointStatement(_SQL["after"], {**place, "count": AFTER})
    yield JointStatement(_SQL["pieces_of"], {"memory_id": memory.memory_id})


def _made(memory: _Stale, before: Sequence[str], after: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The pieces of a memory; what stands around one are its neighbours in the text, then those of the lane."""
    bodies = pieces(memory.text)
    around = [*before, *bodies, *after]
    marks = said_words(memory.said_at)
    marked = stems_of(f"{memory.speaker} {marks}")
    of = {name: getattr(memory, name) for name in ("memory_id", "audience", "said_at", "beside", "speaker")}
    said = marks if memory.beside else f"{marks} {KNOWN}".lstrip()
    for n, body in enumerate(bodies):
        place = len(before) + n
        lent = around[max(0, place - BEFORE) : place] + around[place + 1 : place + 1 + AFTER]
        near = "\n".join(text[:NEAR_CHARS] for text in lent)
        own = list(own_terms(body))
        terms = numbers([*own, *marked, *stems_of(near)])
        counts = {"n": n, "own_terms": len(own), "mark_terms": len(marked)}
        yield {**of, **counts, "terms": terms, "said": said, "grams": " ".join(indexed_terms(body)), "body": body}


def settled(db: MemorySession, finish: bool) -> None:  # noqa: ARG001 - the signature of upkeep
    """Upkeep: what another program changed is settled too, and terms are counted, some at a time."""
    counts = JointStatement(_SQL["counted"]), JointStatement(_SQL["pieces_about"])
    stale, [(reached, upto)], *counted_so_far = db.ask(
        JointStatement(_SQL["any_stale"]), JointStatement(_SQL["reindexed"]), *counts
    )
    if stale:
        with db:
            reindex(db)
    if reached < upto:
        reindex_former(db)
    if stale or reached < upto:
        counted_so_far = db.ask(*counts)
    [(counted, reached_term)], [(pieces_now,)] = counted_so_far
    if reached_term or pieces_now > counted * _COUNTED_AGAIN:
        count_terms(db)


def reindex_former(db: MemorySession) -> None:
    """Renew some memories of a former release, oldest first: their terms, their mentions and their slots."""
    reached, upto = only(db, _SQL["reindexed"])
    if reached < upto:
        share = {"reached": reached, "upto": upto, "count": _REINDEXED_AT_ONCE}
        with db:
            db.post(_SQL["mark_next_stale"], share)
            renew_slots(db, column(db, _SQL["next_former"], share))
            reindex(db, "all")
            db.post(_SQL["reach_reindexed"], share)


def count_terms(db: MemorySession, most: int = _COUNTED_AT_ONCE) -> bool | None:
    """Count some terms again, behind those that were counted last; returns whether that was all, None for no news."""
    counted, reached = only(db, _SQL["counted"])
    (pieces_now,) = only(db, _SQL["pieces_about"])
    if not reached and counted == pieces_now:
        return None
    (upto,) = only(db, _SQL["counted_next"], (reached, most))
    with db:
        last = {"after": reached, "upto": upto}
        if upto is None:
            db.post(_SQL["forget_rest"], last)
            db.post(_SQL["reach"], {"upto": "", "pieces": pieces_now})
        else:
            db.post(_SQL["forget_counts"], last)
            db.post(_SQL["count_terms"], last)
            db.post(_SQL["reach"], {"upto": upto, "pieces": None})
    return upto is None
