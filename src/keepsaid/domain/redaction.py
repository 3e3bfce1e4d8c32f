"""Redaction: which parts of a text are secret, and the text without them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

MASK = re.compile(r"\[redacted: [a-z ]{1,40}\]")
"""What stands in a text where a secret was."""


class Mark(NamedTuple):
    """A secret in a text: its characters from `start` up to `end`, and what kind of secret they are."""

    start: int
    end: int
    kind: str


class Masked(NamedTuple):
    """A text with its secrets masked, and where they stood in it."""

    text: str
    marks: tuple[Mark, ...]


class Redaction(NamedTuple):
    """The marks of one message's text, which stays as it was received."""

    message_id: int
    marks: tuple[Mark, ...]


def counted_kinds(marks: Iterable[Mark]) -> dict[str, int]:
    """How many secrets of each kind there are."""
    return dict(Counter(mark.kind for mark in marks))


def mask(kind: str) -> str:
    """What is written in place of a secret of this kind."""
    return f"[redacted: {kind}]"


def merged(found: Iterable[Mark]) -> tuple[Mark, ...]:
    """The marks in the order of the text, those that overlap made one; the kind is that of the first found."""
    ranked = sorted(enumerate(found), key=lambda one: (one[1].start, one[0]))
    return tuple(_joined(ranked))


def _joined(ranked: list[tuple[int, Mark]]) -> Iterator[Mark]:
    best, held = 0, Mark(0, 0, "")
    for rank, mark in ranked:
        if held.end > held.start and mark.start < held.end:
            kind = mark.kind if rank < best else held.kind
            best, held = min(rank, best), Mark(held.start, max(held.end, mark.end), kind)
            continue
        if held.end > held.start:
            yield held
        best, held = rank, mark
    if held.end > held.start:
        yield held


def masked(text: str, marks: Iterable[Mark]) -> str:
    """The text with every mark's characters replaced; marks are in order and do not overlap."""
    parts, done = [], 0
    for start, end, kind in marks:
        parts += [text[done:start], mask(kind)]
        done = end
    return "".join([*parts, text[done:]])
