"""Cron: times by five fields (minute, hour, day, month, weekday) in a time zone, also where clocks are changed.

A time of the day that is skipped in spring comes once, at the moment the clocks go on; one that comes twice in autumn
comes the first time only. Where every hour counts (`*`), both of them do.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo

_MINUTE = timedelta(minutes=1)
_EPOCH = datetime.fromtimestamp(0, UTC)
_SHIFT = timedelta(hours=26)
"""No zone ever put its clocks on or back by more."""

_YEARS_MAX = 40
"""A day that does not come in so many years, such as the 30th of February, never comes."""

_YEAR_LAST = 9_998
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WORDS: Mapping[str, str] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_PART = re.compile(r"(\*|[0-9a-z]+)(?:-([0-9a-z]+))?(?:/([0-9]+))?")


@dataclass(frozen=True, slots=True)
class Fields:
    """What the five fields allow. With both a day of the month and one of the week, either is enough (POSIX)."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: tuple[int, ...]
    weekdays: frozenset[int]
    either_day: bool
    hourly: bool

    def on(self, day: date) -> bool:
        """Whether a day of an allowed month is allowed."""
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return in_month or in_week if self.either_day else in_month and in_week

    def walls(self, after: datetime) -> Iterator[datetime]:
        """The times on the wall after a time on the wall, without a zone, in order; ends where none come."""
        times = [hour * 60 + minute for hour in self.hours for minute in self.minutes]
        begun = after.hour * 60 + after.minute
        for day in self._dates(after.date()):
            first = bisect_right(times, begun) if day == after.date() else 0
            for minutes in times[first:]:
                yield datetime(day.year, day.month, day.day, minutes // 60, minutes % 60)  # noqa: DTZ001 - on a wall

    def _dates(self, first: date) -> Iterator[date]:
        for year in range(first.year, min(first.year + _YEARS_MAX, _YEAR_LAST)):
            for month in self.months:
                day = date(year, month, 1)
                if (year, month) < (first.year, first.month):
                    continue
                while day.month == month:
                    if day >= first and self.on(day):
                        yield day
                    day += timedelta(days=1)


@lru_cache(maxsize=4_096)
def fields_of(text: str) -> Fields:
    """Read five fields, or a word such as `@daily`; raises ValueError, saying what is wrong.

    A field is `*`, a number, a range `1-5`, a step `*/15` or `8-18/2`, or several of these with commas; months and
    weekdays also by three English letters; Sunday is 0 and 7.
    """
    given = _WORDS.get(text.strip().lower(), text).lower().split()
    if len(given) != len(_FIELDS):
        raise ValueError(f"a cron expression has five fields, such as 30 8 * * 1-5, and {text.strip()!r} has not")
    minutes, hours, days, months, weekdays = (_field(one, named) for one, named in zip(given, _FIELDS, strict=True))
    fields = Fields(
        tuple(sorted(minutes)),
        tuple(sorted(hours)),
        frozenset(days),
        tuple(sorted(months)),
        frozenset(day % 7 for day in weekdays),
        either_day=not given[2].startswith("*") and not given[4].startswith("*"),
        hourly=given[1] == "*",
    )
    if next(fields.walls(datetime(2000, 1, 1)), None) is None:  # noqa: DTZ001 - on a wall
        raise ValueError(f"{text.strip()!r} never comes: no such day is in any month it names")
    return fields


def _field(text: str, named: tuple[str, int, int, Sequence[str]]) -> set[int]:
    name, least, most, _ = named
    allowed: set[int] = set()
    for part in text.split(","):
        found = _PART.fullmatch(part)
        if found is None:
            raise ValueError(f"{part!r} is no {name}: a number, a range 1-5, a step */15, or *")
        first, last, step = found.groups()
        every = int(step) if step else 1
        if first == "*":
            begin, end = least, most if name != _FIELDS[4][0] else 6
        else:
            begin = _number(first, named)
            end = _number(last, named) if last else most if step else begin
        if every < 1 or begin > end or (first == "*" and last):
            raise ValueError(f"{part!r} is no {name}: it must go from {least} up to {most}, in steps of 1 or more")
        allowed.update(range(begin, end + 1, every))
    return allowed


def _number(text: str, named: tuple[str, int, int, Sequence[str]]) -> int:
    name, least, most, words = named
    number = words.index(text) + least if text in words else int(text) if text.isdigit() and len(text) < 4 else -1
    if not least <= number <= most:
        raise ValueError(f"{text!r} is no {name}: {least} to {most}")
    return number


def next_time(fields: Fields, zone: ZoneInfo, after: int) -> int | None:
    """The first time after a time, both milliseconds UTC; None when there is none in 40 years."""
    moment = _EPOCH + timedelta(milliseconds=after)
    wall = moment.astimezone(zone).replace(tzinfo=None, second=0, microsecond=0)
    found = next((at for one in fields.walls(wall) if (at := first_at(one, zone)) > moment), None)
    if fields.hourly and _put_back(moment, zone):
        found = min(filter(None, (found, _again(fields, zone, moment))), default=None)
    return None if found is None else (found - _EPOCH) // timedelta(milliseconds=1)


def first_at(wall: datetime, zone: ZoneInfo) -> datetime:
    """When it is first so late on the wall, or later, in UTC: for a time that is skipped, when the clocks go on."""
    at = wall.replace(tzinfo=zone).astimezone(UTC)
    if at.astimezone(zone).replace(tzinfo=None) == wall:
        return at
    before, after = wall.replace(tzinfo=zone, fold=1).astimezone(UTC), at
    offset = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = before + (after - before) / 2
        middle = middle.replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after


def _put_back(moment: datetime, zone: ZoneInfo) -> bool:
    """Whether the clocks are changed about this time."""
    offsets = {(moment + shift).astimezone(zone).utcoffset() for shift in (-_SHIFT, timedelta(0), _SHIFT)}
    return len(offsets) > 1


def _again(fields: Fields, zone: ZoneInfo, moment: datetime) -> datetime | None:
    """The first time after a moment that comes for the second time."""
    begun = (moment.astimezone(zone).replace(tzinfo=None) - _SHIFT).replace(second=0, microsecond=0)
    most = 2 * int(_SHIFT / _MINUTE)
    walls = islice(fields.walls(begun), most)
    seconds = (wall.replace(tzinfo=zone, fold=1).astimezone(UTC) for wall in walls)
    return next((at for at in seconds if at > moment and at.astimezone(zone).fold), None)
