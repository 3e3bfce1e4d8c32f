"""The program on PostgreSQL by one setting: real processes, killed, shut out and moved to another home."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.acceptance.program import WITHIN_S, Program
from tests.postgres.proxy import between
from tests.postgres.server import empty

from keepsaid.adapters.postgres.connection import PostgresPlace


@pytest.fixture
def program(place: PostgresPlace, tmp_path: Path) -> Program:
    """A home without a model whose stores are in the database."""
    empty(place)
    return at(tmp_path / "home", place.url)


def at(home: Path, url: str) -> Program:
    """A home whose settings name a database."""
    made = Program(home, {"KEEPSAID_STORE__URL": url})
    made.configure("models: {chat: none}\nbuffer: {window_ms: 0}\nchannels: {library: {window_ms: 0}}\n")
    return made


def test_what_was_said_is_answered_remembered_and_forgotten(program: Program) -> None:
    """No file holds any of it."""
    program.run("memory", "add", "My desk is blue")
    with program.serving():
        assert "My desk is blue" in program.run("chat", given="What colour is my desk?\n").out
    found = program.run("memory", "search", "desk", "--json").json["hits"]
    assert "My desk is blue" in [one["memory"]["text"] for one in found]
    program.run("memory", "forget", "--filter", "desk", "--yes")
    assert program.run("memory", "search", "desk", "--json").json["hits"] == []
    assert not list((program.home / "data").glob("*.db"))
    assert "PostgreSQL" in program.run("doctor").out


def test_homes_share_a_database_and_one_goes_on_after_the_kill_of_another(
    program: Program, place: PostgresPlace, tmp_path: Path
) -> None:
    """What was acknowledged before the kill is answered, in whichever home has the key."""
    with program.serving(is_cold=True) as running:
        sent = program.run("inbox", "send", "the first", "--json").json
        running.settled(sent["id"])
        shutil.copytree(program.home, tmp_path / "second")
        second = at(tmp_path / "second", place.url)
        (second.home / "run" / "runtime.json").unlink()
        second.run("memory", "add", "in between")
        assert "in between" in program.run("memory", "ls").out
        running.process.kill()
        running.process.wait(WITHIN_S)
    second.run("inbox", "send", "the second")
    with second.serving(is_cold=True) as running:
        sent = second.run("inbox", "send", "the third", "--json").json
        running.settled(sent["id"])
    told = second.run("inbox", "ls", "--json").json["messages"]
    assert sorted((one["text"], one["state"]) for one in told) == [
        ("the first", "done"), ("the second", "done"), ("the third", "done")
    ]  # fmt: skip


def test_a_home_without_the_key_is_refused(program: Program, place: PostgresPlace, tmp_path: Path) -> None:
    program.run("memory", "add", "My desk is blue")
    stranger = at(tmp_path / "other", place.url)
    for command in (("memory", "ls"), ("memory", "add", "more")):
        refused = stranger.run(*command, code=None)
        assert refused.code != 0
        assert "another forgotten.key" in refused.err
        assert "forgotten.hashes" in refused.err


def test_a_server_that_is_away_is_said_to_be(program: Program, place: PostgresPlace, tmp_path: Path) -> None:
    """And nothing is lost: with the server the program goes on."""
    with between(place, tmp_path) as (proxy, behind):
        away = at(program.home, behind.url)
        away.run("memory", "add", "My desk is blue")
        proxy.is_away = True
        for command in (("status",), ("memory", "add", "more"), ("doctor",)):
            ran = away.run(*command, code=None)
            assert ran.code != 0, command
            assert "cannot be reached" in ran.err + ran.out
        proxy.is_away = False
        assert "My desk is blue" in away.run("memory", "ls").out


def test_what_is_done_with_files_alone_says_so(program: Program) -> None:
    program.run("memory", "add", "My desk is blue")
    assert "pg_dump" in program.run("data", "backup", code=None).err
    assert "its rows are not read one by one" in program.run("doctor", "--deep", "--offline", code=None).out
    assert (
        "must begin with postgresql://"
        in Program(program.home, {"KEEPSAID_STORE__URL": "mysql://x"}).run("status", code=None).err
    )
