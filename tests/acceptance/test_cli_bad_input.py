"""Bad input on the command line: each a clear error that says whether data is safe and what to run."""

from __future__ import annotations

import hashlib
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside


@pytest.fixture
def fresh(tmp_path: Path) -> Program:
    """A home that does not exist yet."""
    return Program(tmp_path / "home")


def test_a_wrong_setting(fresh: Program) -> None:
    fresh.configure("models: {api_key: '${NO_SUCH_VARIABLE}'}")
    refused = fresh.run("status", code=4)
    assert "models.api_key: the environment variable NO_SUCH_VARIABLE is not set" in refused.err
    assert "[KS-CFG]" in refused.err
    assert "No data was touched." in refused.err


def test_a_setting_says_where_it_comes_from(fresh: Program) -> None:
    fresh.configure("buffer:\n  window_ms: 250\nchannels:\n  github:\n    secret: very-secret\nbufer: 1\n")
    program = Program(fresh.home, {"KEEPSAID_LOG__LEVEL": "error"})
    ran = program.run("config", "show", "--json")
    settings = {one["key"]: one for one in ran.json["settings"]}
    assert settings["buffer.window_ms"]["value"] == 250
    assert settings["buffer.window_ms"]["where"].endswith("config.yaml:2")
    assert (settings["log.level"]["from"], settings["log.level"]["where"]) == ("env", "KEEPSAID_LOG__LEVEL")
    assert settings["turns.shutdown_timeout_s"]["from"] == "default"
    assert settings["channels.github.secret"]["value"] == "**********"
    assert "very-secret" not in ran.out
    assert "warning: " in ran.err
    assert "unknown key bufer is ignored; did you mean buffer?" in ran.err


def not_sqlite(file: Path) -> None:
    file.write_bytes(b"what somebody else keeps here, at some length")


def of_another_program(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE recipe (name TEXT)")
    db.close()


def of_a_newer_keepsaid(file: Path) -> None:
    Program(file.parents[1]).run("inbox", "send", "hello")
    with sqlite3.connect(file) as db:
        db.execute("UPDATE keepsaid_schema SET version = 999")
    db.close()


@pytest.mark.parametrize(
    ("make", "code"),
    [(not_sqlite, "KS-DB-FOREIGN"), (of_another_program, "KS-DB-FOREIGN"), (of_a_newer_keepsaid, "KS-DB-NEWER")],
)
def test_a_database_that_is_not_ours(
    fresh: Program, capsys: pytest.CaptureFixture[str], make: Callable[[Path], None], code: str
) -> None:
    file = fresh.home / "data/buffer.db"
    file.parent.mkdir(parents=True)
    make(file)
    before = hashlib.sha256(file.read_bytes()).digest()
    for refused in (fresh.run("chat", "-m", "hello", code=1), inside(fresh, capsys, "inbox", "ls", code=1)):
        assert f"[{code}]" in refused.err
        assert "The file was not touched." in refused.err
    assert hashlib.sha256(file.read_bytes()).digest() == before


def test_a_damaged_database_is_found(fresh: Program) -> None:
    fresh.run("inbox", "send", "hello")
    with (fresh.home / "data/buffer.db").open("r+b") as file:
        file.seek(8_192)
        file.write(bytes(range(256)) * 32)
    assert "fail" in fresh.run("doctor", "--offline", code=6).out


def test_text_that_is_not_utf_8(fresh: Program) -> None:
    odd = "caf\udce9"
    assert fresh.run("chat", "-m", odd, "--conversation", odd, "--json").json["message"]["text"] == "caf\ufffd"
    found = fresh.run("inbox", "ls", "--conversation", odd, "--json").json["messages"]
    assert [message["conversation"] for message in found] == ["caf\ufffd"]
    assert fresh.run("inbox", "ls", "--channel", odd, "--json").json["messages"] == []
    refused = fresh.run("inbox", "requeue", found[0]["id"], "--reason", odd, code=1)
    assert "[KS-INP]" in refused.err


def test_a_file_in_place_of_the_home(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("something of mine")
    program = Program(tmp_path / "file" / "home")
    for command in (("status",), ("init", "--non-interactive")):
        refused = program.run(*command, code=1)
        assert "[KS-HOME]" in refused.err
    assert (tmp_path / "file").read_text() == "something of mine"


def test_a_port_in_use(fresh: Program) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = fresh.run("serve", "--port", port, code=1)
        assert f"port {port} of 127.0.0.1 cannot be used" in refused.err
        assert "keepsaid serve --port 0" in refused.err
        there = Program(fresh.home, {"KEEPSAID_SERVER__PORT": port})
        assert "No model is set" in there.run("chat", "-m", "hello").out


def test_forgetting_that_would_be_refused_is_refused_when_it_is_only_counted(
    fresh: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    fresh.run("memory", "add", "the kettle is blue")
    for yes in ((), ("--yes",)):
        refused = inside(fresh, capsys, "memory", "forget", "--filter", "kettle", "--undo-for", "soon", *yes, code=1)
        assert "'soon' is not a time for undo" in refused.err


def test_rules_that_are_not_there(fresh: Program, capsys: pytest.CaptureFixture[str]) -> None:
    refused = inside(fresh, capsys, "inbox", "replay", "--rules", str(fresh.home / "none.yaml"), code=4)
    assert "there is no file" in refused.err
    assert "keepsaid config path" in refused.err
