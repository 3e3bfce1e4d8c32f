"""Dates: days and times in a short answer, resolved against the moment it was given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from keepsaid.text.patterns import lazy

_DAY_WORDS = """
today heute aujourd'hui hoy oggi hoje сегодня 今天 今日
tomorrow morgen demain mañana domani amanhã завтра 明天 明日
overmorrow übermorgen послезавтра 后天
"""
_WEEKDAY_WORDS = """
monday mon montag lundi lunes lunedì понедельник
tuesday tue tues dienstag mardi martes martedì вторник
wednesday wed mittwoch mercredi miércoles mercoledì среда среду
thursday thu thur thurs donnerstag jeudi jueves giovedì четверг
friday fri freitag vendredi viernes venerdì пятница пятницу
saturday sat samstag sonnabend samedi sábado sabato суббота субботу
sunday sun sonntag dimanche domingo domenica воскресенье
"""
_MONTH_WORDS = """
january jan januar janvier enero gennaio января
february feb februar février febrero febbraio февраля
march mar märz mars marzo марта
april apr avril abril aprile апреля
may mai mayo maggio мая
june jun juni juin junio giugno июня
july jul juli juillet julio luglio июля
august aug août agosto августа
september sep sept septembre septiembre settembre сентября
october oct oktober okt octobre octubre ottobre октября
november nov novembre noviembre ноября
december dec dezember dez décembre diciembre dicembre декабря
"""


def _by_word(lines: str, first: int = 0) -> Mapping[str, int]:
    return {word: n for n, words in enumerate(lines.strip().splitlines(), first) for word in words.split()}


DAYS, WEEKDAYS, MONTHS = _by_word(_DAY_WORDS), _by_word(_WEEKDAY_WORDS), _by_word(_MONTH_WORDS, 1)
_UNITS: Mapping[str, timedelta] = {
    word: timedelta(minutes=minutes)
    for minutes, words in (
        (1, "minute minutes min mins minuten minuto minutos минут минуты минуту"),
        (60, "hour hours h hr hrs stunde stunden heure heures hora horas час часа часов"),
        (1_440, "day days tag tage tagen jour jours día días dias день дня дней"),
        (10_080, "week weeks woche wochen semaine semaines semana semanas неделю недели недель"),
    )
    for word in words.split()
}
_NOON: Mapping[str, time] = {
    "noon": time(12), "midday": time(12), "mittag": time(12), "mittags": time(12), "midi": time(12),
    "mediodía": time(12), "midnight": time(0), "mitternacht": time(0), "minuit": time(0), "medianoche": time(0),
}  # fmt: skip
_FILLERS_WORDS = """
on at by for the of from around about maybe let's lets say please ok okay yes sure how it's its is i think then
this coming next am um gegen den der dem bitte ja à le la las los el a il alle в во на у oclock o'clock
uhr h
"""
_FILLERS = frozenset(_FILLERS_WORDS.split())
_ISO = lazy(r"(\d{4}-\d\d-\d\d)(?:[t ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?))?", re.IGNORECASE)
_IN = lazy(r"(?:in|dans|en|через)\s+(\d{1,4}|a|an|one|einer|einem|une?|una?|half an)\s+([^\W\d]+)")
_SHORT = lazy(r"\b\d{1,2}\.\d{1,2}\.$")
_TOKEN = lazy(r"[^\s,;!]+")
_CLOCK = lazy(r"(\d{1,2})(?:[:.h](\d\d))?(am|pm|uhr|h)?", re.IGNORECASE)
_AFTERNOON_FROM = 7
"""`at 5` without more is in the afternoon; `at 7` in the morning."""


@dataclass(slots=True)
class _Moment:
    """What is known of a moment so far."""

    now: datetime
    day: date | None = None
    time: time | None = None
    month: int | None = None
    number: int | None = None
    year: int | None = None

    def said(self) -> str | None:
        """As ISO 8601: a day, or a day and a time with its offset; None when nothing or nonsense was said."""
        if self.month is not None:
            if self.day is not None or self.number is None:
                return None
            self.day = _dated(self.now.date(), self.year, self.month, self.number)
            if self.day is None:
                return None
        elif self.number is not None or self.year is not None:
            return None
        if self.time is None:
            return None if self.day is None else self.day.isoformat()
        day = self.day or self.now.date()
        moment = datetime.combine(day, self.time, self.now.tzinfo)
        if self.day is None and moment <= self.now:
            moment = datetime.combine(day + timedelta(days=1), self.time, self.now.tzinfo)
        return moment.isoformat(timespec="minutes")


def read_moment(text: str, now: datetime) -> str | None:
    """A day as `2026-11-24`, a moment as `2026-11-24T17:00+01:00`; None for a text that says anything else as well.

    `now` is when it was said, in the time of who said it. A time without a day is the next one; a weekday is the
    next of that name. A date that can be read in two ways, such as 5/6, is none.
    """
    text = text.casefold().strip().rstrip("!").strip()
    text = text if _SHORT.search(text) else text.rstrip(".")
    if (exact := _ISO.fullmatch(text)) is not None:
        return _iso(exact[1], exact[2], now)
    if (after := _IN.fullmatch(text)) is not None:
        return _after(after[1], after[2], now)
    moment, words = _Moment(now), _TOKEN.findall(text)
    return moment.said() if words and all(_take(moment, words, n) for n in range(len(words))) else None


def _iso(day: str, at: str | None, now: datetime) -> str | None:
    try:
        if at is None:
            return date.fromisoformat(day).isoformat()
        moment = datetime.fromisoformat(f"{day}T{at.upper()}")
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)).isoformat(timespec="minutes")


def _after(many: str, unit: str, now: datetime) -> str | None:
    if (span := _UNITS.get(unit)) is None:
        return None
    count = 0.5 if many.startswith("half") else int(many) if many.isdigit() else 1
    moment = now + span * count
    return moment.date().isoformat() if span >= timedelta(days=1) else moment.isoformat(timespec="minutes")


def _take(moment: _Moment, words: list[str], n: int) -> bool:
    """Whether a word adds to the moment, or nothing at all."""
    return any(reader(moment, words, n) for reader in _READERS) or words[n].rstrip(".") in _FILLERS


def _named_day(moment: _Moment, words: list[str], n: int) -> bool:
    """`tomorrow`, or a weekday: the next of its name."""
    today, word = moment.now.date(), words[n].rstrip(".")
    days = DAYS.get(words[n])
    if days is None and word in WEEKDAYS:
        days = (WEEKDAYS[word] - today.weekday() - 1) % 7 + 1
    if days is None or moment.day is not None:
        return False
    moment.day = today + timedelta(days=days)
    return True


def _named_time(moment: _Moment, words: list[str], n: int) -> bool:
    if words[n] not in _NOON or moment.time is not None:
        return False
    moment.time = _NOON[words[n]]
    return True


def _month(moment: _Moment, words: list[str], n: int) -> bool:
    month = words[n].rstrip(".")
    if month not in MONTHS or moment.month is not None:
        return False
    moment.month = MONTHS[month]
    return True


def _whole_date(moment: _Moment, words: list[str], n: int) -> bool:
    """24.11.2026, 24.11., 24/11/2026, 2026-11-24."""
    parts = re.fullmatch(r"(\d{1,4})([./-])(\d{1,2})(?:\2(\d{4}|\d{2})?)?", words[n])
    if parts is None or moment.day is not None:
        return False
    first, mark, second, last = int(parts[1]), parts[2], int(parts[3]), parts[4]
    if len(parts[1]) > 2:
        moment.day = _dated(moment.now.date(), first, second, int(last)) if last else None
        return moment.day is not None
    if mark == "-" or (mark == "." and not words[n].endswith(".") and last is None):
        return False
    year = None if last is None else int(last) + (2_000 if len(last) == 2 else 0)
    if mark == "/" and max(first, second) <= 12 and first != second:
        return False
    day, month = (second, first) if mark == "/" and second > 12 else (first, second)
    moment.day = _dated(moment.now.date(), year, month, day)
    return moment.day is not None


def _dated(today: date, year: int | None, month: int, day: int) -> date | None:
    """The day; without a year the next one of that date."""
    try:
        found = date(year if year is not None else today.year, month, day)
    except ValueError:
        return None
    return found.replace(year=found.year + 1) if year is None and found < today and (month, day) != (2, 29) else found


def _of_month(moment: _Moment, words: list[str], n: int) -> bool:
    """The day or the year beside the name of a month."""
    if not any(word.rstrip(".") in MONTHS for word in words):
        return False
    if (found := re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th|er|\.)?|(\d{4})", words[n])) is None:
        return False
    if found[2] is not None and moment.year is None:
        moment.year = int(found[2])
        return True
    if found[1] is not None and moment.number is None:
        moment.number = int(found[1])
        return True
    return False


def _clock(moment: _Moment, words: list[str], n: int) -> bool:
    """17:30, 5pm, and 5 after `at`."""
    found = _CLOCK.fullmatch(words[n])
    if found is None or moment.time is not None:
        return False
    hour, minute, half = int(found[1]), int(found[2] or 0), found[3]
    following = words[n + 1] if n + 1 < len(words) else ""
    half = half or (following if following in ("am", "pm", "uhr") else None)
    bare = found[2] is None and half is None
    if bare and (n == 0 or words[n - 1] not in ("at", "um", "à", "las", "alle", "в", "around", "about", "gegen", "by")):
        return False
    if half in ("am", "pm"):
        if not 1 <= hour <= 12:
            return False
        hour = hour % 12 + (12 if half == "pm" else 0)
    elif bare and 1 <= hour < _AFTERNOON_FROM:
        hour += 12
    if hour > 23 or minute > 59:
        return False
    moment.time = time(hour, minute)
    return True


def _half_of_day(moment: _Moment, words: list[str], n: int) -> bool:
    """`pm` on its own belongs to the number before it."""
    return words[n] in ("am", "pm", "uhr") and moment.time is not None and n > 0 and words[n - 1][:1].isdigit()


_Reader = Callable[[_Moment, list[str], int], bool]
_READERS: tuple[_Reader, ...] = (_named_day, _named_time, _whole_date, _of_month, _month, _clock, _half_of_day)
