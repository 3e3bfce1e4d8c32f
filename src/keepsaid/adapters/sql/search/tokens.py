"""Tokens of texts, as FTS5 makes them (unicode61, then Porter's stems), whatever database holds the texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import local
from typing import Any

import apsw

_of_thread = local()


def stems_of(text: str) -> list[str]:
    """Return the stems of a text in order."""
    found = _tokenizer()(
        text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False
    )
    return [str(token) for token in found]


def words_of(text: str) -> Iterator[tuple[str, str]]:
    """Yield each word of a text as it is written, with its stem."""
    raw = text.encode()
    for start, end, stem in _tokenizer()(raw, apsw.FTS5_TOKENIZE_QUERY, None, include_colocated=False):
        yield raw[start:end].decode(), stem


def _tokenizer() -> Callable[..., Any]:
    """A tokenizer for this thread: it belongs to a connection, here one to no file."""
    found: Callable[..., Any] | None = getattr(_of_thread, "tokenizer", None)
    if found is None:
        _of_thread.connection = apsw.Connection(":memory:")
        found = _of_thread.tokenizer = _of_thread.connection.fts5_tokenizer("porter", ["unicode61"])
    return found
