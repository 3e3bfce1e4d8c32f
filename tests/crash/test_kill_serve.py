"""Real processes: the runtime is killed at random moments under load, and nothing is lost, doubled or out of order."""

from __future__ import annotations

import os
from pathlib import Path

from tests.crash.lives import live, lives
from tests.crash.stage import Judgement, Stage

_KILLS = 16
_DRAIN_S = 40.0
_ENOUGH = {
    "acknowledged": 300,
    "acknowledged_again": 20,
    "forged_refused": 5,
    "lanes": 30,
    "batches_done_forward": 50,
    "batches_done_spawn": 3,
    "batches_dropped_drop": 20,
    "batches_in_flight_at_a_kill": 5,
    "replies_arrived": 50,
    "replies_arrived_again": 3,
    "replies_labelled": 3,
}
"""How much of what must have happened for the play to have been one."""


def play(stage: Stage, seed: int, kills: int) -> Judgement:
    """Load, kills, one quiet life in which everything is settled, a graceful stop, and the judge."""
    load = stage.load()
    for life in lives(seed, kills):
        live(stage, stage.serve(), life)
    server = stage.serve()
    stage.ready(server)
    stage.stop(load, within_s=_DRAIN_S)
    stage.drain(server, _DRAIN_S)
    stage.stop(server)
    return stage.judged()


def test_a_server_that_is_killed_keeps_every_promise(tmp_path: Path) -> None:
    data = os.environ.get("KEEPSAID_BENCH_DATA")
    with Stage(tmp_path, seed=1, data=Path(data) if data else None) as stage:
        judgement = play(stage, seed=1, kills=_KILLS)
        assert judgement.violations == [], stage.logs()
        assert judgement.exit_code == 0
        assert stage.complaints() == []
    counts = judgement.counts
    assert {name: counts.get(name, 0) for name, least in _ENOUGH.items() if counts.get(name, 0) < least} == {}
    assert not data or counts["acknowledged"] > 800
