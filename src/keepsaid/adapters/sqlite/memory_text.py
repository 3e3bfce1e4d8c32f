"""The full-text leg: from any string to a query FTS5 cannot refuse (spec/retrieval.md, 3)."""

from __future__ import annotations

import json
from typing import Any

import apsw

from keepsaid.adapters.sqlite.memory_rows import bound, memory, rows
from keepsaid.domain.memory import Hit, Listener
from keepsaid.domain.text import normalise
from keepsaid.domain.words import STOPWORDS

LEG = "text"
TERMS_MAX = 64
WORDS_MAX = 2_000
"""Of a long query, so many distinct words are considered at all: looking up how rare one is takes some 20 us."""

_POSTINGS_LEAST, _POSTINGS_SHARE, _POSTINGS_MOST = 2_000, 0.05, 50_000
"""Entries of the index a query may visit: a share of all memories, within bounds (spec/retrieval.md, 3.3)."""

_DEPTH, _DEPTH_EACH = 200, 5
"""So many of the best matches are looked at first, and at least so many for each that is wanted."""

_TERMS_FREE = 3
"""So few words are looked up whatever they cost."""


def search(db: apsw.Connection, listener: Listener, query: str, limit: int) -> tuple[Hit, ...]:
    """The best matches the listener may hear, by bm25; of equal ones the newer first, then the larger id."""
    words = _words(db, query)
    if len(words) > _TERMS_FREE:
        words = _rarest(db, words)
    if not words or limit < 1:
        return ()
    matching = " OR ".join(f'"{word}"' for word in words.values())
    found = _best(db, {**bound(listener), "query": matching, "limit": limit})
    return tuple(Hit(memory(row[1:]), LEG, rank, -float(row[0])) for rank, row in enumerate(found, start=1))


def _best(db: apsw.Connection, bindings: dict[str, Any]) -> list[tuple[Any, ...]]:
    """The best matches that are heard: scores and memories.

    First only among the best of all, because whether a memory is heard stands in its row, and rows are spread
    over the whole file. That is the answer when it is full and ends before the last score that was looked at.
    """
    limit = bindings["limit"]
    found = rows(db, "match_top", {**bindings, "depth": max(_DEPTH, limit * _DEPTH_EACH)})
    if found:
        worst, seen = found[0][:2]
        if seen < max(_DEPTH, limit * _DEPTH_EACH) or (len(found) == limit and found[-1][2] < worst):
            return [row[2:] for row in found]
    return rows(db, "match", bindings)


def _words(db: apsw.Connection, query: str) -> dict[str, str]:
    """The query's words as they were written, by their stems; a word holds nothing that FTS5 could read as syntax."""
    raw = normalise(query).encode()
    cut = db.fts5_tokenizer("porter", ["unicode61"])
    tokens: Any = cut(raw, apsw.FTS5_TOKENIZE_QUERY, None, include_colocated=False)
    found: dict[str, str] = {}
    for start, end, stem in tokens:
        if len(found) == WORDS_MAX:
            break
        word = raw[start:end].decode()
        if word.casefold() not in STOPWORDS:
            found.setdefault(stem, word)
    return found


def _rarest(db: apsw.Connection, words: dict[str, str]) -> dict[str, str]:
    """The rarest words, within the limits but always one; those that no memory has are no use."""
    bindings = {"terms": json.dumps(list(words), ensure_ascii=False)}
    kept: dict[str, str] = {}
    visited = 0
    for stem, count, memories in rows(db, "frequencies", bindings)[:TERMS_MAX]:
        visited += count
        if kept and visited > min(max(_POSTINGS_LEAST, memories * _POSTINGS_SHARE), _POSTINGS_MOST):
            break
        kept[stem] = words[stem]
    return kept
