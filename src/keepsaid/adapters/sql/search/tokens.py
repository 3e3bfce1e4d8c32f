"""Tokens of texts, as FTS5 makes them (unicode61, then Porter's stems), whatever database holds the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from threading import local
from typing import Any

import apsw

from keepsaid.adapters.sql.query import as_json

_of_thread = local()


def stems_of(text: str) -> list[str]:
    """Return the stems of a text in order."""
    found = _tokenizer()(
        text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    return [str(token) for token in found]


def has_phrase(text: str, phrase: str) -> bool:
    """Return whether a text has the words of a phrase side by side, in any form."""
    stems, wanted = stems_of(text), stems_of(phrase)
    return any(stems[at : at + len(wanted)] == wanted for at in range(len(stems) - len(wanted) + 1))


def words_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield each word of a text as it is written, with its stem."""
    raw = text.encode()
    for start, end, stem in _tokenizer()(raw, apsw.FTS5_TOKENIZE_QUERY, None, include_colocated=False):
        yield raw[start:end].decode(), stem


def any_of(words: Sequence[str], column: str = "") -> dict[str, str]:
    """What a statement is bound to that looks for pieces with any of some words, in one column or in all.

    `query` is what FTS5 is asked; `terms` are the stems, for a database without it.
    """
    query = " OR ".join(f'"{word}"' for word in words)
    terms = [stem for word in words for stem in stems_of(word)]
    return {"query": f"{column} : ({query})" if column else query, "terms": as_json(terms)}


def _tokenizer() -> Callable[..., Any]:
    """A tokenizer for this thread: it belongs to a connection, here one to no file."""
    found: Callable[..., Any] | None = getattr(_of_thread, "tokenizer", None)
    if found is None:
        _of_thread.connection = apsw.Connection(":memory:")
        found = _of_thread.tokenizer = _of_thread.connection.fts5_tokenizer("porter", ["unicode61"])
    return found
