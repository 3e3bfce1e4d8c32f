"""Decoded: a text with its escapes undone, and where each of its characters came from."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_UNICODE = re.compile(r"(?:\\u[0-9A-Fa-f]{4})+")
_BYTES = re.compile(r"(?:\\x[0-9A-Fa-f]{2})+")
_SIMPLE = re.compile(r"\\[\"'\\/bfnrt]")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);")
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_GAPS = re.compile(r"(?:[\s:]|\\[nrt])+")
_ROUNDS = 3

Piece = tuple[str, int]
"""A decoded character and how many characters of the text it stood for."""


class View(NamedTuple):
    """A text as it reads in one encoding; `origin[n]` is where its character `n` began in the text, None for the same.

    There is one more origin than characters: the end.
    """

    text: str
    origin: Sequence[int] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of it stood in the text."""
        return (start, end) if self.origin is None else (self.origin[start], self.origin[end])


def _of_bytes(run: str, width: int) -> Iterator[Piece]:
    raw = bytes(int(run[n + width - 2 : n + width], 16) for n in range(0, len(run), width))
    for letter in raw.decode("utf-8", "surrogateescape"):
        yield letter, width * len(letter.encode("utf-8", "surrogateescape"))


def _of_units(run: str) -> Iterator[Piece]:
    raw = b"".join(bytes.fromhex(run[n + 2 : n + 6]) for n in range(0, len(run), 6))
    for letter in raw.decode("utf-16-be", "surrogatepass"):
        yield letter, 12 if ord(letter) > 0xFFFF else 6


Undo = tuple[str, re.Pattern[str], Callable[[str], Iterable[Piece]]]

PERCENT: Undo = ("%", _PERCENT, lambda run: _of_bytes(run, 3))
ESCAPES: tuple[Undo, ...] = (
    ("\\", _UNICODE, _of_units),
    ("\\", _BYTES, lambda run: _of_bytes(run, 4)),
    ("\\", _SIMPLE, lambda run: [(_LETTERS.get(run[1], run[1]), 2)]),
)
ENTITIES: Undo = ("&", _ENTITY, lambda run: [(html.unescape(run), len(run))])


def _undone(view: View, undo: Undo) -> View:
    hint, pattern, pieces = undo
    if hint not in view.text:
        return view
    parts: list[str] = []
    origin: list[int] = []
    done = 0
    for found in pattern.finditer(view.text):
        parts.append(view.text[done : found.start()])
        origin += range(done, found.start())
        at = found.start()
        for letters, width in pieces(found.group()):
            parts.append(letters)
            origin += [at] * len(letters)
            at += width
        done = found.end()
    if not done:
        return view
    parts.append(view.text[done:])
    origin += range(done, len(view.text) + 1)
    known = view.origin
    return View("".join(parts), origin if known is None else [known[place] for place in origin])


def _unescaped(view: View) -> View:
    """JSON's and Python's escapes undone, all in one pass, so that an escaped backslash escapes nothing."""
    if "\\" not in view.text:
        return view
    together = re.compile("|".join(f"(?:{pattern.pattern})" for _, pattern, _ in ESCAPES))

    def pieces(run: str) -> Iterable[Piece]:
        _, _, of = ESCAPES[{"u": 0, "x": 1}.get(run[1], 2)]
        return of(run)

    return _undone(view, ("\\", together, pieces))


def _peeled(view: View) -> Iterator[View]:
    """Every escape undone, again and again until nothing is left to undo, three times at most; each time's text."""
    for _ in range(_ROUNDS):
        plainer = _undone(_unescaped(_undone(view, PERCENT)), ENTITIES)
        if plainer is view:
            return
        yield plainer
        view = plainer


def fully(view: View) -> View:
    """Every escape undone, as often as `_peeled` does."""
    return [view, *_peeled(view)][-1]


def readings(text: str) -> list[View]:
    """The text as it is, and as it reads with one kind of escape undone, or all once, twice, three times.

    Each time counts: a secret that ends in a backslash is whole only before the one after it is undone with a quote.
    """
    plain = View(text)
    spaced = View(text.replace("+", " ")) if "+" in text else plain
    undone = (_undone(plain, PERCENT), _undone(spaced, PERCENT), _unescaped(plain), _undone(plain, ENTITIES))
    return [plain, *(view for view in (spaced, *undone, *_peeled(plain)) if view is not plain)]


class Squeezed(NamedTuple):
    """A view without white space and colons; `places[n]` is where its character `n` stands in the view."""

    text: str
    view: View
    places: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of it stood in the text, without the gap after it."""
        return self.view.span(self.places[start], self.places[end - 1] + 1)


def squeezed(view: View) -> View | Squeezed:
    """The text without white space and colons, as a wrapped block of base64 or hex reads in one piece."""
    parts: list[str] = []
    places: list[int] = []
    done = 0
    for gap in _GAPS.finditer(view.text):
        parts.append(view.text[done : gap.start()])
        places += range(done, gap.start())
        done = gap.end()
    if not done:
        return view
    parts.append(view.text[done:])
    places += range(done, len(view.text))
    return Squeezed("".join(parts), view, places)
