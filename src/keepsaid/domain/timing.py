"""Timings: when something comes again: by a cron expression, at an interval, or once. Times are milliseconds UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from keepsaid.domain.cron import Fields, fields_of, first_at, next_time

_SPAN_MS = 120_000
_DAY_MINUTES = 1_440


@dataclass(frozen=True, slots=True)
class Cron:
    """Five fields, in a time zone of the IANA database."""

    text: str
    zone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Every:
    """So many milliseconds after the last time."""

    ms: int


@dataclass(frozen=True, slots=True)
class Once:
    """One time."""

    at: int


Timing = Cron | Every | Once


def first_due(timing: Timing, now: int) -> int | None:
    """The first time after now; None when there is none, as for what was to come once and is over."""
    match timing:
        case Cron():
            return next_time(*_cron(timing), now)
        case Every():
            return now + timing.ms
        case Once():
            return timing.at if timing.at > now else None


def next_due(timing: Timing, due: int, now: int) -> int | None:
    """The next time after now, where a time that has come was `due`."""
    match timing:
        case Cron():
            return next_time(*_cron(timing), now)
        case Every():
            return due + timing.ms * ((now - due) // timing.ms + 1)
        case Once():
            return None


def last_due(timing: Timing, due: int, now: int) -> int:
    """The latest time that has come by now, where `due` is the first of them."""
    match timing:
        case Cron():
            return _last(*_cron(timing), due, now)
        case Every():
            return due + timing.ms * ((now - due) // timing.ms)
        case Once():
            return due


def _cron(timing: Cron) -> tuple[Fields, ZoneInfo]:
    return fields_of(timing.text), ZoneInfo(timing.zone)


def _last(fields: Fields, zone: ZoneInfo, due: int, now: int) -> int:
    """Looked for in a span before now, which is doubled until something came in it."""
    span = _SPAN_MS
    while now - span > due:
        found = next_time(fields, zone, now - span)
        if found is not None and found <= now:
            due = found
            break
        span *= 2
    following = next_time(fields, zone, due)
    while following is not None and following <= now:
        due, following = following, next_time(fields, zone, following)
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
        case Every():
            if timing.ms < 1_000:
                raise ValueError("an interval is at least a second")
        case Once():
            pass
    return timing


def known_zone(name: str) -> ZoneInfo:
    """A time zone by its name; raises ValueError for one that nobody knows."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise ValueError(f"there is no time zone {name!r}; they are named as Europe/Berlin") from None


@dataclass(frozen=True, slots=True)
class Quiet:
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


def quiet_of(text: str, zone: str) -> Quiet | None:
    """Read hours such as 22:00-07:00; None for "". Raises ValueError."""
    if not text.strip():
        return None
    begins, _, ends = text.partition("-")
    return Quiet(_minute(begins, text), _minute(ends, text), known_zone(zone).key)


def _minute(text: str, whole: str) -> int:
    hour, _, minute = text.strip().partition(":")
    if hour.isdigit() and minute.isdigit():
        found = int(hour) * 60 + int(minute)
        if int(minute) < 60 and found < _DAY_MINUTES:
            return found
    raise ValueError(f"{whole!r} are no hours: 22:00-07:00")
