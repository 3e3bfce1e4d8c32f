"""Terms: a text as the full text cuts it, and as numbers that scores are counted with."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from zlib import crc32

import apsw

from keepsaid.text.chunks import grams


def stems(db: apsw.Connection, text: str) -> list[str]:
    """The stems of a text in order, as the full text has them."""
    cut = db.fts5_tokenizer("porter", ["unicode61"])
    found = cut(text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    return [str(token) for token in found]


def own_terms(db: apsw.Connection, text: str) -> Iterator[str]:
    """What a piece is found by: its stems, and the pairs of letters where no spaces are set."""
    yield from stems(db, text)
    yield from grams(text, letters=True)


def number(term: str) -> int:
    """A term as 32 bits; two terms with one number are so rare that a score may take the one for the other."""
    return crc32(term.encode())


def numbers(terms: Iterable[str]) -> bytes:
    """Terms as they stand in a piece."""
    return array("I", map(number, terms)).tobytes()
