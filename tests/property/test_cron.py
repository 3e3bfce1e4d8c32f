"""Cron against a clock that is looked at every minute: every time comes when it should, and as often as it should."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepsaid.domain.timing import Fields, fields_of, next_time

MINUTE = timedelta(minutes=1)
CHANGES = (
    ("Europe/Berlin", "2026-03-29"),
    ("Europe/Berlin", "2026-10-25"),
    ("America/New_York", "2026-03-08"),
    ("America/New_York", "2026-11-01"),
    ("Australia/Lord_Howe", "2026-04-05"),
    ("Australia/Lord_Howe", "2026-10-04"),
    ("Africa/Cairo", "2026-04-24"),
    ("America/Havana", "2026-11-01"),
    ("Pacific/Apia", "2011-12-30"),
    ("Pacific/Kwajalein", "1969-10-01"),
    ("Asia/Kolkata", "2026-06-01"),
    ("America/St_Johns", "2006-10-29"),
)


@cache
def looks(zone: str, day: str) -> list[tuple[datetime, datetime, datetime]]:
    """Every minute from two days before a day to three after it: in UTC, on the wall, and on the wall a minute ago."""
    start = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(days=2)
    moments = [start + n * MINUTE for n in range(5 * 1440)]
    walls = [moment.astimezone(ZoneInfo(zone)) for moment in moments]
    return list(zip(moments[1:], walls[1:], walls, strict=False))


def allowed(fields: Fields, wall: datetime) -> bool:
    hour = wall.hour in fields.hours and wall.minute in fields.minutes
    return hour and wall.month in fields.months and fields.on(wall.date())


def comes(fields: Fields, wall: datetime, before: datetime) -> bool:
    """Whether it comes now: it is so late for the first time, or again where every hour counts, or it was skipped."""
    if allowed(fields, wall) and (fields.hourly or not wall.fold):
        return True
    now, skipped = wall.replace(tzinfo=None), before.replace(tzinfo=None) + MINUTE
    while skipped < now:
        if allowed(fields, skipped):
            return True
        skipped += MINUTE
    return False


def ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000)


def field(least: int, most: int) -> st.SearchStrategy[str]:
    number = st.integers(least, most)
    span = st.tuples(number, number).map(lambda two: f"{min(two)}-{max(two)}")
    step = st.integers(2, 15).map(lambda every: f"*/{every}")
    return st.one_of(st.just("*"), number.map(str), span, step, st.lists(number.map(str), min_size=2).map(",".join))


EXPRESSIONS = st.tuples(field(0, 59), field(0, 4), st.just("*"), st.just("*"), st.one_of(st.just("*"), field(0, 7)))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(CHANGES), EXPRESSIONS.map(" ".join), st.integers(0, 3 * 1440), st.integers(0, 59_999))
def test_the_next_time_is_the_one_a_clock_shows(change: tuple[str, str], text: str, start: int, odd: int) -> None:
    fields, zone = fields_of(text), ZoneInfo(change[0])
    seen = looks(*change)
    after = ms(seen[start][0]) + odd
    expected = next(
        (ms(at) for at, wall, before in seen[start:] if ms(at) > after and comes(fields, wall, before)), None
    )
    found = next_time(fields, zone, after)
    if expected is None:
        assert found is None or found > ms(seen[-1][0])
    else:
        assert found == expected


def times(text: str, zone: str, after: str, count: int) -> list[str]:
    at: int | None = ms(datetime.fromisoformat(after).astimezone(UTC))
    found = []
    for _ in range(count):
        assert at is not None
        at = next_time(fields_of(text), ZoneInfo(zone), at)
        assert at is not None
        found.append(datetime.fromtimestamp(at / 1_000, ZoneInfo(zone)).isoformat(timespec="minutes"))
    return found


def test_a_time_that_is_skipped_comes_once_when_the_clocks_go_on() -> None:
    assert times("15,45 2 * * *", "Europe/Berlin", "2026-03-28T12:00+01:00", 3) == [
        "2026-03-29T03:00+02:00",
        "2026-03-30T02:15+02:00",
        "2026-03-30T02:45+02:00",
    ]


def test_a_time_that_comes_twice_comes_the_first_time() -> None:
    days = ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]
    assert times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00+02:00", 2) == days


def test_every_hour_comes_in_both_of_them() -> None:
    assert times("0 * * * *", "Europe/Berlin", "2026-10-25T01:30+02:00", 3) == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T03:00+01:00",
    ]


def test_either_day_is_enough_where_both_are_named_and_both_are_needed_where_one_is_a_step() -> None:
    assert times("0 0 13 * fri", "UTC", "2026-02-28T12:00+00:00", 3) == [
        "2026-03-06T00:00+00:00",
        "2026-03-13T00:00+00:00",
        "2026-03-20T00:00+00:00",
    ]
    assert times("0 0 */2 * fri", "UTC", "2026-02-28T12:00+00:00", 2) == [
        "2026-03-13T00:00+00:00",
        "2026-03-27T00:00+00:00",
    ]


def test_rare_days_are_found() -> None:
    assert times("@yearly", "UTC", "2026-02-01T00:00+00:00", 1) == ["2027-01-01T00:00+00:00"]
    assert times("0 12 29 feb *", "UTC", "2026-03-01T00:00+00:00", 2) == [
        "2028-02-29T12:00+00:00",
        "2032-02-29T12:00+00:00",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("* * * *", "five fields"),
        ("60 * * * *", "minute"),
        ("* 24 * * *", "hour"),
        ("* * 0 * *", "day of the month"),
        ("* * * 13 *", "month"),
        ("* * * * 8", "day of the week"),
        ("*/0 * * * *", "steps"),
        ("5-1 * * * *", "go from"),
        ("*-5 * * * *", "go from"),
        ("* * L * *", "day of the month"),
        ("a * * * *", "minute"),
        ("0 0 30 2 *", "never"),
        ("@reboot", "five fields"),
    ],
)
def test_what_is_no_cron_expression_is_refused_with_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        fields_of(text)
