"""Spans: the times a question speaks of, such as "last week", "in May" or "before the trip", as stretches of time.

They are for looking back: a weekday is the last of its name, a month without a year any of the last ten.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import islice

from keepsaid.text.dates import MONTHS, WEEKDAYS
from keepsaid.text.languages import STOPWORDS
from keepsaid.text.patterns import lazy
from keepsaid.text.words import root, said_words
from keepsaid.values import frozen

_DAY_MS = 86_400_000
_WEEK_MS = 7 * _DAY_MS
_DAYS_MAX = 10
_OPEN_MS = 30 * _DAY_MS
_EARLIEST, _LATEST = -(1 << 62), 1 << 62
_YEARS_BACK = 10


@frozen
class Span:
    """A stretch of time in milliseconds UTC, its end not in it."""

    start: int
    end: int

    def closeness(self, at: int) -> float:
        """1 inside; outside less and less, a half as far away as the span is long."""
        if self.start <= at < self.end:
            return 1.0
        bounded = self.start > _EARLIEST and self.end < _LATEST
        length = max(self.end - self.start, _DAY_MS) if bounded else _OPEN_MS
        return length / (length + (self.start - at if at < self.start else at - self.end + 1))


@frozen
class Anchor:
    """A time told by something that happened: before or after what these stems name, or one of them."""

    before: bool
    stems: frozenset[str]

    def span(self, at: int) -> Span:
        """The span, once it is known when that was."""
        return Span(_EARLIEST, at) if self.before else Span(at + 1, _LATEST)


@frozen
class When:
    """The times a text speaks of; false when it speaks of none."""

    spans: tuple[Span, ...] = ()
    anchor: Anchor | None = None

    def closeness(self, at: int) -> float:
        """How near a time is to the nearest of the spans: from 0 to 1."""
        return max((span.closeness(at) for span in self.spans), default=0.0)

    def days(self) -> str:
        """The days that are meant, as they stand with what was said on them; none of a span of more than a week."""
        short = [span for span in self.spans if span.end - span.start <= _WEEK_MS]
        starts = (at for span in short for at in range(span.start, span.end, _DAY_MS))
        return " ".join(said_words(at) for at in islice(starts, _DAYS_MAX))

    def __bool__(self) -> bool:
        """Whether the text speaks of a time."""
        return bool(self.spans) or self.anchor is not None


NO_TIME = When()

_MONTH = "|".join(sorted((name for name in MONTHS if len(name) > 2), key=len, reverse=True))
_WEEKDAY = "|".join(sorted((name for name in WEEKDAYS if len(name) > 2), key=len, reverse=True))
_NUMBERS = {
    "a": 1, "an": 1, "one": 1, "two": 2, "couple": 2, "three": 3, "few": 3, "several": 4, "four": 4, "five": 5,
    "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
}  # fmt: skip
_NUMBER = rf"(?:an?\s+)?(\d{{1,3}}|{'|'.join(_NUMBERS)})(?:\s+of)?"
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_UNIT = "(day|week|month|year)s?"
_HINT = lazy(
    rf"\d{{4}}|ago\b|yesterday|today|last|past|this|before|after|since|until|\b(?:{_MONTH})\b|\bon (?:{_WEEKDAY})\b",
    re.IGNORECASE,
)
_EVENT = lazy(
    r"\b(before|after|since|until)\s+(?:the|my|our|his|her|their|your|that)\s+([^\W\d]+)(?:'s)?(?:\s+([^\W\d]+))?",
    re.IGNORECASE,
)
_BEFORE_IT = lazy(r"\b(before|until|prior to|after|since)\s+(?:the\s+)?$", re.IGNORECASE)
_BEFORE_IT_CHARS = 32
"""The characters before a date that are searched for such a word: to search all of them would take quadratic time."""

_Days = tuple[date, date]
"""The first day and the one after the last."""

_Reader = Callable[[re.Match[str], date], Iterator[_Days]]


def times_in(text: str, now_ms: int) -> When:
    """The times a text speaks of, in UTC, as they are meant at `now_ms`."""
    if not _HINT.search(text):
        return NO_TIME
    today = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=now_ms)).date()
    found: dict[Span, None] = {}
    taken = text.casefold()
    for pattern, read in _READERS:
        for match in pattern.finditer(taken):
            found.update(dict.fromkeys(_spans(taken, match, read, today)))
        taken = pattern.sub(lambda match: "#" * len(match[0]), taken)
    return When(tuple(found), None if found else _anchor(taken))


def _spans(text: str, match: re.Match[str], read: _Reader, today: date) -> list[Span]:
    before = _BEFORE_IT.search(text, max(0, match.start() - _BEFORE_IT_CHARS), match.start())
    try:
        told = [Span(_ms(first), _ms(after)) for first, after in read(match, today)]
    except (ValueError, OverflowError):
        return []
    if before is None or not told:
        return told
    if before[1] in ("after", "since"):
        return [Span(told[0].end if before[1] == "after" else told[0].start, _LATEST)]
    return [Span(_EARLIEST, told[0].start)]


def _anchor(text: str) -> Anchor | None:
    if (event := _EVENT.search(text)) is None:
        return None
    words = [word for word in event.groups()[1:] if word and word not in STOPWORDS]
    return Anchor(event[1] in ("before", "until"), frozenset(map(root, words))) if words else None


def _ms(day: date) -> int:
    return (day - date(1970, 1, 1)).days * _DAY_MS


def _count(word: str) -> int:
    return int(word) if word.isdigit() else _NUMBERS[word]


def _month(year: int, month: int) -> _Days:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _iso(match: re.Match[str], _today: date) -> Iterator[_Days]:
    if match[3]:
        day = date(int(match[1]), int(match[2]), int(match[3]))
        yield day, day + timedelta(1)
    else:
        yield _month(int(match[1]), int(match[2]))


def _ago(match: re.Match[str], today: date) -> Iterator[_Days]:
    """That day; for longer units the days around it."""
    days = _UNIT_DAYS[match[2]]
    about = today - timedelta(days * _count(match[1]) + days // 2)
    yield about, about + timedelta(days)


def _last_units(match: re.Match[str], today: date) -> Iterator[_Days]:
    yield today - timedelta(_UNIT_DAYS[match[2]] * _count(match[1] or "one")), today + timedelta(1)


def _named_day(match: re.Match[str], today: date) -> Iterator[_Days]:
    back = 2 if match[0].startswith("day") else 1 if match[0].startswith(("yesterday", "last night")) else 0
    yield today - timedelta(back), today - timedelta(back - 1)


def _named_unit(match: re.Match[str], today: date) -> Iterator[_Days]:
    back = 0 if match[1] == "this" else 1
    if match[2] == "week":
        monday = today - timedelta(today.weekday() + 7 * back)
        yield monday, monday + timedelta(7)
    elif match[2] == "weekend":
        saturday = today + timedelta(5 - today.weekday() - 7 * back)
        yield saturday, saturday + timedelta(2)
    elif match[2] == "month":
        day = today if not back else today.replace(day=1) - timedelta(1)
        yield _month(day.year, day.month)
    else:
        yield date(today.year - back, 1, 1), date(today.year - back + 1, 1, 1)


def _weekday(match: re.Match[str], today: date) -> Iterator[_Days]:
    back = (today.weekday() - WEEKDAYS[match[2]]) % 7
    day = today - timedelta(back or (7 if match[1] == "last" else 0))
    yield day, day + timedelta(1)


def _date(match: re.Match[str], today: date, day: int, month: int, year: int) -> Iterator[_Days]:
    """With the parts at these places of the match; without a year, any of the last."""
    number = int(match[day])
    years = [int(match[year])] if match[year] else range(today.year, today.year - _YEARS_BACK, -1)
    for one in years:
        try:
            found = date(one, MONTHS[match[month]], number)
        except ValueError:
            continue
        if match[year] or found <= today:
            yield found, found + timedelta(1)


def _month_of(match: re.Match[str], _today: date) -> Iterator[_Days]:
    yield _month(int(match[2]), MONTHS[match[1]])


def _any_month(match: re.Match[str], today: date) -> Iterator[_Days]:
    """Any of the last ten of its name; with `last` the latest that is over, with `this` the one of this year."""
    months = [_month(year, MONTHS[match[2]]) for year in range(today.year, today.year - _YEARS_BACK, -1)]
    if match[1] == "this":
        yield months[0]
    elif match[1] == "last":
        yield next(one for one in months if one[1] <= today)
    else:
        yield from (one for one in months if one[0] <= today)


def _year(match: re.Match[str], _today: date) -> Iterator[_Days]:
    yield date(int(match[1]), 1, 1), date(int(match[1]) + 1, 1, 1)


_NTH = r"(\d{1,2})(?:st|nd|rd|th|\.)?"
_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = (
    (lazy(r"\b(\d{4})-(\d\d)(?:-(\d\d))?\b"), _iso),
    (lazy(rf"\b{_NUMBER}\s+{_UNIT}\s+ago\b"), _ago),
    (lazy(rf"\b(?:in|over|during|within|for) the (?:last|past)\s+(?:{_NUMBER}\s+)?{_UNIT}\b"), _last_units),
    (
        lazy(r"\bday before yesterday\b|\byesterday\b|\blast night\b|\btoday\b|\btonight\b|\bthis morning\b"),
        _named_day,
    ),
    (lazy(r"\b(last|this|past|previous)\s+(weekend|week|month|year)\b"), _named_unit),
    (lazy(rf"\b(last|this|on)\s+({_WEEKDAY})\b"), _weekday),
    (lazy(rf"\b{_NTH}\s+(?:of\s+)?({_MONTH})\b(?:,?\s+(\d{{4}})\b)?"), partial(_date, day=1, month=2, year=3)),
    (lazy(rf"\b({_MONTH})\.?\s+{_NTH}(?!\d)(?:,?\s+(\d{{4}})\b)?"), partial(_date, day=2, month=1, year=3)),
    (lazy(rf"\b({_MONTH})\.?,?\s+(?:of\s+)?(\d{{4}})\b"), _month_of),
    (
        lazy(
            rf"\b(last|this|in|since|during|of|early|late|mid|before|after|until|by|im|en)[\s-]+({_MONTH})\b(?!\s+\w+ing\b)"
        ),
        _any_month,
    ),
    (lazy(r"\b(?:in|since|during|of|before|after|until|by)\s+(\d{4})\b"), _year),
)
"""What stands earlier has the first word: what it read is not read again."""
