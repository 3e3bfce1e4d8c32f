"""Timings: when something is due again, by a cron expression, an interval, or a quiet conversation."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import islice
from zoneinfo import ZoneInfo

from keepsaid.domain.ids import moment
from keepsaid.values import frozen

_EPOCH = datetime.fromtimestamp(0, UTC)
_SHIFT = timedelta(hours=26)
"""No zone ever put its clocks on or back by more."""

_YEARS_MAX = 40
"""The years after which a day without a match, such as the 30th of February, counts as impossible."""

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


@frozen
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
        raise ValueError(
            f"a cron expression has five fields, such as 30 8 * * 1-5; {text.strip()!r} has {len(text.split())}"
        )
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
        if (found := _PART.fullmatch(part)) is None:
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
    if fields.hourly:
        offsets = {(moment + shift).astimezone(zone).utcoffset() for shift in (-_SHIFT, timedelta(0), _SHIFT)}
        if len(offsets) > 1:
            found = min(filter(None, (found, _repeated_time(fields, zone, moment))), default=None)
    return None if found is None else (found - _EPOCH) // timedelta(milliseconds=1)


def first_at(wall: datetime, zone: ZoneInfo) -> datetime:
    """When it is first so late on the wall, or later, in UTC: for a time that is skipped, when the clocks go on."""
    at = wall.replace(tzinfo=zone).astimezone(UTC)
    if at.astimezone(zone).replace(tzinfo=None) == wall:
        return at
    before, after = wall.replace(tzinfo=zone, fold=1).astimezone(UTC), at
    offset = before.astimezone(zone).utcoffset()
    while after - before > timedelta(seconds=1):
        middle = (before + (after - before) / 2).replace(microsecond=0)
        if middle.astimezone(zone).utcoffset() == offset:
            before = middle
        else:
            after = middle
    return after


def _repeated_time(fields: Fields, zone: ZoneInfo, moment: datetime) -> datetime | None:
    """Return the first matching time after `moment` that a clock change makes occur a second time."""
    begun = (moment.astimezone(zone).replace(tzinfo=None) - _SHIFT).replace(second=0, microsecond=0)
    walls = islice(fields.walls(begun), 2 * (_SHIFT // timedelta(minutes=1)))
    seconds = (wall.replace(tzinfo=zone, fold=1).astimezone(UTC) for wall in walls)
    return next((at for at in seconds if at > moment and at.astimezone(zone).fold), None)


def next_daily(after: int, hour: float, zone: tzinfo) -> int:
    """The first time it is this hour, such as 3.5 for half past three, after a time; milliseconds UTC."""
    then = datetime.fromtimestamp(after / 1_000, zone)
    due = then.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(hours=hour)
    if due <= then:
        due += timedelta(days=1)
    return int(due.timestamp() * 1_000)


_SPAN_MS = 120_000
_DAY_MINUTES = 1_440


@frozen
class Cron:
    """Five fields, in a time zone of the IANA database."""

    text: str
    zone: str = "UTC"

    def next(self, after: int) -> int | None:
        """The first time after a time, both milliseconds UTC; None when there is none in 40 years."""
        return next_time(fields_of(self.text), ZoneInfo(self.zone), after)


@frozen
class Every:
    """A number of milliseconds after the last time."""

    ms: int


@frozen
class Once:
    """One time."""

    at: int


Timing = Cron | Every | Once


def once(text: str) -> Once:
    """The time that a text names. Raises ValueError, which quotes it."""
    try:
        return Once(moment(text))
    except ValueError as error:
        raise ValueError(f"{text!r} is not {error}") from None


def first_due(timing: Timing, now: int) -> int | None:
    """The first time after now; None when there is none, as for what was to come once and is over."""
    match timing:
        case Cron():
            return timing.next(now)
        case Every():
            return now + timing.ms
        case Once():
            return timing.at if timing.at > now else None


def next_due(timing: Timing, due: int, now: int) -> int | None:
    """The next time after now, where a time that has come was `due`."""
    match timing:
        case Cron():
            return timing.next(now)
        case Every():
            return due + timing.ms * ((now - due) // timing.ms + 1)
        case Once():
            return None


def last_due(timing: Timing, due: int, now: int) -> int:
    """The latest time that has come by now, where `due` is the first of them."""
    match timing:
        case Cron():
            return _last(timing, due, now)
        case Every():
            return due + timing.ms * ((now - due) // timing.ms)
        case Once():
            return due


def _last(timing: Cron, due: int, now: int) -> int:
    """Looked for in a span before now, which is doubled until something came in it."""
    span = _SPAN_MS
    while now - span > due:
        if (found := timing.next(now - span)) is not None and found <= now:
            due = found
            break
        span *= 2
    following = timing.next(due)
    while following is not None and following <= now:
        due, following = following, timing.next(following)
    return due


def written(timing: Timing) -> str:
    """A timing as one line, which `timing_of` reads."""
    match timing:
        case Cron():
            return f"cron {timing.zone} {timing.text}"
        case Every():
            return f"every {timing.ms}"
        case Once():
            return f"once {timing.at}"


def timing_of(line: str) -> Timing:
    """The timing of a line that `written` made."""
    kind, _, rest = line.partition(" ")
    if kind == "cron":
        zone, _, text = rest.partition(" ")
        return Cron(text, zone)
    return Every(int(rest)) if kind == "every" else Once(int(rest))


def checked(timing: Timing) -> Timing:
    """The timing, if it can come; raises ValueError, saying what is wrong."""
    match timing:
        case Cron():
            known_zone(timing.zone)
            fields_of(timing.text)
        case Every() if timing.ms < 1_000:
            raise ValueError("an interval is at least a second")
    return timing


def known_zone(name: str) -> ZoneInfo:
    """A time zone by its name; raises ValueError for one that nobody knows."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ValueError(f"there is no time zone {name!r}; they are named as Europe/Berlin") from None


@frozen
class QuietHours:
    """Hours of the day in which nothing is said that can wait: minutes after midnight, over midnight or not."""

    begins: int
    ends: int
    zone: str = "UTC"

    def until(self, now: int) -> int | None:
        """When the quiet hours end that are now; None while there are none."""
        zone = ZoneInfo(self.zone)
        wall = datetime.fromtimestamp(now / 1_000, UTC).astimezone(zone).replace(tzinfo=None)
        minute = wall.hour * 60 + wall.minute
        over = self.begins > self.ends
        if not (minute >= self.begins or minute < self.ends if over else self.begins <= minute < self.ends):
            return None
        day = wall.replace(hour=0, minute=0, second=0, microsecond=0)
        if over and minute >= self.begins:
            day += timedelta(days=1)
        end = first_at(day + timedelta(minutes=self.ends), zone)
        return max(now + 1, int(end.timestamp() * 1_000))


def quiet_of(text: str, zone: str) -> QuietHours | None:
    """Read hours such as 22:00-07:00; None for "". Raises ValueError."""
    if not text.strip():
        return None
    begins, _, ends = text.partition("-")
    return QuietHours(_minute(begins, text), _minute(ends, text), known_zone(zone).key)


def _minute(text: str, whole: str) -> int:
    hour, _, minute = text.strip().partition(":")
    if hour.isdigit() and minute.isdigit():
        found = int(hour) * 60 + int(minute)
        if int(minute) < 60 and found < _DAY_MINUTES:
            return found
    raise ValueError(f"{whole!r} are not hours: use 22:00-07:00")
