"""The runtime is killed at random moments under load, thirty times, and nothing is lost, doubled or out of order."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.crash.cast import CAST, counted
from tests.figures import Figures
from tests.waits import slowed

from keepsaid_testkit.crash.fork import Nursery
from keepsaid_testkit.crash.play import Plan, Play
from keepsaid_testkit.crash.report import Report

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


@pytest.mark.alone
def test_a_server_that_is_killed_keeps_every_promise(forks: Nursery, tmp_path: Path) -> None:
    report = _killed(forks, tmp_path, 30)
    assert report.violations == []
    counts = report.judgement.counts
    assert {name: counts.get(name, 0) for name, least in _ENOUGH.items() if counts.get(name, 0) < least} == {}
    assert sum(not death.missed for death in report.deaths) == 30
    assert report.restart_ms is not None
    assert report.restart_ms <= slowed(_RESTART_MS_MAX)


@pytest.mark.soak
def test_a_thousand_kills(forks: Nursery, more_forks: Nursery, tmp_path: Path, figures: Figures) -> None:
    """In two plays side by side: a life waits more than it works."""
    nurseries, folders = (forks, more_forks), (tmp_path / "one", tmp_path / "two")
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(len(folders)) as threads:
        reports = list(threads.map(_killed, nurseries, folders, [SOAK_KILLS // 2] * 2, (1, 2)))
    figures(plays=[counted(report) for report in reports])
    assert [violation for report in reports for violation in report.violations] == []
