"""Every kill point: each is known, stands on both sides of what it guards, and is survived."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.crash.cast import CAST, counted
from tests.figures import Figures

from keepsaid.domain.turn import StepKind
from keepsaid_testkit.crash.fork import Nursery
from keepsaid_testkit.crash.play import Plan, Play
from keepsaid_testkit.crash.points import WHEN, commit_names, kind_of, points
from keepsaid_testkit.crash.report import Report

SOAK_TIMES = 50
_DRAIN_S = 180.0
"""How long the quiet end may take: other tests run beside, and what was sent meanwhile is all answered."""

_CALLS = ("acknowledge", "backup", "fetch", "receive", "send", "tell", *StepKind)
"""What leaves the process, or is asked of it: every call that a crash can cut in two."""


def test_every_commit_and_every_call_outside_has_a_point_before_and_after_it() -> None:
    wanted = {f"commit.{name}.{side}" for name in commit_names() for side in ("before", "after")}
    wanted |= {f"{call}.{side}" for call in _CALLS for side in ("before", "after")}
    assert wanted - set(points()) == set()
    halves = [name for name in points() if name.endswith((".before", ".after"))]
    assert {name.rpartition(".")[0] for name in halves} == {
        name.rpartition(".")[0] for name in halves if name.endswith(".before")
    }
    assert len(halves) % 2 == 0


def test_every_point_is_one_of_the_kinds_of_the_spec_and_every_kind_has_points() -> None:
    assert [name for name in points() if not kind_of(name)] == []
    assert {kind_of(name) for name in points()} == set(WHEN)
    assert [begin for _, begins in WHEN.values() for begin in begins if not any(map(begin_of(begin), points()))] == []


def begin_of(begin: str) -> Callable[[str], bool]:
    return lambda name: name.startswith(begin)


def test_every_point_is_survived(forks: Nursery, more_forks: Nursery, tmp_path: Path) -> None:
    assert_survived(1, played(1, tmp_path, forks, more_forks))


@pytest.mark.soak
def test_every_point_is_survived_fifty_times(
    forks: Nursery, more_forks: Nursery, tmp_path: Path, figures: Figures
) -> None:
    plays = played(SOAK_TIMES, tmp_path, forks, more_forks)
    figures(points=len(points()), plays=[counted(report) for _, report in plays])
    assert_survived(SOAK_TIMES, plays)


def played(times: int, folder: Path, *nurseries: Nursery) -> list[tuple[Sequence[str], Report]]:
    """What came of dying so many times at each point, in plays side by side: a life waits more than it works."""
    shares = [points()[n :: len(nurseries)] for n in range(len(nurseries))]
    plays = []
    for n, (share, nursery) in enumerate(zip(shares, nurseries, strict=True)):
        (place := folder / f"play-{n}").mkdir()
        plan = Plan(times=times, only=tuple(share), drain_s=_DRAIN_S)
        plays.append(Play(place, replace(CAST, seed=n), plan, forks=nursery))
    with ThreadPoolExecutor(len(plays)) as threads:
        return list(zip(shares, threads.map(Play.run, plays), strict=True))


def assert_survived(times: int, plays: Sequence[tuple[Sequence[str], Report]]) -> None:
    assert [violation for _, report in plays for violation in report.violations] == []
    for share, report in plays:
        kills = {name: one["kills"] for name, one in report.points().items()}
        assert {name: kills.get(name, 0) for name in share} == dict.fromkeys(share, times)
