"""Words of dates: the tables of each language, and the tokens that they divide a text into.

A table is a file in `data/dates`. Each of its lines is `token[=value] ...: phrase, phrase`. With `=value+`, the value
of each further phrase is one more, and `|` divides phrases of the same value. A phrase of several lines has several
readings. Tokens are written as one letter each, so that rules over them are regular expressions.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import NamedTuple

from keepsaid.text.patterns import lazy
from keepsaid.values import frozen

LANGUAGES = ("en", "de", "es", "pt", "fr", "it", "nl", "pl", "ru", "zh", "ja", "ko")
CHARS_MAX = 100
"""A text that is longer than a date in words is not read."""

_READINGS_MAX = 32
_UNSPACED = frozenset(("zh", "ja", "ko"))
_SEPARATORS = " ,;!.、。"
_KINDS: Mapping[str, str] = {
    "number": "N", "article": "i", "ordinal": "O", "day": "D", "weekday": "W", "month": "M", "part": "P", "time": "T",
    "unit": "U", "hour": "h", "minute": "m", "day_mark": "d", "month_mark": "u", "year_mark": "y", "hour_mark": "H",
    "span": "V", "in": "I", "later": "L", "at": "A", "next": "X", "this": "S", "week": "K", "past": "p", "to": "t",
    "plus": "a", "minus": "s", "the": "x", "filler": "",
}  # fmt: skip
_WITHOUT_VALUE: Mapping[str, str] = {"past": "q", "to": "r", "plus": "e", "minus": "l"}
"""`quarter past` has its minutes as a value; a number precedes a bare `past` or `to`, and follows `plus` or `minus`."""

_TENS = (20, 30, 40, 50)
_ALLOWED_MARKS = "\u3099\u309a"
_HYPHEN = lazy(r"(?<=[^\W\d])[-‐‑](?=[^\W\d])")


class DateToken(NamedTuple):
    """One token: its letter, its value, and whether it was written as words."""

    kind: str
    value: str
    is_words: bool = True

    @property
    def number(self) -> int:
        """The value as a number."""
        return int(self.value)


_Tokens = tuple[DateToken, ...]
_Step = tuple[int, _Tokens]
"""Where a token ends in the text, and the tokens that it gives."""


@frozen
class DateTable:
    """The phrases of one language by their first letter, longest first, with their tokens."""

    language: str
    phrases: Mapping[str, tuple[tuple[str, _Tokens], ...]]

    @property
    def is_unspaced(self) -> bool:
        """Whether the language sets no spaces between words, or may leave them out."""
        return self.language in _UNSPACED

    def steps(self, text: str, start: int) -> Iterator[_Step]:
        """The tokens that a text can have at a place, numerals first, then the longest phrase."""
        yield from _numerals(text, start)
        for phrase, tokens in self.phrases.get(text[start], ()):
            end = start + len(phrase)
            if text.startswith(phrase, start) and (self.is_unspaced or _is_word_end(text, end)):
                yield end, tokens


def _is_word_end(text: str, end: int) -> bool:
    return end == len(text) or not (text[end].isalnum() and text[end - 1].isalnum())


def plain_spelling(text: str) -> str:
    """A text in lower case with single spaces, without accents, and without hyphens between letters.

    Empty for a text that is longer than a date.
    """
    if len(text := " ".join(text.split())) > CHARS_MAX:
        return ""
    text = unicodedata.normalize("NFKD", text.casefold().replace("’", "'").replace("ł", "l").replace("ß", "ss"))
    kept = (mark for mark in text if mark in _ALLOWED_MARKS or not unicodedata.combining(mark))
    return _HYPHEN.sub(" ", " ".join(unicodedata.normalize("NFC", "".join(kept)).split()))


@cache
def date_tables() -> tuple[DateTable, ...]:
    """The tables of all languages."""
    folder = files("keepsaid.text").joinpath("data/dates")
    return tuple(_table(language, folder.joinpath(f"{language}.txt").read_text("utf-8")) for language in LANGUAGES)


def _table(language: str, lines: str) -> DateTable:
    phrases: dict[str, list[tuple[str, _Tokens]]] = {}
    for line in lines.splitlines():
        names, _, words = line.partition(": ")
        if words:
            for n, spellings in enumerate(words.split(",")):
                tokens = tuple(token for name in names.split() if (token := _token(name, n)).kind)
                for phrase in map(plain_spelling, spellings.split("|")):
                    phrases.setdefault(phrase[0], []).append((phrase, tokens))
    for found in phrases.values():
        found.sort(key=lambda one: -len(one[0]))
    return DateTable(language, {first: tuple(found) for first, found in phrases.items()})


def _token(name: str, n: int) -> DateToken:
    kind, _, value = name.partition("=")
    if value.endswith("+"):
        value = str(int(value[:-1]) + n)
    return DateToken(_KINDS[kind] if value else _WITHOUT_VALUE.get(kind, _KINDS[kind]), value)


def token_lists(text: str, table: DateTable) -> Iterator[_Tokens]:
    """Each way to divide a whole text into the tokens of a table, the one of the longest phrases first."""
    if not 0 < len(text) <= CHARS_MAX:
        return
    ways: dict[int, list[_Step]] = {len(text): []}
    for start in range(len(text) - 1, -1, -1):
        steps = [(_skipped(text, end), tokens) for end, tokens in table.steps(text, start)]
        if found := [step for step in steps if step[0] in ways]:
            ways[start] = found
    start = _skipped(text, 0)
    if start in ways:
        yield from (_composed(tokens) for tokens in islice(_walked(ways, start, len(text)), _READINGS_MAX))


def _walked(ways: Mapping[int, list[_Step]], start: int, end: int) -> Iterator[_Tokens]:
    if start == end:
        yield ()
    for after, tokens in ways[start]:
        for rest in _walked(ways, after, end):
            yield tokens + rest


def _skipped(text: str, start: int) -> int:
    """The place of the next character that is not a separator."""
    while start < len(text) and text[start] in _SEPARATORS:
        start += 1
    return start


def _composed(tokens: _Tokens) -> _Tokens:
    """The tokens with `twenty one`, `vingt et un` and `twenty first` as one number each."""
    found: list[DateToken] = []
    for token in tokens:
        tens = len(found) - (2 if found and found[-1].kind == "e" else 1)
        if tens >= 0 and _is_tens(found[tens]) and _is_digit(token):
            found[tens:] = [DateToken("O" if token.kind == "O" else "N", str(found[tens].number + token.number))]
        else:
            found.append(token)
    return tuple(found)


def _is_tens(token: DateToken) -> bool:
    return token.kind in "NO" and token.is_words and token.number in _TENS


def _is_digit(token: DateToken) -> bool:
    return token.kind in "NOi" and token.is_words and 1 <= token.number <= 9


_HALF_OF_DAY = lazy(r"(\d{1,2})(?:[:.](\d\d))? ?([ap])\.? ?m(?![^\W_])\.?")
_FULL = lazy(r"(\d{1,4}) ?([./-]) ?(\d{1,2}) ?\2 ?(\d{1,4})(?!\d)\.?")
_CLOCK = lazy(r"(\d{1,2})([:h])(\d\d)(?![\d:])")
_FORMS = {":": "digits", "h": "unit"}
_PAIR = lazy(r"(\d{1,2})([./])(\d{1,2})(?!\d)(\.?)")
_PLAIN = lazy(r"(\d{1,4})(?!\d)(?:((?:st|nd|rd|th|er|e|[oaºª°]|-?го|-?е)(?![^\W_]))|\.)?")


def _numerals(text: str, start: int) -> Iterator[_Step]:
    """The tokens that begin with a digit: dates, times of day and numbers."""
    if not text[start].isdecimal() or (start and text[start - 1].isdecimal()):
        return
    if (found := _HALF_OF_DAY.match(text, start)) is not None and 1 <= int(found[1]) <= 12:
        hour = int(found[1]) % 12 + (12 if found[3] == "p" else 0)
        yield found.end(), (_of_digits("C", f"{hour}:{found[2] or '00'}:exact"),)
    if (found := _FULL.match(text, start)) is not None:
        if date := _full_date(found[1], found[2], found[3], found[4]):
            yield found.end(), (_of_digits("F", date),)
        return
    if (found := _CLOCK.match(text, start)) is not None:
        yield found.end(), (_of_digits("C", f"{found[1]}:{found[3]}:{_FORMS[found[2]]}"),)
    if (found := _PAIR.match(text, start)) is not None:
        yield from ((found.end(), (token,)) for token in _pair(found[1], found[2], found[3], found[4]))
    elif (found := _PLAIN.match(text, start)) is not None:
        yield found.end(), (_of_digits("Y" if len(found[1]) == 4 else "O" if found[2] else "N", found[1]),)


def _of_digits(kind: str, value: str) -> DateToken:
    return DateToken(kind, value, is_words=False)


def _full_date(first: str, mark: str, second: str, last: str) -> str:
    """Year, month and day in this order; an empty text for those that can be read in two ways."""
    if len(first) == 4:
        return f"{first} {second} {last}" if len(last) < 3 else ""
    if len(first) == 3 or len(last) not in (2, 4) or (mark == "-" and len(last) == 2):
        return ""
    month_and_day = _month_and_day(first, mark, second)
    return f"{last if len(last) == 4 else f'20{last}'} {month_and_day}" if month_and_day else ""


def _month_and_day(first: str, mark: str, second: str) -> str:
    one, two = int(first), int(second)
    if mark != "." and max(one, two) <= 12 and one != two:
        return ""
    return f"{one} {two}" if mark != "." and two > 12 else f"{two} {one}"


def _pair(first: str, mark: str, second: str, dot: str) -> Iterator[DateToken]:
    """`24.11.` and `24/11` are dates; `9.30` can be a time of day."""
    if (mark == "/" or dot) and (month_and_day := _month_and_day(first, mark, second)):
        yield _of_digits("F", f"0 {month_and_day}")
    if mark == "." and len(second) == 2:
        yield _of_digits("c", f"{first}:{second}:digits")
