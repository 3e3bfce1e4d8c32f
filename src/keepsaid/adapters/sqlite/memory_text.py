"""The full-text leg: from any string to a query FTS5 cannot refuse (docs/concepts/recall.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from operator import itemgetter
from typing import Any

import apsw

from keepsaid.adapters.sqlite.memory_index import AFTER, BEFORE, KNOWN
from keepsaid.adapters.sqlite.memory_rows import bound, rows
from keepsaid.adapters.sqlite.memory_score import MOST, scores
from keepsaid.adapters.sqlite.memory_terms import number, numbers
from keepsaid.domain.memory import Found, Listener
from keepsaid.domain.pieces import grams
from keepsaid.domain.rarity import Rarity
from keepsaid.domain.text import normalise
from keepsaid.domain.words import STOPWORDS

TERMS_MAX = 64
WORDS_MAX = 2_000
"""Of a long query, so many distinct words are considered at all: looking up how rare one is takes some 20 us."""

_COUNT_NOW_MAX = 5_000
"""In a store of so many pieces, how often a term occurs is counted when it is asked for."""

_POSTINGS_LEAST, _POSTINGS_SHARE, _POSTINGS_MOST = 5_000, 0.05, 50_000
"""Entries of the index a query may visit: a share of all pieces, within bounds."""

_DEPTH_LEAST, _DEPTH_SHARE, _DEPTH_MOST = 100, 1 / 300, 300
"""So many of the best matches are scored exactly: a share of all pieces, within bounds, and as many as are wanted."""

_DEPTH_UNCAPPED = 5_000

_LENDING = 30
"""So many of the best matches are asked for what stands around them."""

_SHARE, _SHARE_LEAST = 20, 5
"""So many pieces of what is known are looked at, where fewer than the least are among the best of all."""

_KNOWN_MORE = 1.25
"""What is known counts so much more: nothing said beside it lends it words."""

_DEPTH_DROWNED = 1_000
"""So many of the best matches are looked at where most say the same."""

_OPENING = """
who whom whose whos what which when where why how do doe does did is are am was wa were can could will would shall
should may might has ha have had
"""
_OPENINGS = frozenset(numbers([word]) for word in _OPENING.split())
"""Words that questions begin with, and their stems."""

_Row = tuple[Any, ...]
"""A piece: its memory, when it was said, own terms, terms of its marks, all terms, speaker, audience, whether it is an
episode, and its id."""

_Scored = tuple[float, int, int, _Row]
"""A memory's best piece: its score, when it was said, the memory, and its row."""

