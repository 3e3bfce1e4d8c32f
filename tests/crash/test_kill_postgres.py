"""The runtime is killed at points and at random moments, its stores in PostgreSQL, beside two killed or frozen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.crash.cast import CAST, counted
from tests.figures import Figures
from tests.postgres.server import new_place

from keepsaid_testkit.crash.fork import Nursery
from keepsaid_testkit.crash.play import Plan, Play
from keepsaid_testkit.crash.points import points
from keepsaid_testkit.crash.report import BY_CHANCE, Report

_TIMES, _KILLS, _SOAK_KILLS = 2, 6, 1_000
_KILLS_LEAST, _OTHERS_LEAST, _IN_FLIGHT_LEAST = 50, 6, 10
"""Kills of any of the three, those of the two beside the one that takes the load, and batches in flight at a kill."""

_ENOUGH = {"acknowledged": 50, "batches_done_forward": 20, "replies_arrived": 10}
_STEPS = (
    "commit.Receive.",
    "acknowledge.",
    "commit.Dispatch.",
    "commit.ClaimBatches.",
    "commit.StepStart.",
    "model.",
    "tool.",
    "commit.StepEnd.",
    "commit.TurnCommit.",
)
"""The path of a message in each process. Only the one that leads sends replies; kills at any moment fall on those."""


def _killed(folder: Path, kills: int, *nurseries: Nursery) -> Report:
    """Kill one at each point and at `kills` moments, and those beside it at others; all that was planned has hit."""
    first, *others = nurseries
    aims = tuple(name for name in points() if name.startswith(_STEPS))
    with new_place() as place:
        plan = Plan(times=_TIMES, kills=kills, only=aims)
        play = Play(folder, replace(CAST, store_url=place.url), plan, forks=first)
        play.beside = others
        report = play.run()
    assert play.companions.fenced >= 1, "a process that was frozen and woke has to end"
    assert play.companions.kills >= _OTHERS_LEAST
    hits = {name: one["kills"] for name, one in report.points().items()}
    assert hits == {**dict.fromkeys(aims, _TIMES), BY_CHANCE: kills}
    assert sum(hits.values()) + play.companions.kills >= _KILLS_LEAST
    return report


@pytest.mark.alone
def test_three_processes_that_are_killed_or_frozen_keep_every_promise(
    forks: Nursery, more_forks: Nursery, most_forks: Nursery, tmp_path: Path
) -> None:
    report = _killed(tmp_path, _KILLS, forks, more_forks, most_forks)
    assert report.violations == []
    counts = report.judgement.counts
    assert counts["batches_in_flight_at_a_kill"] >= _IN_FLIGHT_LEAST
    assert {name: counts[name] for name, least in _ENOUGH.items() if counts[name] < least} == {}


@pytest.mark.soak
def test_many_kills_on_postgres(
    forks: Nursery, more_forks: Nursery, most_forks: Nursery, tmp_path: Path, figures: Figures
) -> None:
    report = _killed(tmp_path, _SOAK_KILLS, forks, more_forks, most_forks)
    figures(plays=[counted(report)])
    assert report.violations == []
