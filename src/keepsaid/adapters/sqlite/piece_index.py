"""The index of memory: pieces of what was said, with the words around them, made anew where something changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from keepsaid.adapters.sql.memory.rows import own_terms
from keepsaid.adapters.sql.query import every, load, only
from keepsaid.adapters.sql.session import SqlSession
from keepsaid.adapters.sqlite.piece_scores import numbers
from keepsaid.text.chunks import grams, pieces, said_words

BEFORE, AFTER = 2, 1
"""How many of what was said before and after a piece lend it their words."""

NEAR_CHARS = 200
"""So much of each."""

KNOWN = "\ue000known"
"""Stands beside the time of what was learned, as no word of anybody's, so that what is known is searched by itself."""

_SQL = load("memory_index")
_COUNTED_AT_ONCE = 2_000
_COUNTED_AGAIN = 1.25
"""Terms are counted anew when there are so many times the pieces of the last count."""


@dataclass(frozen=True, slots=True)
class _Stale:
    memory_id: int
    text: str
    speaker: str
    said_at: int
    audience: int
    beside: bool


def reindex(db: SqlSession) -> None:
    """Make the pieces of all that changed anew, in the transaction that changed it."""
    rows: list[tuple[Any, ...]] = every(db, _SQL["stale"])
    stale = [_Stale(*row) for row in rows]
    for memory in stale:
        wanted = list(_made(db, memory))
        there = every(db, _SQL["pieces_of"], {"memory_id": memory.memory_id})
        if [row[2:] for row in there] == [(one["body"], one["speaker"], one["said"]) for one in wanted]:
            changed = [one for one, row in zip(wanted, there, strict=True) if one["terms"] != row[1]]
            db.executemany(_SQL["change_piece"], changed)
        else:
            db.execute(_SQL["drop_pieces"], {"memory_id": memory.memory_id})
            db.executemany(_SQL["add_piece"], wanted)
    db.execute(_SQL["settled"])


def _made(db: SqlSession, memory: _Stale) -> Iterator[dict[str, Any]]:
    """The pieces of a memory; what stands around one are its neighbours in the text, then those of the lane."""
    bodies = pieces(memory.text)
    before, after = _beside(db, memory) if memory.beside else ([], [])
    around = [*before, *bodies, *after]
    marks = said_words(memory.said_at)
    marked = db.stems(f"{memory.speaker} {marks}")
    for n, body in enumerate(bodies):
        place = len(before) + n
        lent = around[max(0, place - BEFORE) : place] + around[place + 1 : place + 1 + AFTER]
        near = "\n".join(text[:NEAR_CHARS] for text in lent)
        own = list(own_terms(db, body))
        yield {
            "memory_id": memory.memory_id,
            "n": n,
            "audience": memory.audience,
            "said_at": memory.said_at,
            "own_terms": len(own),
            "mark_terms": len(marked),
            "beside": memory.beside,
            "terms": numbers([*own, *marked, *db.stems(near)]),
            "speaker": memory.speaker,
            "said": marks if memory.beside else f"{marks} {KNOWN}".lstrip(),
            "grams": " ".join(grams(body, letters=True)),
            "body": body,
        }


def _beside(db: SqlSession, memory: _Stale) -> tuple[list[str], list[str]]:
    place = {"audience": memory.audience, "said_at": memory.said_at, "id": memory.memory_id, "chars": NEAR_CHARS}
    before = [str(text) for (text,) in every(db, _SQL["before"], {**place, "count": BEFORE})]
    after = [str(text) for (text,) in every(db, _SQL["after"], {**place, "count": AFTER})]
    return before[::-1], after


def settled(db: SqlSession, finish: bool) -> None:  # noqa: ARG001 - the signature of upkeep
    """Upkeep: what another program changed is settled too, and terms are counted, some at a time."""
    if every(db, _SQL["any_stale"]):
        with db:
            reindex(db)
    counted, reached = only(db, _SQL["counted"])
    if reached or only(db, _SQL["pieces_about"])[0] > counted * _COUNTED_AGAIN:
        count_terms(db)


def count_terms(db: SqlSession, most: int = _COUNTED_AT_ONCE) -> bool:
    """Count some terms anew, behind those that were counted last; returns whether that was all, or nothing is new."""
    counted, reached = only(db, _SQL["counted"])
    (pieces_now,) = only(db, _SQL["pieces_about"])
    if not reached and counted == pieces_now:
        return True
    (upto,) = only(db, _SQL["counted_next"], (reached, most))
    with db:
        last = {"after": reached, "upto": upto}
        if upto is None:
            db.execute(_SQL["forget_rest"], last)
            db.execute(_SQL["reach"], {"upto": "", "pieces": pieces_now})
        else:
            db.execute(_SQL["forget_counts"], last)
            db.execute(_SQL["count_terms"], last)
            db.execute(_SQL["reach"], {"upto": upto, "pieces": None})
    return upto is None
