"""Randomness: whether a value looks made by a machine rather than written by a person."""

from __future__ import annotations

import re
from math import log2

_MADE = re.compile(r"[A-Za-z0-9._~+/=-]+")
_SEGMENT = re.compile(r"[A-Za-z0-9]{20,400}")


def is_random(value: str, chars_min: int) -> bool:
    """Whether a value has letters and digits as nothing written for people has them."""
    if len(value) < chars_min or not any(one.isdigit() for one in value) or not any(one.isalpha() for one in value):
        return False
    return entropy(value) >= (3.0 if len(value) >= 16 else 2.5)


def is_made(value: str) -> bool:
    """Whether a value has a long random segment, such as a token whose parts are joined by dots."""
    if _MADE.fullmatch(value) is None:
        return False
    return any(is_random(segment, 20) for segment in _SEGMENT.findall(value))


def entropy(value: str) -> float:
    """Bits a character, by how often each occurs."""
    size = len(value)
    return -sum(count / size * log2(count / size) for count in map(value.count, set(value)))
