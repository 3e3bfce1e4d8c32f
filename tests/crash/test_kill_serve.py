"""Real processes: the runtime is killed at random moments under load, and nothing is lost, doubled or out of order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.crash.lives import live, lives
from tests.crash.stage import Judgement, Stage

_KILLS = 16
_DRAIN_S = 40.0


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


def played(folder: Path, seed: int, data: Path | None = None) -> dict[str, int]:
    """A play that keeps every promise; returns how much happened in it."""
    with Stage(folder, seed, data) as stage:
        judgement = play(stage, seed, _KILLS)
        assert judgement.violations == [], stage.logs()
        assert judgement.exit_code == 0
        assert "Traceback" not in stage.logs()
    return judgement.counts


def test_a_server_that_is_killed_keeps_every_promise(tmp_path: Path) -> None:
    counts = played(tmp_path, seed=1)
    enough = {
        "acknowledged": 300,
        "acknowledged_again": 20,
        "forged_refused": 10,
        "lanes": 30,
        "batches_done_forward": 50,
        "batches_done_spawn": 5,
        "batches_dropped_drop": 20,
        "batches_in_flight_at_a_kill": 5,
        "replies_arrived": 50,
        "replies_arrived_again": 3,
        "replies_labelled": 3,
    }
    assert {name: counts.get(name, 0) for name, least in enough.items() if counts.get(name, 0) < least} == {}


@pytest.mark.skipif("KEEPSAID_BENCH_DATA" not in os.environ, reason="KEEPSAID_BENCH_DATA names no data")
def test_real_talk_and_real_webhooks_survive_too(tmp_path: Path) -> None:
    counts = played(tmp_path, seed=2, data=Path(os.environ["KEEPSAID_BENCH_DATA"]))
    assert counts["acknowledged"] > 1_000
