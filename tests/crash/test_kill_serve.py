"""The runtime is killed at random moments under load, twenty times, and nothing is lost, doubled or out of order."""

from __future__ import annotations

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.crash.cast import CAST, counted
from tests.figures import Figures
from tests.waits import SlownessWatch

from keepsaid_testkit.crash.fork import Nursery
from keepsaid_testkit.crash.play import Plan, Play
from keepsaid_testkit.crash.report import Report

_KILLS = 20
SOAK_KILLS = 1_000
_RESTART_MS_MAX = 2_000
_ENOUGH = {
    "acknowledged": 200,
    "acknowledged_again": 10,
    "lanes": 30,
    "batches_done_forward": 50,
    "batches_dropped_drop": 10,
    "batches_in_flight_at_a_kill": 10,
    "replies_arrived": 50,
    "replies_labelled": 1,
    "effects": 5,
}
"""How much of what must have happened for the play to have been one."""


def _killed(forks: Nursery, folder: Path, kills: int, seed: int = 1) -> Report:
    data = os.environ.get("KEEPSAID_BENCH_DATA")
    cast = replace(CAST, seed=seed, data=Path(data) if data else None)
    return Play(folder, cast, Plan(times=0, kills=kills), forks=forks).run()


def _killed_side_by_side(folder: Path, kills: int, *nurseries: Nursery) -> list[Report]:
    """Two plays that share the kills: a life waits more than it works."""
    folders = [folder / f"play-{n}" for n in range(len(nurseries))]
    for one in folders:
        one.mkdir()
    seeds, share = range(1, len(nurseries) + 1), kills // len(nurseries)
    with ThreadPoolExecutor(len(folders)) as threads:
        return list(threads.map(_killed, nurseries, folders, [share] * len(folders), seeds))


@pytest.mark.alone
def test_a_server_that_is_killed_keeps_every_promise(forks: Nursery, more_forks: Nursery, tmp_path: Path) -> None:
    with SlownessWatch() as watch:
        reports = _killed_side_by_side(tmp_path, _KILLS, forks, more_forks)
    assert [violation for report in reports for violation in report.violations] == []
    counts = sum((Counter(report.judgement.counts) for report in reports), Counter())
    assert {name: counts[name] for name, least in _ENOUGH.items() if counts[name] < least} == {}
    assert sum(not death.missed for report in reports for death in report.deaths) == _KILLS
    for report in reports:
        assert report.restart_ms is not None
        assert report.restart_ms <= watch.slowed(_RESTART_MS_MAX)


@pytest.mark.soak
def test_a_thousand_kills(forks: Nursery, more_forks: Nursery, tmp_path: Path, figures: Figures) -> None:
    reports = _killed_side_by_side(tmp_path, SOAK_KILLS, forks, more_forks)
    figures(plays=[counted(report) for report in reports])
    assert [violation for report in reports for violation in report.violations] == []
