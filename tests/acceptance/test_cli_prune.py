"""`keepsaid data prune`, and what the other commands say of what is gone."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside

DAY_MS = 86_400_000


def aged(program: Program, days: int) -> None:
    """Let everything that is settled have been settled so long ago."""
    with closing(sqlite3.connect(program.home / "data" / "buffer.db")) as db:
        db.execute("UPDATE batch SET ended_at = ended_at - ?", (days * DAY_MS,))
        db.commit()


@pytest.fixture
def said(tmp_path: Path) -> Program:
    """A home with an answered message, and one that waits."""
    program = Program(tmp_path / "home", {"KEEPSAID_MODELS__CHAT": "none"})
    program.run("chat", given="hello there\n")
    program.run("inbox", "send", "still waiting")
    return program


def test_what_was_settled_long_ago_goes_and_every_command_says_so(
    said: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    newest, oldest = inside(said, capsys, "inbox", "ls", "--json").json["messages"]
    turn = oldest["turn"]
    assert inside(said, capsys, "data", "prune", "--json").json["messages"] == 0
    aged(said, 8)
    for dry in (["prune"], ["prune", "--now", "--dry-run"]):
        assert inside(said, capsys, "data", *dry, "--json").json["messages"] == 1
    assert "pruned  1 message, 0 batches" in inside(said, capsys, "data", "prune", "--now").out
    listed = inside(said, capsys, "inbox", "ls")
    assert newest["id"] in listed.out
    assert oldest["id"] not in listed.out
    assert "1 message that were done or dropped are pruned" in listed.err
    refused = inside(said, capsys, "inbox", "show", oldest["id"], code=1).err
    assert "pruned after 7 days" in refused
    assert "pruned" in inside(said, capsys, "inbox", "why", oldest["id"], code=1).err
    assert "its messages went" in inside(said, capsys, "why", turn).out
    assert "its messages went" in inside(said, capsys, "inbox", "why", turn).out
    state = inside(said, capsys, "status", "--json").json
    assert (state["pruned"]["messages"], state["messages"], state["backlog"]["waiting"]) == (1, 2, 1)
    aged(said, 23)
    assert "pruned  0 messages, 1 batch" in inside(said, capsys, "data", "prune", "--now").out
    assert "pruned after" in inside(said, capsys, "why", turn, code=1).err
    assert inside(said, capsys, "doctor", "--deep", "--offline", "--json").json["counts"]["fail"] == 0


def test_a_running_instance_is_asked_to_prune(said: Program) -> None:
    aged(said, 8)
    with said.serving():
        told = json.loads(said.run("data", "prune", "--now", "--json").out)
        assert (told["messages"], told["over"], told["refused"]) == (1, True, None)


def test_a_clock_that_cannot_be_believed_prunes_nothing(said: Program, capsys: pytest.CaptureFixture[str]) -> None:
    aged(said, 8)
    with closing(sqlite3.connect(said.home / "data" / "buffer.db")) as db:
        db.execute(
            "INSERT INTO prune_run (at, last_id) SELECT received_at - 31 * ?, id FROM message LIMIT 1", (DAY_MS,)
        )
        db.commit()
    refused = inside(said, capsys, "data", "prune", "--now")
    assert "nothing was pruned: the clock stands more than 30 days after the last run" in refused.out
    assert "run it again" in refused.err
    assert "pruned  1 message" in inside(said, capsys, "data", "prune", "--now").out


def test_status_warns_of_what_waits_and_of_a_disk_that_is_full(
    said: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    said.configure("buffer: {warn_count: 1, min_free_disk_mb: 1000000000}")
    told = inside(said, capsys, "status").out
    assert "2 things need attention.\n! 1 message waits; buffer.warn_count is 1\n  try  keepsaid inbox ls\n" in told
    assert "below buffer.min_free_disk_mb no message is taken in" in told
    assert "nothing is taken in" in inside(said, capsys, "doctor", "--offline", code=6).out
    assert "KS-DB-RESERVE" in inside(said, capsys, "inbox", "send", "no room", code=1).err
