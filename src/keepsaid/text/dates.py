"""Dates: days and times in a short answer, resolved against the moment it was given."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from keepsaid.text.date_words import DateTable, DateToken, date_tables, plain_spelling, token_lists
from keepsaid.text.patterns import lazy
from keepsaid.values import frozen

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
"""Names that the gate and the search for times in questions compare. Dates are read with the tables of `data/dates`."""

_ISO = lazy(r"(\d{4}-\d\d-\d\d)(?:[t ](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:z|[+-]\d\d:?\d\d)?))?")
_MINUTES: Mapping[str, int] = {"minute": 1, "hour": 60, "day": 1_440, "week": 10_080}
_MONTHS_OF: Mapping[str, int] = {"month": 1, "year": 12}
_PARTS: Mapping[str, tuple[range, range]] = {
    "am": (range(0), range(12)),
    "early": (range(0), range(7)),
    "morning": (range(0), range(1, 12)),
    "noon": (range(1, 3), range(11, 15)),
    "afternoon": (range(1, 8), range(12, 20)),
    "pm": (range(1, 12), range(12, 24)),
    "evening": (range(4, 12), range(16, 24)),
    "night": (range(6, 12), range(18, 24)),
}
"""The hours of each part of the day: those that are 12 hours later, and those that are meant as they are."""

_AFTERNOON_UNTIL = 7
"""`at 5` without more is in the afternoon; `at 7` in the morning."""

_FIVES = (5, 10, 15, 20, 25)
_DAY_OF_MONTH = lazy("Ax[NO]")
"""`around the 15th`: a day of some month, not an hour."""

_NIGHTS = lazy("NP|PN(?![HuN])")
"""A number beside a part of the day, without a mark of hours: `두 밤` are two nights."""

_Tokens = Sequence[DateToken]


@dataclass(slots=True)
class _Moment:
    """The parts of a moment that were read so far."""

    now: datetime
    day: date | None = None
    weekday: int | None = None
    is_next: bool = False
    clock: _Clock | None = None
    part: str = ""
    exact: datetime | None = None

    def said(self) -> str | None:
        """As ISO 8601: a day, or a day and a time with its offset; None when nothing or nonsense was said."""
        if self.exact is not None:
            return None if self.day or self.weekday is not None or self.clock or self.part else _iso(self.exact)
        if self.weekday is not None and not self._match_weekday(self.weekday):
            return None
        if self.clock is None:
            return None if self.day is None else self.day.isoformat()
        if (minutes := self.clock.minutes(self.part, has_day=self.day is not None)) is None:
            return None
        if minutes == 0 and self.clock.form == "named" and self.day is not None:
            # the midnight of another day is its beginning or its end
            return _iso(self._at(self.day + timedelta(days=1), 0)) if self.day == self.now.date() else None
        moment = self._at(self.day or self.now.date(), minutes)
        if moment <= self.now and self.day == self.now.date() and self.clock.form == "spoken" and not self.part:
            return None  # `today at 9`, said at 10, can be that of the evening
        if self.day is None and moment <= self.now:
            moment = self._at(self.now.date() + timedelta(days=1), minutes)
        return _iso(moment)

    def _at(self, day: date, minutes: int) -> datetime:
        return datetime.combine(day, time(minutes // 60, minutes % 60), self.now.tzinfo)

    def _match_weekday(self, weekday: int) -> bool:
        """Whether the weekday is that of the day; without a day, it is the next of its name.

        The next Friday can be that of this week or of the next one, where both are to come.
        """
        if self.day is not None:
            return self.day.weekday() == weekday
        today = self.now.date()
        self.day = today + timedelta(days=(weekday - today.weekday() - 1) % 7 + 1)
        return not self.is_next or self.day.isocalendar()[:2] != today.isocalendar()[:2]


@frozen
class _Clock:
    """A time of day as it was said: an hour, minutes added to it, and how it was written."""

    hour: int
    add: int = 0
    form: str = "spoken"

    def minutes(self, part: str, *, has_day: bool) -> int | None:
        """Minutes since midnight; None when the part of the day does not have such an hour."""
        hour = self.hour
        if self.form == "unit" and not part and not (has_day and (hour > 12 or self.add)):
            return None  # a number of hours
        if part and self.form not in ("exact", "named"):
            moved, kept = _PARTS[part]
            if hour not in moved and hour not in kept:
                return None
            hour += 12 if hour in moved else 0
        elif self.form == "spoken" and 1 <= hour <= _AFTERNOON_UNTIL and hour * 60 + self.add < _AFTERNOON_UNTIL * 60:
            hour += 12
        found = hour * 60 + self.add
        return found if hour < 24 and 0 <= found < 1_440 else None


def read_moment(text: str, now: datetime) -> str | None:
    """A day as `2026-11-24`, a moment as `2026-11-24T17:00+01:00`; None for a text that says anything else as well.

    `now` is when it was said, in the time of who said it. A time without a day is the next one; a weekday is the
    next of that name. A date that can be read in two ways, such as 5/6, is none.
    """
    text = plain_spelling(text)
    if (exact := _ISO.fullmatch(text.rstrip("!. "))) is not None:
        return _of_iso(exact[1], exact[2], now)
    found = {_in_language(text, table, now) for table in date_tables()} - {None}
    return found.pop() if len(found) == 1 else None


def _of_iso(day: str, at: str | None, now: datetime) -> str | None:
    try:
        if at is None:
            return date.fromisoformat(day).isoformat()
        moment = datetime.fromisoformat(f"{day}T{at.upper()}")
    except ValueError:
        return None
    return _iso(moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo))


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="minutes")


def _in_language(text: str, table: DateTable, now: datetime) -> str | None:
    for tokens in token_lists(text, table):
        kinds = "".join(token.kind for token in tokens)
        if _is_misleading(kinds) or (table.is_unspaced and _NIGHTS.search(kinds)):
            continue
        said = _interpreted(_of(tokens, kinds.replace("x", "")), now, is_habit="xW" in kinds)
        if said is not None:
            return said
    return None


def _is_misleading(kinds: str) -> bool:
    """`Monday in a week` is counted from that Monday, and `around the 15th` is not an hour."""
    return ("W" in kinds and not {"I", "L"}.isdisjoint(kinds)) or _DAY_OF_MONTH.search(kinds) is not None


def _interpreted(tokens: list[DateToken], now: datetime, *, is_habit: bool) -> str | None:
    """The moment that the tokens give, where the rules cover all of them and no part is given twice.

    `le lundi` can be every Monday; `le lundi 9 mars` is one.
    """
    moment, kinds, at = _Moment(now), "".join(token.kind for token in tokens), 0
    try:
        while at < len(kinds):
            matches = ((rule.match(kinds, at), read) for rule, read in _RULES)
            end, reader = next(((found.end(), read) for found, read in matches if found is not None), (at, None))
            if reader is None or not reader(moment, tokens[at:end]):
                return None
            at = end
        return None if is_habit and moment.day is None else moment.said()
    except (ValueError, OverflowError):  # no such day
        return None


def _of(tokens: _Tokens, kinds: str) -> list[DateToken]:
    return [token for token in tokens if token.kind in kinds]


def _set_day(moment: _Moment, day: date | None) -> bool:
    if moment.day is not None or day is None:
        return False
    moment.day = day
    return True


def _set_clock(moment: _Moment, clock: _Clock) -> bool:
    if moment.clock is not None or not 0 <= clock.hour < 24 or not -60 < clock.add < 60:
        return False
    moment.clock = clock
    return True


def _after(moment: _Moment, tokens: _Tokens) -> bool:
    """`in three days`, `an hour later`."""
    counts = [token.number for token in _of(tokens, "NYi")]
    units = [token.value for token in _of(tokens, "Uhmd")]
    minutes = sum(token.number for token in _of(tokens, "V"))
    if "" in units:  # 号 is the day of a month alone
        return False
    if units and units[0] in _MONTHS_OF:
        return len(units) == 1 and _set_day(moment, _months_later(moment.now.date(), counts[0] * _MONTHS_OF[units[0]]))
    minutes += sum(count * _MINUTES[unit] for count, unit in zip(counts, units, strict=False))
    if units and _MINUTES[units[0]] >= _MINUTES["day"]:
        return len(units) == 1 and _set_day(moment, moment.now.date() + timedelta(minutes=minutes))
    if moment.exact is not None:
        return False
    now, zone = moment.now, moment.now.tzinfo
    later = timedelta(minutes=minutes)
    moment.exact = now + later if zone is None else (now.astimezone(UTC) + later).astimezone(zone)
    return True


def _months_later(day: date, months: int) -> date:
    """The same day of a later month, or its last day."""
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))


def _date(moment: _Moment, tokens: _Tokens) -> bool:
    """`3 June 2026`, `2026年6月3日`."""
    years = [token.number for token in _of(tokens, "Y")]
    if full := _of(tokens, "F"):
        year, month, day = map(int, full[0].value.split())
        return _set_day(moment, _dated(moment.now.date(), year or None, month, day))
    named, numbers = _of(tokens, "M"), [token.number for token in _of(tokens, "NO")]
    month = named[0].number if named else numbers[0]
    return _set_day(moment, _dated(moment.now.date(), years[0] if years else None, month, numbers[-1]))


def _dated(today: date, year: int | None, month: int, day: int) -> date | None:
    """The day; without a year the next one of that date."""
    found = date(year if year is not None else today.year, month, day)
    return found.replace(year=found.year + 1) if year is None and found < today and (month, day) != (2, 29) else found


def _written_clock(moment: _Moment, tokens: _Tokens) -> bool:
    """`15:00`, `5 pm`, `noon`."""
    [clock] = _of(tokens, "CcT")
    hour, minute, form = (f"{clock.value}:named" if clock.kind == "T" else clock.value).split(":")
    if form == "unit" and tokens[0].kind == "A":
        form = "digits"
    return _set_clock(moment, _Clock(int(hour), int(minute), form))


def _minutes_before(moment: _Moment, tokens: _Tokens) -> bool:
    """`quarter past six`, `ten to six`, `halb sechs`."""
    *minutes, hour = _of(tokens, "NOi")
    [relation] = _of(tokens, "ptqr")
    add = relation.number if relation.value else minutes[0].number
    if relation.kind in "qr" and not _of(tokens, "m") and (add not in _FIVES or relation.kind + tokens[0].kind == "rN"):
        return False  # `nine to five` is a stretch of time
    return _set_clock(moment, _Clock(hour.number, add if relation.kind in "pq" else -add))


def _minutes_after(moment: _Moment, tokens: _Tokens) -> bool:
    """`six et quart`, `six menos diez`, `6点半`, `five thirty`."""
    hour, *minutes = _of(tokens, "NOi")
    relation = _of(tokens, "asel")
    add = minutes[0].number if minutes else relation[0].number
    if not relation and not _of(tokens, "hH") and add < 10:
        return False
    return _set_clock(moment, _Clock(hour.number, -add if relation and relation[0].kind in "sl" else add))


def _hour(moment: _Moment, tokens: _Tokens) -> bool:
    """`at five`, `5 Uhr`, and `five` beside a part of the day."""
    [hour] = _of(tokens, "NOi")
    is_one = hour.is_words and hour.number == 1 and tokens[0] is hour
    if is_one and len(tokens) == 1:  # `one morning`
        return False
    is_unit = is_one or (tokens[0] is hour and tokens[-1].kind == "h")
    return _set_clock(moment, _Clock(hour.number, form="unit" if is_unit else "spoken"))


def _day(moment: _Moment, tokens: _Tokens) -> bool:
    return _set_day(moment, moment.now.date() + timedelta(days=tokens[0].number))


def _weekday(moment: _Moment, tokens: _Tokens) -> bool:
    """A weekday; with a week, its day in that week."""
    [weekday], weeks = _of(tokens, "W"), _of(tokens, "K")
    if moment.weekday is not None:
        return False
    moment.weekday, moment.is_next = weekday.number, bool(_of(tokens, "X"))
    if not weeks:
        return True
    today = moment.now.date()
    day = today + timedelta(days=weekday.number - today.weekday() + 7 * weeks[0].number)
    return day >= today and _set_day(moment, day)


def _part(moment: _Moment, tokens: _Tokens) -> bool:
    if moment.part not in ("", tokens[0].value):
        return False
    moment.part = tokens[0].value
    return True


_RULES: tuple[tuple[re.Pattern[str], Callable[[_Moment, _Tokens], bool]], ...] = (
    (lazy("I(?:V|[NYi][Uhmd](?:N[hm])?)|VL|[NYi][Uhmd](?:N[hm])?L"), _after),
    (lazy("Fy?|(?:Yy)?NuNd?|(?:Yy)?M[NO]d?(?:Yy?)?|[NO]d?M(?:Yy?)?"), _date),
    (lazy("A?CH?|ACh|Ac[hH]?|cH|A?T"), _written_clock),
    (lazy("A?[pt][NOi][hH]?|A?N[qr][Ni][hH]?|A?Nm[qr][Ni][hH]?"), _minutes_before),
    (lazy("A[Ni][hH]?[as]|NH[as]|Nh?[as](?=P)|(?<=P)Nh?[as]"), _minutes_after),
    (lazy("A[Ni][hH]?[el]Nm?|NH[el]Nm?|A[Ni][hH]Nm?|NHNm?|AN{2}(?![MuUhmdY])"), _minutes_after),
    (lazy("A[Ni][hH]?|N[hH]|N(?=P)|(?<=P)N"), _hour),
    (lazy("[XS]?K?W[XK]?"), _weekday),
    (lazy("D"), _day),
    (lazy("P"), _part),
)
"""Each rule over the letters of the tokens, with what it reads; the first that matches is taken."""
