from __future__ import annotations

from datetime import UTC, date, datetime
from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.text.time_spans import Span, times_in

DAY = 86_400_000
NOW = int(datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp() * 1000)
"""A Saturday."""


def ms(day: str) -> int:
    return (date.fromisoformat(day) - date(1970, 1, 1)).days * DAY


def told(text: str) -> list[tuple[str, str]]:
    def shown(at: int) -> str:
        return "" if abs(at) > 1 << 60 else str(datetime.fromtimestamp(at / 1000, UTC).date())

    return [(shown(span.start), shown(span.end)) for span in times_in(text, NOW).spans]


@pytest.mark.parametrize(
    ("text", "first", "after"),
    [
        ("what did we say last week?", "2026-11-09", "2026-11-16"),
        ("this week", "2026-11-16", "2026-11-23"),
        ("Last weekend", "2026-11-14", "2026-11-16"),
        ("last month", "2026-10-01", "2026-11-01"),
        ("last year", "2025-01-01", "2026-01-01"),
        ("yesterday", "2026-11-20", "2026-11-21"),
        ("the day before yesterday", "2026-11-19", "2026-11-20"),
        ("last Saturday", "2026-11-14", "2026-11-15"),
        ("on Monday", "2026-11-16", "2026-11-17"),
        ("two weeks ago", "2026-11-04", "2026-11-11"),
        ("a few days ago", "2026-11-18", "2026-11-19"),
        ("in the last three days", "2026-11-18", "2026-11-22"),
        ("in May 2023", "2023-05-01", "2023-06-01"),
        ("December 2023", "2023-12-01", "2024-01-01"),
        ("last May", "2026-05-01", "2026-06-01"),
        ("last December", "2025-12-01", "2026-01-01"),
        ("on 8 May 2023", "2023-05-08", "2023-05-09"),
        ("May 8th, 2023", "2023-05-08", "2023-05-09"),
        ("2023-05-08", "2023-05-08", "2023-05-09"),
        ("2023-05", "2023-05-01", "2023-06-01"),
        ("in 2021", "2021-01-01", "2022-01-01"),
        ("before May 2024", "", "2024-05-01"),
        ("after 8 May 2023", "2023-05-09", ""),
        ("since last week", "2026-11-09", ""),
    ],
)
def test_times_are_read_as_they_are_meant_now(text: str, first: str, after: str) -> None:
    assert told(text) == [(first, after)]


def test_a_month_or_a_day_without_a_year_is_any_of_the_last() -> None:
    assert told("in May")[:2] == [("2026-05-01", "2026-06-01"), ("2025-05-01", "2025-06-01")]
    assert told("in December")[0] == ("2025-12-01", "2026-01-01")
    assert told("May 8th")[0] == ("2026-05-08", "2026-05-09")
    assert len(told("29 February")) == 2


@pytest.mark.parametrize(
    "text", ["may I go?", "march on", "30 February 2024", "5/6", "in december 0000", "the last one", ""]
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert not times_in(text, NOW)


def test_a_time_told_by_what_happened_is_named() -> None:
    before, after = times_in("what did I eat before the trip?", NOW), times_in("after my sister's wedding", NOW)
    assert before.anchor is not None
    assert (before.anchor.before, before.anchor.stems) == (True, frozenset({"trip"}))
    assert after.anchor is not None
    assert (after.anchor.before, after.anchor.stems) == (False, frozenset({"sister", "wed"}))
    assert before.anchor.span(50).closeness(49) == after.anchor.span(50).closeness(51) == 1
    assert max(before.anchor.span(50).closeness(50), after.anchor.span(50).closeness(50)) < 1


def test_days_are_named_as_memories_name_them() -> None:
    assert times_in("yesterday", NOW).days() == "20 November 2026 Friday"
    assert len(times_in("last week", NOW).days().split()) == 28
    assert times_in("in May", NOW).days() == ""


@given(st.integers(-(10**15), 10**15), st.integers(1, 10**12), st.integers(-(10**15), 10**15), st.integers(0, 10**13))
def test_the_nearer_the_closer(start: int, length: int, at: int, further: int) -> None:
    span = Span(start, start + length)
    closeness = span.closeness(at)
    assert 0 < closeness <= 1
    assert (closeness == 1) == (span.start <= at < span.end)
    away = at - further if at < span.start else at + further if at >= span.end else at
    assert span.closeness(away) <= closeness


WORDS = ["last", "next", "in", "may", "30", "february", "2024", "9999", "0", "ago", "weeks", "the", "before", "on"]


@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_can_be_read(text: str) -> None:
    when = times_in(text, NOW)
    assert all(span.start < span.end for span in when.spans)
    assert isinstance(when.days(), str)


def test_a_text_four_times_as_long_is_read_in_little_more_than_four_times_the_time() -> None:
    def took(count: int) -> float:
        text = "in May 2025 before the trip on 2025-06-01 last week " * count

        def once() -> float:
            began = thread_time()
            times_in(text, NOW)
            return thread_time() - began

        return min(once() for _ in range(3))

    assert took(1_600) < 6 * took(400) + 0.01


@pytest.mark.parametrize("between", ["after ", "after  the\n", "prior to the "])
def test_the_word_before_a_date_is_read_wherever_it_stands(between: str) -> None:
    far = "x" * 100
    plain = told("2025-06-01")
    assert told(f"{far} {between}2025-06-01") != plain
    assert told(f"here{between}2025-06-01") == plain
