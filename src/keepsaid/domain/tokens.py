"""Tokens: what a text costs, estimated by classes of words, without the vocabulary of any model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_PIECE = re.compile(r"[A-Za-z]+|[0-9]{1,3}|[^\W\d_]|\n\s*|[^\w\s]|_")
_BREAK = re.compile(r"\n\s*")
_LETTERS = bytes(byte if chr(byte).isalpha() and byte < 128 else 32 for byte in range(256))
_DIGITS = bytes(byte if byte in b"0123456789" else 32 for byte in range(256))
_NO_MARKS = bytes(byte for byte in range(128) if chr(byte).isalnum() or chr(byte).isspace())
_LETTERS_PER_TOKEN = 6
_OTHER_SCRIPT = 0.85
_KEPT_CHARS_MAX = 4_096
_SLICE_CHARS = 2_048
_SLICES_MAX = 16


def estimate_tokens(text: str) -> int:
    """Estimated tokens of a text, by classes of words: a short word is one token, a long one several.

    Of a text of 4,096 characters or more slices are counted, sixteen of 2,048 characters at most.
    """
    if len(text) < _KEPT_CHARS_MAX:
        return _estimate(text)
    count = min(-(-len(text) // _SLICE_CHARS), _SLICES_MAX)
    slices = [text[start : start + _SLICE_CHARS] for start in (len(text) * n // count for n in range(count))]
    return sum(map(_estimate, slices)) * len(text) // sum(map(len, slices))


@lru_cache(4_096)
def _estimate(text: str) -> int:
    total = _cost_of_ascii(text) if text.isascii() else _cost(text)
    return int(total + 0.5)


def _cost(text: str) -> float:
    pieces = _PIECE.findall(text)
    spelled = [piece for piece in pieces if piece[0].isascii() and piece[0].isalpha()]
    return len(pieces) + _excess(spelled) - (1 - _OTHER_SCRIPT) * sum(not piece[0].isascii() for piece in pieces)


def _cost_of_ascii(text: str) -> float:
    """The same for most texts, in a third of the time."""
    raw = text.encode()
    spelled, numbers = raw.translate(_LETTERS).split(), raw.translate(_DIGITS).split()
    total = len(spelled) + len(raw.translate(None, _NO_MARKS)) + _excess(spelled)
    total += sum((len(number) + 2) // 3 for number in numbers)
    return total + len(_BREAK.findall(text)) if "\n" in text else total


def _excess(spelled: Sequence[str | bytes]) -> float:
    """What long words of English letters cost above one token each."""
    long = [len(word) for word in spelled if len(word) > _LETTERS_PER_TOKEN]
    return sum(long) / _LETTERS_PER_TOKEN - len(long)
