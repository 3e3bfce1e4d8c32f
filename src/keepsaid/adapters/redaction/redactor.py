"""The redactor: the secrets of this instance, encoded and decoded, then formats, cards and contextual secrets."""

from __future__ import annotations

import html
import json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote, quote_plus

from keepsaid.adapters.redaction import contextual, formats
from keepsaid.domain.redaction import SecretMark, masked, merged
from keepsaid.text.normal import normalise

_PERCENT = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_UNICODE = re.compile(r"(?:\\u[0-9A-Fa-f]{4})+")
_BYTES = re.compile(r"(?:\\x[0-9A-Fa-f]{2})+")
_SIMPLE = re.compile(r"\\[\"'\\/bfnrt]")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);")
_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_GAPS = re.compile(r"(?:[\s:]|\\[nrt])+")
_ROUNDS = 3

KIND = "own secret"
CHARS_MIN = 6
"""A shorter secret is part of too many words to be looked for."""

_WORD_CHARS_MAX = 7
"""Up to here a secret must stand by itself, not within a word."""

_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_")


class OwnSecrets:
    """Finds given secrets: plain, URL-encoded, JSON- and HTML-escaped, base64 at any offset, hex, wrapped or not."""

    def __init__(self, secrets: Iterable[str]) -> None:
        known = {normalise(secret).strip() for secret in secrets}
        long_enough = sorted({one for one in known if len(one) >= CHARS_MIN}, key=len, reverse=True)
        words = dict.fromkeys(one for secret in long_enough for one in (secret, fully(View(secret)).text))
        self._plain = tuple(words)
        self._runs = tuple(dict.fromkeys(run for secret in long_enough for run in _runs(secret)))

    def marks(self, text: str) -> Iterator[SecretMark]:
        """Every place where one of them stands; they may overlap."""
        if not self._plain:
            return
        for view in readings(text):
            yield from self._words(view)
            yield from self._blocks(squeezed(view))

    def _words(self, view: View) -> Iterator[SecretMark]:
        for secret in self._plain:
            for start in _places(view.text, secret):
                end = start + len(secret)
                is_within_word = view.text[start - 1 : start].isalnum() or view.text[end : end + 1].isalnum()
                if len(secret) > _WORD_CHARS_MAX or not is_within_word:
                    yield SecretMark(*view.span(start, end), KIND)

    def _blocks(self, view: View | Squeezed) -> Iterator[SecretMark]:
        for run in self._runs:
            for start in _places(view.text, run):
                end = start + len(run)
                before, after = view.text[start - 1 : start], view.text[end : end + 1]
                yield SecretMark(*view.span(start - (before in _BASE64), end + (after in _BASE64)), KIND)
        for secret in self._plain:
            if len(secret) > _WORD_CHARS_MAX and secret == "".join(secret.split()):
                for start in _places(view.text, secret):
                    yield SecretMark(*view.span(start, start + len(secret)), KIND)


def _places(text: str, wanted: str) -> Iterator[int]:
    start = text.find(wanted)
    while start >= 0:
        yield start
        start = text.find(wanted, start + len(wanted))


def _runs(secret: str) -> Iterator[str]:
    """The secret in hex and base64, with what of base64 does not depend on what stands before and after it."""
    written = {secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1]}
    forms = [form.encode() for form in sorted(written)]
    for raw in (*forms, secret.encode("utf-16-le")):
        yield from (raw.hex(), raw.hex().upper())
        for offset in range(3):
            whole = b64encode(b"\0" * offset + raw).decode()
            core = whole[-(-offset * 8 // 6) : (offset + len(raw)) * 8 // 6]
            yield from (core, core.replace("+", "-").replace("/", "_"))


class PatternRedactor:
    """Finds secrets by the table, by given patterns, and the given secrets in every encoding."""

    def __init__(self, secrets: Iterable[str] = (), patterns: Sequence[re.Pattern[str]] = ()) -> None:
        self._secrets = tuple(secrets)
        self._own = OwnSecrets(self._secrets)
        self._patterns = tuple(patterns)

    def learn(self, secret: str) -> None:
        """Know one more secret, such as a token made when the program started."""
        self._secrets = (*self._secrets, secret)
        self._own = OwnSecrets(self._secrets)

    def marks(self, text: str) -> tuple[SecretMark, ...]:
        return merged(self._found(text))

    def redacted(self, text: str) -> str:
        marks = self.marks(text)
        return masked(text, marks) if marks else text

    def _found(self, text: str) -> Iterator[SecretMark]:
        yield from self._own.marks(text)
        masks = formats.Masks(text)
        yield from (mark for mark in self._by_table(text) if not masks.touch(mark.start, mark.end))

    def _by_table(self, text: str) -> Iterator[SecretMark]:
        yield from formats.token_marks(text)
        yield from formats.card_marks(text)
        yield from contextual.find_syntax_secrets(text)
        yield from contextual.find_keyword_secrets(text)
        yield from formats.prefixed_marks(text)
        for pattern in self._patterns:
            yield from (SecretMark(*found.span(), "pattern") for found in pattern.finditer(text) if found.group())


Piece = tuple[str, int]
"""A decoded character and the number of characters that encoded it."""


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
        if (plainer := _undone(_unescaped(_undone(view, PERCENT)), ENTITIES)) is view:
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
