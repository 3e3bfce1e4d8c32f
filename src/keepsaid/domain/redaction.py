"""Redaction: which parts of a text are secret, and the text without them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

MASK = re.compile(r"\[redacted: [a-z ]{1,40}\]")
"""What stands in a text where a secret was."""


class SecretMark(NamedTuple):
    """A secret in a text: its characters from `start` up to `end`, and what kind of secret they are."""

    start: int
    end: int
    kind: str


class Masked(NamedTuple):
    """A text with its secrets masked, and where they stood in it."""

    text: str
    marks: tuple[SecretMark, ...]


class Redaction(NamedTuple):
    """The marks of one message's text, which stays as it was received."""

    message_id: int
    marks: tuple[SecretMark, ...]


def counted_kinds(marks: Iterable[SecretMark]) -> dict[str, int]:
    """How many secrets of each kind there are."""
    return dict(Counter(mark.kind for mark in marks))


def mask(kind: str) -> str:
    """What is written in place of a secret of this kind."""
    return f"[redacted: {kind}]"


def merged(found: Iterable[SecretMark]) -> tuple[SecretMark, ...]:
    """The marks in the order of the text, those that overlap made one; the kind is that of the first found."""
    ranked = sorted(enumerate(found), key=lambda one: (one[1].start, one[0]))
    marks: list[SecretMark] = []
    best = 0
    for rank, mark in ranked:
        if marks and mark.start < marks[-1].end:
            held = marks[-1]
            marks[-1] = SecretMark(held.start, max(held.end, mark.end), mark.kind if rank < best else held.kind)
            best = min(rank, best)
        else:
            marks.append(mark)
            best = rank
    return tuple(mark for mark in marks if mark.end > mark.start)


def masked(text: str, marks: Iterable[SecretMark]) -> str:
    """The text with every mark's characters replaced; marks are in order and do not overlap."""
    parts, done = [], 0
    for start, end, kind in marks:
        parts += [text[done:start], mask(kind)]
        done = end
    return "".join([*parts, text[done:]])
