"""The full-text leg: from any string to a query FTS5 cannot refuse (docs/use/concepts/recall.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from heapq import nlargest
from itertools import accumulate, islice, takewhile
from math import log
from operator import itemgetter
from typing import Any, NamedTuple

from keepsaid.adapters.sql.memory.rows import SQL, bound, rows
from keepsaid.adapters.sql.query import JointStatement, MemorySession, as_json
from keepsaid.adapters.sql.search.piece_index import AFTER, BEFORE, KNOWN, MOST, number, numbers, scores
from keepsaid.adapters.sql.search.tokens import any_of, stems_of, words_of
from keepsaid.adapters.sql.search.word_blocks import STRETCHES, best, outside
from keepsaid.domain.memory import Found, Listener
from keepsaid.text.languages import STOPWORDS, function_words, query_terms, telling_letters
from keepsaid.text.normal import normalise
from keepsaid.text.words import DocumentFrequencies, fold, grams
from keepsaid.values import frozen

TERMS_MAX = 64
WORDS_MAX = 2_000
"""The distinct words of a long query that are considered at all: looking up how rare one is takes some 20 us."""

_COUNT_NOW_MAX = 5_000
"""In a store up to this number of pieces, occurrences of a term are counted at query time."""

_POSTINGS_LEAST, _POSTINGS_SHARE, _POSTINGS_MOST = 2_500, 0.05, 50_000
"""Entries of the index a query may visit: a share of all pieces, within bounds."""

_READ_LEAST, _READ_SHARE = 25_000, 0.25
"""Entries of blocks of words that a query may read: the same, and they cost a tenth."""

_DEPTH_OUTSIDE = 30
"""The least number of exactly scored matches among pieces that are not in a block of words yet."""

_DEPTH_LEAST, _DEPTH_SHARE, _DEPTH_MOST = 100, 1 / 300, 300
"""The best matches that are scored exactly: a share of all pieces, within bounds, and at least the requested number."""

_READ_DEPTH_SHARE, _READ_DEPTH_MOST = 1 / 500, 500
"""The same of those that blocks of words tell, which does it better than FTS5."""

_DEPTH_UNCAPPED = 5_000

_LENDING = 30
"""Number of best matches whose neighbouring pieces are read."""

_SHARE, _SHARE_LEAST = 20, 5
"""The pieces of facts that are scored if fewer than the least number are among the best matches."""

_KNOWN_MORE = 1.25
"""The boost of facts, because they have no neighbouring messages that add matching terms."""

_DEPTH_DROWNED = 1_000
"""The best matches that are read where most are duplicates."""

_OPENING = """
who whom whose whos what which when where why how do doe does did is are am was wa were can could will would shall
should may might has ha have had
"""
_OPENINGS = frozenset(numbers([word]) for word in _OPENING.split())
"""Words that questions begin with, and their stems."""

_ALL_PIECES = {"first": 0, "until": 1 << 62}
"""The range of the ids of all pieces."""

_Row = tuple[Any, ...]
"""A piece: its memory, when it was said, own terms, terms of its marks, all terms, speaker, audience, whether it is an
episode, and its id."""

_Weighed = tuple[float, _Row]
"""A piece with its score."""

_Scored = tuple[float, int, int, _Row]
"""A memory's best piece: its score, when it was said, the memory, and its row."""

_SCORED = itemgetter(2, 3, 4)
"""Of a row what its score is made of."""


@frozen
class _Term:
    """A term of a query: its word, in how many pieces it stands, and how many entries the index has of it."""

    word: str
    pieces: int
    visits: int


class _IndexState(NamedTuple):
    """What one look says of the index: the pieces whose terms were counted, the newest piece, the stretches that have
    blocks of words, and whether any fact is there."""

    counted: int
    newest: int
    stretches: Sequence[int]
    has_known: bool


@frozen
class _QueryPlan:
    """A planned query: the words looked up, what statements are bound to for them, the weight of each term, those read
    in blocks, the index with its blocks, the depth."""

    words: Sequence[str]
    looked_up: Mapping[str, str]
    worth: Mapping[int, float]
    read: Mapping[int, float]
    index: _IndexState
    depth: int


def search(db: MemorySession, listener: Listener, query: str, limit: int, *, capped: bool = True) -> tuple[Found, ...]:
    """The best matches the listener may read; of equal ones the newer first, then the larger id.

    A score is a share of what a memory would have that is full of every word of the query. Not `capped`, every word is
    looked up, however common, and far more is scored: what the budget is measured by.
    """
    words = _words(query) or _words(query, only_english=True)
    if not words or limit < 1:
        return ()
    index = _look(db)
    terms, pieces = _counted(db, words, (index.counted, index.newest))
    if not terms:
        return ()
    idf = {
        number(stem): log(1 + (pieces - min(term.pieces, pieces) + 0.5) / (min(term.pieces, pieces) + 0.5))
        for stem, term in terms.items()
    }
    plan = _plan_query(terms, pieces, idf, index) if capped else _plan_whole(terms, idf, index)
    found, crowded = _best(db, listener, replace(plan, depth=max(plan.depth, limit)))
    unseen = sum(stem not in terms for stem in words) * log(1 + (pieces + 0.5) / 0.5)
    most = MOST * (sum(idf.values()) + unseen)
    return tuple(Found(memory_id, score / most) for score, memory_id in _ranked(found, limit, crowded=crowded))


