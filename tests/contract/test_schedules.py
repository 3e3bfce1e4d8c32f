"""Schedules keep their contract in memory and on SQLite."""

from __future__ import annotations

from keepsaid_testkit.contracts import operations as suite


class TestSchedule(suite.ScheduleContract):
    """When schedules come."""


class TestRun(suite.RunContract):
    """One run for each time."""


class TestOutput(suite.OutputContract):
    """What is heard of a run."""


def test_every_class_of_the_contract_runs_here() -> None:
    run_here = {base for one in globals().values() if isinstance(one, type) for base in one.__bases__}
    assert set(suite.SCHEDULES) <= run_here
