"""A layer, made: its text within a budget, its cost, and why it was cut."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.domain.prompt import Layer
from keepsaid.domain.tokens import estimate_tokens


def layer(name: str, text: str, cut: str = "") -> Layer:
    """A layer of one text."""
    return Layer(name, text, estimate_tokens(text), cut)


def of_lines(name: str, lines: Sequence[str], cut: str = "") -> Layer:
    """A layer of lines, most of which stood in the prompt before and need no counting again."""
    return Layer(name, "\n".join(lines), sum(map(estimate_tokens, lines)), cut)


def within(name: str, text: str, chars_max: int, heading: str = "") -> Layer:
    """A layer of one text below its heading, cut at its end to so many characters; empty without text."""
    shown = text[:chars_max]
    cut = f"cut to {chars_max:,} of {len(text):,} characters" if len(shown) < len(text) else ""
    return layer(name, f"{heading}\n{shown}" if heading and shown else shown, cut)


def fitting(name: str, heading: str, lines: Sequence[str], chars_max: int, what: str) -> Layer:
    """A layer of lines below their heading: the first that fit in so many characters, and how many did not."""
    kept: list[str] = []
    room = chars_max
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    left = len(lines) - len(kept)
    return of_lines(name, [heading, *kept] if kept else [], left_out(left, what))


def left_out(count: int, what: str) -> str:
    """How many of something were left out; "" when none was."""
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count} {what if count == 1 else plural} left out" if count else ""