def _look(db: MemorySession) -> _IndexState:
    """Look at the index: four statements, none of which needs another."""
    asked = (SQL["counted"], SQL["pieces_about"], STRETCHES, SQL["any_known"])
    [(counted,)], [(newest,)], there, known = db.ask(*map(JointStatement, asked))
    return _IndexState(counted, newest, [row[0] for row in there], bool(known))


def _plan_query(terms: Mapping[str, _Term], pieces: int, idf: Mapping[int, float], index: _IndexState) -> _QueryPlan:
    """Plan a query within the budgets."""
    budget = min(max(_POSTINGS_LEAST, pieces * _POSTINGS_SHARE), _POSTINGS_MOST)
    looked_up = list(terms.values())
    words = [term.word for term in looked_up[: _within(looked_up, budget)]]
    readable = _within(looked_up, max(_READ_LEAST, pieces * _READ_SHARE))
    share, most = (_READ_DEPTH_SHARE, _READ_DEPTH_MOST) if index.stretches else (_DEPTH_SHARE, _DEPTH_MOST)
    depth = int(min(max(_DEPTH_LEAST, pieces * share), most))
    return _QueryPlan(words, any_of(words), idf, dict(islice(idf.items(), readable)), index, depth)


def _plan_whole(terms: Mapping[str, _Term], idf: Mapping[int, float], index: _IndexState) -> _QueryPlan:
    """Plan a query all of whose words are looked up by FTS5."""
    words = [term.word for term in terms.values()]
    return _QueryPlan(words, any_of(words), idf, {}, index._replace(stretches=()), _DEPTH_UNCAPPED)


def read_document_frequencies(db: MemorySession, text: str) -> DocumentFrequencies:
    if not (words := _words(text)):
        return DocumentFrequencies()
    [(counted,)], [(newest,)] = db.ask(JointStatement(SQL["counted"]), JointStatement(SQL["pieces_about"]))
    terms, pieces = _counted(db, words, (counted, newest))
    return DocumentFrequencies(pieces, {stem: term.pieces for stem, term in terms.items()})


def _ranked(found: Sequence[_Weighed], limit: int, *, crowded: bool) -> list[tuple[float, int]]:
    """The best memories, each with the score of its best piece; what only stood near a match has none.

    Where there is no room for all, those whose best pieces repeat one another stand back; in a crowd they are left out.
    """
    best: dict[int, _Scored] = {}
    for score, row in found:
        if score > 0:
            one = (round(score if row[7] else score * _KNOWN_MORE, 6), row[1], row[0], row)
            known = best.get(row[0])
            if known is None or known < one:
                best[row[0]] = one
    ranked = sorted(best.values(), reverse=True)
    if crowded or len(ranked) > limit:
        first, again = _split_repeats(ranked, limit)
        ranked = first if crowded else sorted([*first, *again[: limit - len(first)]], reverse=True)
    return [(score, memory_id) for score, _, memory_id, _ in ranked[:limit]]


def _split_repeats(ranked: Sequence[_Scored], limit: int) -> tuple[list[_Scored], list[_Scored]]:
    """Split into `limit` results that are unique and the results before the last of these that repeat one."""
    first: dict[object, _Scored] = {}
    again: list[_Scored] = []
    for scored in ranked:
        if first.setdefault(_words_of(scored[3]), scored) is not scored:
            again.append(scored)
        elif len(first) == limit:
            break
    return list(first.values()), again


def _words_of(row: _Row) -> object:
    """What a piece has in common with those that repeat it; a question repeats another whoever asks it."""
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


def _best(db: MemorySession, listener: Listener, asked: _QueryPlan) -> tuple[list[_Weighed], bool]:
    """The visible pieces that match best, with their neighbours, and whether more match than that.

    Facts have a share of their own. If most matches repeat one another, more are read, so that a question asked a
    thousand times leaves room for its answer.
    """
    bindings = {**bound(listener), **asked.looked_up, **_ALL_PIECES}
    top, heard = _top(db, listener, bindings, asked)
    if top >= asked.depth:
        heard = _with_known(db, listener, bindings, asked, heard)
    return _add_neighbours(db, asked.worth, heard) if heard else [], top >= asked.depth


def _known(words: Sequence[str]) -> dict[str, str]:
    """What finds the pieces of facts with any of some words."""
    query = any_of(words)["query"]
    return {"query": f'said : "{KNOWN}" AND ({query})', "terms": any_of([KNOWN, *words])["terms"]}


def _with_known(
    db: MemorySession, listener: Listener, bindings: dict[str, Any], asked: _QueryPlan, heard: list[_Row]
) -> list[_Row]:
    """Where more match than were looked at: those that repeat no other, and enough of what is known."""
    apart = _apart(heard)
    if 2 * len(apart) < len(heard) and asked.depth < _DEPTH_DROWNED:
        apart = _apart(_top(db, listener, bindings, replace(asked, depth=_DEPTH_DROWNED))[1])
    there = {row[-1] for row in apart if not row[7]}
    if len(there) < _SHARE_LEAST and asked.index.has_known:
        known = rows(db, "matches_known", {**bindings, **_known(asked.words), "share": _SHARE})
        apart += _filter_visible(db, bindings, [row[0] for row in known if row[0] not in there])
    return apart


