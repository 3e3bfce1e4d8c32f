"""What waits for a model or for a person: said by every command that is asked, and settled by a word."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from tests.acceptance.program import Program, inside

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def answered(tmp_path: Path) -> Program:
    """A home in which one message was answered."""
    program = Program(tmp_path / "home")
    program.run("chat", "-m", "hello there")
    return program


def change(program: Program, *statements: str) -> None:
    """Change the buffer's file, as time and the world would."""
    db = apsw.Connection(str(program.home / "data" / "buffer.db"))
    for statement in statements:
        db.execute(statement)
    db.close()


def test_an_outage_is_no_secret(answered: Program, capsys: Capture) -> None:
    error = "openai/gpt cannot be reached"
    again = 4_070_908_800_000
    change(
        answered,
        f"UPDATE batch SET state = 'queued', deferrals = 2, error = '{error}', ready_at = {again}",
        "UPDATE turn SET state = 'open', ended_at = NULL",
    )
    told = f"{error}; sent back 2 times; tried again at 2099-01-01T00:00:00.000Z"
    [message] = inside(answered, capsys, "inbox", "ls", "--json").json["messages"]
    batch = message["batch"]
    assert (batch["error"], batch["deferrals"], batch["next_try_at"]) == (error, 2, "2099-01-01T00:00:00.000Z")
    assert f"error       {told}" in inside(answered, capsys, "inbox", "show", message["id"]).out
    explained = inside(answered, capsys, "why", message["id"]).out
    assert f"waits {told}" in " ".join(explained.split())
    status = inside(answered, capsys, "status").out
    assert "1 batch to answer (when an outage ends)" in status


def test_an_error_that_was_overcome_is_not_held_against_a_message(answered: Program, capsys: Capture) -> None:
    change(answered, "UPDATE batch SET deferrals = 2, error = 'no connection'")
    [message] = inside(answered, capsys, "inbox", "ls", "--json").json["messages"]
    assert message["batch"]["next_try_at"] is None
    assert "no connection" not in inside(answered, capsys, "inbox", "show", message["id"]).out


def test_a_dead_reply_says_why_and_is_settled_by_a_person(answered: Program, capsys: Capture) -> None:
    answered.run("chat", "-m", "another one")
    died = "UPDATE reply SET state = 'dead', detail = 'HTTP 410', attempts = 20, row_seal = NULL"
    dead = f"{died} WHERE id = (SELECT min(id) FROM reply)"
    change(answered, dead)
    assert "1 reply that could not be delivered" in inside(answered, capsys, "status").out
    [message] = inside(answered, capsys, "inbox", "ls", "--reply", "dead", "--json").json["messages"]
    [reply] = message["replies"]
    assert (message["text"], reply["state"], reply["detail"]) == ("hello there", "dead", "HTTP 410")
    assert f"{reply['id']} is dead (HTTP 410): " in inside(answered, capsys, "inbox", "show", message["id"]).out
    assert f"{reply['id']} is dead (HTTP 410), attempts 20" in inside(answered, capsys, "why", message["id"]).out

    again = inside(answered, capsys, "inbox", "resend", message["id"], "--json").json
    assert again == {"schema_version": 1, "replies": [reply["id"]], "accepted": False}
    shown = inside(answered, capsys, "inbox", "show", message["id"]).out
    assert f"{reply['id']} is pending, may have been sent twice: " in shown
    none = inside(answered, capsys, "inbox", "resend", reply["id"], code=1)
    assert "has no dead reply" in none.err

    change(answered, dead)
    accepted = inside(answered, capsys, "inbox", "resend", reply["id"], "--accept").out
    assert accepted == f"{reply['id']}  accepted: not deliverable\n"
    assert "could not be delivered" not in inside(answered, capsys, "status").out


def test_what_can_be_listed_is_said(answered: Program, capsys: Capture) -> None:
    refused = inside(answered, capsys, "inbox", "ls", "--reply", "lost", code=2)
    assert "'lost' is not one of: pending, sending, unknown, sent, dead, not_deliverable" in refused.err


def test_beside_a_runtime_it_settles_the_reply(answered: Program, capsys: Capture) -> None:
    change(answered, "UPDATE reply SET state = 'dead', detail = 'HTTP 410', row_seal = NULL")
    with answered.serving():
        [message] = inside(answered, capsys, "inbox", "ls", "--reply", "dead", "--json").json["messages"]
        inside(answered, capsys, "inbox", "resend", message["id"], "--accept")
        [message] = inside(answered, capsys, "inbox", "ls", "--json").json["messages"]
    [reply] = message["replies"]
    assert (reply["state"], reply["detail"]) == ("not_deliverable", "HTTP 410; accepted by a person")


def test_a_spawned_task_says_what_is_to_be_done(tmp_path: Path, capsys: Capture) -> None:
    program = Program(tmp_path / "home")
    program.configure("routes: {rules: [{name: look, match: {text: 'look*'}, action: spawn, task: 'See {{text}}'}]}\n")
    program.run("chat", "-m", "look here")
    [message] = inside(program, capsys, "inbox", "ls", "--json").json["messages"]
    task = message["task"]
    assert (task["state"], task["description"]) == ("pending", "See look here")
    shown = inside(program, capsys, "inbox", "show", message["id"]).out
    assert f"task        {task['id']} is pending: See look here" in shown


def test_memories_are_named_as_they_are_everywhere(answered: Program, capsys: Capture) -> None:
    program = answered
    program.run("chat", given="My dog is called Rex.\nWhat is my dog called?\n")
    turn = inside(program, capsys, "why", "--json").json["turn"]
    candidates = turn["context"]["memory"]["candidates"]
    assert candidates
    for one in candidates:
        assert inside(program, capsys, "memory", "show", one["id"], "--json").json["memory"]["id"] == one["id"]


def test_a_memory_of_an_impossible_time_breaks_no_list(answered: Program, capsys: Capture) -> None:
    program = answered
    program.run("memory", "add", "The lantern is in the boathouse.")
    db = apsw.Connection(str(program.home / "data" / "memory.db"))
    db.execute("UPDATE memory SET said_at = ?, row_seal = NULL WHERE kind = 'fact'", (10**17,))
    db.close()
    program.run("memory", "add", "The lamp is in the cellar.")
    for command in (["ls", "--kind", "fact"], ["search", "lantern"]):
        assert "The lantern" in inside(program, capsys, "memory", *command).out
        inside(program, capsys, "memory", *command, "--json")