_SCORED = itemgetter(2, 3, 4)
"""Of a row what its score is made of."""


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of a query: what to look for, in how many pieces it stands, and how many entries the index has of it."""

    word: str
    pieces: int
    visits: int


def search(
    db: apsw.Connection, listener: Listener, query: str, limit: int, *, capped: bool = True
) -> tuple[Found, ...]:
    """The best matches the listener may hear; of equal ones the newer first, then the larger id.

    A score is a share of what a memory would have that is full of every word of the query. Not `capped`, every word is
    looked up, however common, and far more is scored: what the budget is measured by.
    """
    words = _words(db, query)
    if not words or limit < 1:
        return ()
    terms, pieces = _counted(db, words)
    if not terms:
        return ()
    asked = " OR ".join(f'"{term.word}"' for term in (_affordable(terms, pieces) if capped else terms.values()))
    idf = {
        number(stem): log(1 + (pieces - min(term.pieces, pieces) + 0.5) / (min(term.pieces, pieces) + 0.5))
        for stem, term in terms.items()
    }
    depth = int(min(max(_DEPTH_LEAST, pieces * _DEPTH_SHARE), _DEPTH_MOST)) if capped else _DEPTH_UNCAPPED
    found, crowded = _best(db, listener, asked, max(depth, limit))
    unseen = sum(stem not in terms for stem in words) * log(1 + (pieces + 0.5) / 0.5)
    most = MOST * (sum(idf.values()) + unseen)
    return tuple(Found(memory_id, score / most) for score, memory_id in _ranked(idf, found, limit, crowded=crowded))


def rarity(db: apsw.Connection, text: str) -> Rarity:
    """In how many pieces the words of a text stand; of those that say nothing, or stand in none, nothing is told."""
    words = _words(db, text)
    if not words:
        return Rarity()
    terms, pieces = _counted(db, words)
    return Rarity(pieces, {stem: term.pieces for stem, term in terms.items()})


def _ranked(idf: Mapping[int, float], found: Sequence[_Row], limit: int, *, crowded: bool) -> list[tuple[float, int]]:
    """The best memories, each with the score of its best piece; what only stood near a match has none.

    Where there is no room for all, those whose best pieces repeat one another stand back; in a crowd they are left out.
    """
    best: dict[int, _Scored] = {}
    for row, score in zip(found, scores(idf, list(map(_SCORED, found))), strict=True):
        if score > 0:
            one = (round(score if row[7] else score * _KNOWN_MORE, 6), row[1], row[0], row)
            known = best.get(row[0])
            if known is None or known < one:
                best[row[0]] = one
    ranked = sorted(best.values(), reverse=True)
    if crowded or len(ranked) > limit:
        first, again = _told_apart(ranked, limit)
        ranked = first if crowded else sorted([*first, *again[: limit - len(first)]], reverse=True)
    return [(score, memory_id) for score, _, memory_id, _ in ranked[:limit]]


def _told_apart(ranked: Sequence[_Scored], limit: int) -> tuple[list[_Scored], list[_Scored]]:
    """As many as are wanted that repeat none before them, and the others up to there."""
    seen: set[object] = set()
    first: list[_Scored] = []
    again: list[_Scored] = []
    for one in ranked:
        words = _words_of(one[3])
        if words in seen:
            again.append(one)
            continue
        seen.add(words)
        first.append(one)
        if len(first) == limit:
            break
    return first, again


def _words_of(row: _Row) -> object:
    """What a piece has in common with those that repeat it.

    What somebody said of himself does not repeat what another did; a question is the same whoever asks. What is known
    was learned once for each time that it holds.
    """
    memory_id, _, own, _, terms, speaker, audience, episode, _ = row
    if not episode:
        return memory_id
    words = terms[: 4 * own]
    return words if words[:4] in _OPENINGS else (words, speaker, audience)


def _apart(found: Iterable[_Row]) -> list[_Row]:
    """The first of all pieces that repeat one another."""
    first: dict[object, _Row] = {}
    for row in found:
        first.setdefault(_words_of(row), row)
    return list(first.values())


def _best(db: apsw.Connection, listener: Listener, asked: str, depth: int) -> tuple[list[_Row], bool]:
    """The pieces that match best and are heard, with what stands around them, and whether more match than that.

    What is known has a share of its own, and where most repeat one another more are looked at: a question that was
    asked a thousand times leaves room for its answer.
    """
    bindings = {**bound(listener), "query": asked, "depth": depth, "known": f'said : "{KNOWN}" AND ({asked})'}
    top, heard = _top(db, listener, bindings)
    if top == depth:
        heard = _with_known(db, listener, bindings, heard)
    return _with_beside(db, heard) if heard else [], top == depth


def _with_known(db: apsw.Connection, listener: Listener, bindings: dict[str, Any], heard: list[_Row]) -> list[_Row]:
    """Where more match than were looked at: those that repeat no other, and enough of what is known."""
    apart = _apart(heard)
    if 2 * len(apart) < len(heard) and bindings["depth"] < _DEPTH_DROWNED:
        apart = _apart(_top(db, listener, {**bindings, "depth": _DEPTH_DROWNED})[1])
    there = {row[-1] for row in apart if not row[7]}
    if len(there) < _SHARE_LEAST and rows(db, "any_known", {}):
        known = rows(db, "matches_known", {**bindings, "share": _SHARE})
        apart += _heard(db, bindings, [row for row in known if row[0] not in there])
    return apart


def _top(db: apsw.Connection, listener: Listener, bindings: dict[str, Any]) -> tuple[int, list[_Row]]:
    """How many pieces match best, up to the depth, and those of them that are heard.

    First only among the best of all, because whether a piece is heard stands in its row, and rows are spread
    over the whole file. That is the answer when all that match were seen, or enough of them are heard.
    """
    depth = bindings["depth"]
    top = rows(db, "matches", bindings)
    heard = _heard(db, bindings, top)
    if not listener.everything and len(top) == depth and len(heard) * 2 < depth:
        heard = _heard(db, bindings, rows(db, "matches_heard", bindings))
    return len(top), heard


def _heard(db: apsw.Connection, bindings: dict[str, Any], top: Sequence[_Row]) -> list[_Row]:
    return rows(db, "pieces_heard", {**bindings, "pieces": json.dumps([row[0] for row in top])})


def _with_beside(db: apsw.Connection, heard: list[_Row]) -> list[_Row]:
    """The best, and the pieces they lend their words to, which the same listeners hear."""
    lending = json.dumps([row[-1] for row in heard[:_LENDING]])
    beside = rows(db, "pieces_beside", {"pieces": lending, "before": BEFORE, "after": AFTER})
    return list({row[-1]: row for row in (*heard, *beside)}.values())


def _words(db: apsw.Connection, query: str) -> dict[str, str]:
    """The query's words as they were written, by their stems; a word holds nothing that FTS5 could read as syntax."""
    text = normalise(query)
    raw = text.encode()
    cut = db.fts5_tokenizer("porter", ["unicode61"])
    tokens: Any = cut(raw, apsw.FTS5_TOKENIZE_QUERY, None, include_colocated=False)
    found: dict[str, str] = {}
    for start, end, stem in tokens:
        if len(found) == WORDS_MAX:
            break
        word = raw[start:end].decode()
        if word.casefold() not in STOPWORDS:
            found.setdefault(stem, word)
    for gram in grams(text)[: WORDS_MAX - len(found)]:
        found.setdefault(gram, gram)
    return found


def _counted(db: apsw.Connection, words: Mapping[str, str]) -> tuple[dict[str, _Term], int]:
    """The terms that any memory has, rarest first, and the number of pieces."""
    bindings = {"terms": json.dumps(list(words), ensure_ascii=False)}
    [(pieces,)] = rows(db, "counted", {})
    [(about,)] = rows(db, "pieces_about", {})
    counting = about <= _COUNT_NOW_MAX or not pieces
    if counting:
        [(pieces,)] = rows(db, "pieces", {})
    found = [
        (visits or 0, stem, count or 0)
        for stem, count, visits in rows(db, "frequencies_now" if counting else "frequencies", bindings)
        if visits or not counting
    ]
    rarest = sorted(found)[:TERMS_MAX]
    return {stem: _Term(words[stem], count, visits) for visits, stem, count in rarest}, max(pieces, 1)


def _affordable(terms: Mapping[str, _Term], pieces: int) -> list[_Term]:
    """The rarest terms within the budget, but always one."""
    budget = min(max(_POSTINGS_LEAST, pieces * _POSTINGS_SHARE), _POSTINGS_MOST)
    kept: list[_Term] = []
    for term in terms.values():
        budget -= term.visits
        if kept and budget < 0:
            break
        kept.append(term)
    return kept
