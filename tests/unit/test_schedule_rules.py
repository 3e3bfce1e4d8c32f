"""The rules of schedules: what a time that has come comes to, whatever the clock did meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.domain.ids import moment
from keepsaid.domain.schedule import Fire, NewSchedule, Schedule, What, astray, fired
from keepsaid.domain.timing import (
    Cron,
    Every,
    Once,
    Timing,
    checked,
    first_due,
    last_due,
    next_due,
    quiet_of,
    timing_of,
    written,
)

HOUR, DAY = 3_600_000, 86_400_000
NINE = moment("2026-05-04T09:00")
DAILY = Cron("0 9 * * *")
TIMINGS = st.sampled_from([DAILY, Cron("*/7 * * * *"), Cron("0 12 * * 1", "Europe/Berlin"), Every(90_000), Every(DAY)])


def schedule(timing: Timing, next_at: int | None, *, whenever: bool = False) -> Schedule:
    new = NewSchedule(1, "command", "", timing, What.SAY, "wake up", whenever=whenever)
    return Schedule(new, "active", next_at)


def test_on_time_it_runs_and_comes_again() -> None:
    assert fired(schedule(DAILY, NINE), NINE - 1) is None
    assert fired(schedule(DAILY, None), NINE) is None
    assert fired(schedule(DAILY, NINE), NINE + 5) == Fire(1, NINE, NINE + DAY, NINE)


@pytest.mark.parametrize(("hours", "runs"), [(11, True), (12, True), (13, False)])
def test_what_was_missed_is_caught_up_with_within_half_the_period(hours: int, runs: bool) -> None:
    fire = fired(schedule(DAILY, NINE), NINE + hours * HOUR)
    assert fire is not None
    assert (fire.run_at, fire.next_at, bool(fire.missed)) == (NINE if runs else None, NINE + DAY, not runs)


def test_of_many_missed_times_at_most_the_last_is_caught_up_with() -> None:
    fire = fired(schedule(DAILY, NINE), NINE + 30 * DAY + HOUR)
    assert fire is not None
    assert (fire.run_at, fire.next_at) == (NINE + 30 * DAY, NINE + 31 * DAY)
    assert fire.missed


def test_what_comes_once_is_never_too_late() -> None:
    assert fired(schedule(Once(NINE), NINE), NINE + 9 * DAY) == Fire(1, NINE, None, NINE)


def test_what_runs_whenever_is_caught_up_with_however_late() -> None:
    fire = fired(schedule(DAILY, NINE, whenever=True), NINE + 20 * HOUR)
    assert fire is not None
    assert fire.run_at == NINE


def test_a_clock_that_is_not_believed_lets_nothing_be_caught_up_with() -> None:
    fire = fired(schedule(DAILY, NINE, whenever=True), NINE + 365 * DAY + HOUR, believed=False)
    assert fire == Fire(1, NINE, NINE + 366 * DAY, missed="passed over when the clock was set")
    assert fired(schedule(Once(NINE), NINE), NINE + 365 * DAY, believed=False) is None
    on_time = fired(schedule(DAILY, NINE), NINE + 1, believed=False)
    assert on_time is not None
    assert on_time.run_at == NINE


def test_after_a_clock_that_was_ahead_it_comes_when_it_should() -> None:
    year = 365 * DAY
    assert astray(schedule(DAILY, NINE + year), NINE - 1) == Fire(1, NINE + year, NINE)
    assert astray(schedule(Every(HOUR), NINE + year), NINE) == Fire(1, NINE + year, NINE + HOUR)
    assert astray(schedule(DAILY, NINE), NINE - 1) is None
    assert astray(schedule(Once(NINE + year), NINE + year), NINE) is None


@given(TIMINGS, st.integers(NINE - 40 * DAY, NINE), st.integers(0, 40 * DAY))
def test_the_last_time_and_the_next_have_nothing_between_them(timing: Timing, since: int, passed: int) -> None:
    due = first_due(timing, since)
    assert due is not None
    now = due + passed
    last, following = last_due(timing, due, now), next_due(timing, due, now)
    assert following is not None
    assert due <= last <= now < following
    assert next_due(timing, last, last) == following
    assert timing_of(written(timing)) == timing


def test_what_was_to_come_once_and_is_over_comes_not() -> None:
    assert first_due(Once(NINE), NINE) is None
    assert first_due(Once(NINE), NINE - 1) == NINE
    assert next_due(Once(NINE), NINE, NINE) is None
    assert timing_of(written(Once(NINE))) == Once(NINE)


@pytest.mark.parametrize("timing", [Cron("0 9 * * *", "Mars/Base"), Cron("nine"), Every(10), Cron("0 9 * * *", "")])
def test_what_cannot_come_is_refused(timing: Timing) -> None:
    with pytest.raises(ValueError, match=r"zone|five fields|second"):
        checked(timing)


def test_quiet_hours_end_in_the_morning() -> None:
    quiet = quiet_of("22:00-07:00", "Europe/Berlin")
    assert quiet is not None
    seven = moment("2026-03-29T07:00+02:00")
    assert quiet.until(moment("2026-03-28T22:00+01:00")) == seven
    assert quiet.until(moment("2026-03-29T06:59+02:00")) == seven
    assert quiet.until(seven) is None
    assert quiet.until(moment("2026-03-28T21:59+01:00")) is None
    noon = replace(quiet, begins=720, ends=780)
    assert noon.until(moment("2026-05-04T12:30+02:00")) == moment("2026-05-04T13:00+02:00")
    assert noon.until(moment("2026-05-04T22:30+02:00")) is None
    assert quiet_of("", "UTC") is None


@pytest.mark.parametrize("text", ["22-7", "25:00-07:00", "22:00", "22:60-07:00", "a:b-c:d"])
def test_what_are_no_hours_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="hours"):
        quiet_of(text, "UTC")
