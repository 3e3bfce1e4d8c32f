"""The runtime is killed at random moments, its stores in PostgreSQL, beside two that are killed or frozen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.crash.cast import CAST, counted
from tests.figures import Figures
from tests.postgres.server import new_place

from keepsaid_testkit.crash.fork import Nursery
from keepsaid_testkit.crash.play import Plan, Play
from keepsaid_testkit.crash.report import Report

_KILLS, _SOAK_KILLS = 6, 1_000
_ENOUGH = {"acknowledged": 50, "batches_done_forward": 20, "replies_arrived": 10}


def _killed(folder: Path, kills: int, *nurseries: Nursery) -> Report:
    first, *others = nurseries
    with new_place() as place:
        play = Play(folder, replace(CAST, store_url=place.url), Plan(times=0, kills=kills), forks=first)
        play.beside = others
        report = play.run()
        assert play.companions.fenced >= min(1, kills // 5), "a process that was frozen and woke has to end"
        return report


@pytest.mark.alone
def test_three_processes_that_are_killed_or_frozen_keep_every_promise(
    forks: Nursery, more_forks: Nursery, most_forks: Nursery, tmp_path: Path
) -> None:
    report = _killed(tmp_path, _KILLS, forks, more_forks, most_forks)
    assert report.violations == []
    counts = report.judgement.counts
    assert {name: counts[name] for name, least in _ENOUGH.items() if counts[name] < least} == {}


@pytest.mark.soak
def test_many_kills_on_postgres(
    forks: Nursery, more_forks: Nursery, most_forks: Nursery, tmp_path: Path, figures: Figures
) -> None:
    report = _killed(tmp_path, _SOAK_KILLS, forks, more_forks, most_forks)
    figures(plays=[counted(report)])
    assert report.violations == []