def _top(db: MemorySession, listener: Listener, bindings: dict[str, Any], asked: _QueryPlan) -> tuple[int, list[_Row]]:
    """How many pieces match best, up to the depth, and those of them that are readable.

    First only among the best of all, because the visibility of a piece is in its row, and rows are spread
    over the whole file. That suffices when all matches were read, or enough of them are readable.
    """
    top = _matches(db, asked)
    heard = _filter_visible(db, bindings, top)
    if not listener.everything and len(top) >= asked.depth and len(heard) * 2 < asked.depth:
        found = rows(db, "matches_heard", {**bindings, "depth": asked.depth})
        heard = _filter_visible(db, bindings, [row[0] for row in found])
    return len(top), heard


def _matches(db: MemorySession, asked: _QueryPlan) -> list[int]:
    """The pieces that match best: from blocks of words, where there are any, and from FTS5 what stands in none."""
    there, newest = asked.index.stretches, asked.index.newest
    found = best(db, there, asked.read, asked.depth) if there else []
    for first, until in outside(there, newest):
        share = asked.depth * (until - first) // (newest + 1)
        depth = max(share, min(_DEPTH_OUTSIDE, asked.depth))
        wanted = {**asked.looked_up, "depth": depth, "first": first, "until": until}
        found += [row[0] for row in rows(db, "matches", wanted)]
    return found


def _filter_visible(db: MemorySession, bindings: dict[str, Any], top: Sequence[int]) -> list[_Row]:
    return rows(db, "pieces_heard", {**bindings, "pieces": as_json(top)})


def _add_neighbours(db: MemorySession, worth: Mapping[int, float], heard: list[_Row]) -> list[_Weighed]:
    """Score the visible pieces, and the neighbours that the best of them add terms to, for the same listeners."""
    found = _weighed(worth, heard)
    best = nlargest(_LENDING, found, key=lambda scored: (scored[0], scored[1][-1]))
    if not (lending := [row[-1] for _, row in best if row[7]]):
        return found
    beside = rows(db, "pieces_beside", {"pieces": as_json(lending), "before": BEFORE, "after": AFTER})
    there = {row[-1] for row in heard}
    return [*found, *_weighed(worth, list({row[-1]: row for row in beside if row[-1] not in there}.values()))]


def _weighed(worth: Mapping[int, float], found: list[_Row]) -> list[_Weighed]:
    return list(zip(scores(worth, list(map(_SCORED, found))), found, strict=True))


def _words(query: str, *, only_english: bool = False) -> dict[str, str]:
    """The query's words as they were written, by their stems; a word holds nothing that FTS5 could read as syntax.

    Words of grammar are left out: those of its language and of English, or only those of English.
    """
    text = normalise(query) if only_english else telling_letters(normalise(query))
    found: dict[str, str] = {}
    further = grams(text) if only_english else query_terms(text)
    grammar = STOPWORDS if only_english else function_words(text)
    for word, stem in words_of(text):
        if len(found) == WORDS_MAX:
            break
        if (word.casefold() if only_english else fold(word)) not in grammar:
            found.setdefault(stem, word)
    for term in further[: WORDS_MAX - len(found)]:
        found.setdefault(term, term)
    return found


def _counted(db: MemorySession, words: Mapping[str, str], of_index: tuple[int, int]) -> tuple[dict[str, _Term], int]:
    """The terms that any memory has, rarest first, and the number of pieces.

    `of_index` are the pieces whose terms were counted, and the newest piece.
    """
    pieces, about = of_index
    counting = about <= _COUNT_NOW_MAX or not pieces
    entries = {stem: _entry(stem, word) for stem, word in words.items()}
    terms = {"terms": as_json({*entries.values()})}
    if counting:
        [(pieces,)], listed = db.ask(JointStatement(SQL["pieces"]), JointStatement(SQL["frequencies_now"], terms))
    else:
        listed = rows(db, "frequencies", terms)
    found = {entry: counts for entry, *counts in listed}
    counted = ((stem, *found[entry]) for stem, entry in entries.items())
    visited = ((visits or 0, stem, count or 0) for stem, count, visits in counted if visits or not counting)
    rarest = sorted(visited)[:TERMS_MAX]
    return {stem: _Term(words[stem], count, visits) for visits, stem, count in rarest}, max(pieces, 1)


def _entry(stem: str, word: str) -> str:
    """What a word is listed by in the index: a further term of a language by the stem of that."""
    return stem if stem != word else next(iter(stems_of(word)), word)


def _within(terms: Iterable[_Term], budget: float) -> int:
    """How many of the rarest terms are within a budget; always one."""
    visits = accumulate(term.visits for term in terms)
    return max(1, sum(1 for _ in takewhile(lambda so_far: so_far <= budget, visits)))
