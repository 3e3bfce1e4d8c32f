"""`keepsaid config`: settings are read, set, removed and edited, and a file that would be wrong is never written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.acceptance.program import Program

_FILE = "# mine\nbuffer:\n  window_ms: 250  # short\nlog: {level: debug}\n"


@pytest.fixture
def fresh(tmp_path: Path) -> Program:
    """A home with a config file."""
    program = Program(tmp_path / "home")
    program.configure(_FILE)
    return program


def file_of(program: Program, name: str = "config.yaml") -> str:
    return (program.home / "config" / name).read_text("utf-8")


def test_set_changes_one_line_and_keeps_the_former_file(fresh: Program) -> None:
    ran = fresh.run("config", "set", "buffer.window_ms", "300")
    assert "buffer.window_ms = 300" in ran.out
    assert file_of(fresh) == _FILE.replace("250", "300")
    assert file_of(fresh, "config.yaml.bak") == _FILE
    assert fresh.run("config", "get", "buffer.window_ms").out == "300\n"
    one = fresh.run("config", "get", "buffer.window_ms", "--json").json
    assert (one["value"], one["from"], one["where"].endswith("config.yaml:3")) == (300, "file", True)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("buffer.window_ms", "fast"), 4, 'buffer.window_ms: expected an integer, got "fast"  [KS-CFG]'),
        (("buffer.windw_ms", "5"), 2, "did you mean buffer.window_ms?"),
        (("memory.per_leg", "5"), 2, "did you mean memory.recall_candidates?"),
        (("zzz", "5"), 2, "keepsaid config show lists them"),
        (("owner.0.sender", "ann"), 2, "owner is a list and is set as a whole"),
        (("owner", "[{channel: http}]"), 4, "owner.0.sender: this key is required and not set"),
        (("owner", "[{"), 2, "neither a number, a word nor a list"),
        (("server.host", "0.0.0.0"), 4, "keepsaid config set server.token --prompt"),
        (("models.chat", "gpt"), 4, "is not one of: auto, none"),
        (("models.chat",), 2, "give either VALUE or --prompt"),
        (("log.level", "loud"), 4, "expected debug, info, warning or error"),
    ],
)
def test_a_value_that_cannot_be_used_is_not_written(
    fresh: Program, arguments: tuple[str, ...], code: int, told: str
) -> None:
    ran = fresh.run("config", "set", *arguments, code=code)
    assert told in ran.err
    assert file_of(fresh) == _FILE
    assert not (fresh.home / "config/config.yaml.bak").exists()


def test_a_secret_is_asked_for_and_never_shown(fresh: Program) -> None:
    ran = fresh.run("config", "set", "channels.github.secret", "--prompt", given="hunter2\n")
    assert "hunter2" in file_of(fresh)
    shown = fresh.run("config", "get", "channels.github.secret")
    assert "hunter2" not in ran.out + ran.err + shown.out
    assert shown.out == "**********\n"
    warned = fresh.run("config", "set", "server.token", "hunter3")
    assert "history of your shell" in warned.err
    assert "hunter3" not in warned.out + warned.err


def test_unset_goes_back_to_the_default(fresh: Program) -> None:
    fresh.run("config", "unset", "buffer.window_ms")
    assert file_of(fresh) == "# mine\nlog: {level: debug}\n"
    assert fresh.run("config", "get", "buffer.window_ms").out == "500\n"
    assert "does not set" in fresh.run("config", "unset", "buffer.window_ms").out
    assert "did you mean buffer" in fresh.run("config", "unset", "bufer", code=2).err


def test_a_file_whose_last_setting_is_unset_is_not_taken_for_a_lost_one(fresh: Program) -> None:
    """An empty file is what a lost disk cache leaves, and every command warns of one."""
    fresh.configure("log: {level: debug}\n")
    fresh.run("config", "unset", "log.level")
    assert file_of(fresh) == "# Every setting has its default.\n"
    assert fresh.run("config", "validate").err == ""


def test_diff_shows_what_file_and_environment_set(fresh: Program) -> None:
    program = Program(fresh.home, {"KEEPSAID_AGENT": "second"})
    found = program.run("config", "diff", "--json").json["settings"]
    assert {one["key"]: one["from"] for one in found} == {
        "agent": "env", "buffer.window_ms": "file", "log.level": "file",
    }  # fmt: skip
    assert "KEEPSAID_AGENT" in program.run("config", "set", "agent", "third").err


def test_get_refuses_what_is_no_single_setting(fresh: Program) -> None:
    assert "keepsaid config show buffer" in fresh.run("config", "get", "buffer", code=2).err
    assert "did you mean buffer.window_ms?" in fresh.run("config", "get", "buffer.windowms", code=2).err
    assert "is not set" in fresh.run("config", "get", "channels.forum.priority", code=2).err


def edited(program: Program, text: str, code: int = 0) -> str:
    """Run `config edit` with an editor that writes `text`; returns what was said."""
    (program.home / "typed").write_text(text, "utf-8")
    editing = Program(program.home, {"VISUAL": f"cp '{program.home / 'typed'}'", "EDITOR": "false"})
    ran = editing.run("config", "edit", code=code)
    return ran.out + ran.err


def test_edit_writes_a_valid_text_only(fresh: Program) -> None:
    said = edited(fresh, "buffer: {window_ms: fast}\nagent: [a]\n", code=4)
    assert "buffer.window_ms: expected an integer" in said
    assert "agent: expected text" in said
    assert "config.edit.yaml:2" in said
    assert file_of(fresh) == _FILE
    assert file_of(fresh, "config.edit.yaml") == "buffer: {window_ms: fast}\nagent: [a]\n"
    said = edited(fresh, "agent: second\n")
    assert "continuing with" in said
    assert (file_of(fresh), file_of(fresh, "config.yaml.bak")) == ("agent: second\n", _FILE)
    assert not (fresh.home / "config/config.edit.yaml").exists()
    assert "nothing changed" in edited(fresh, "agent: second\n")


@pytest.mark.parametrize(("editor", "told"), [("false", "ended with exit code 1"), ("no-such-editor", "be started")])
def test_edit_changes_nothing_if_the_editor_fails(fresh: Program, editor: str, told: str) -> None:
    ran = Program(fresh.home, {"VISUAL": "", "EDITOR": editor}).run("config", "edit", code=1)
    assert told in ran.err
    assert file_of(fresh) == _FILE
    assert not (fresh.home / "config/config.edit.yaml").exists()


def test_edit_mends_a_file_that_cannot_be_read(fresh: Program) -> None:
    fresh.configure("buffer:\n\twindow_ms: 5\n")
    refused = fresh.run("status", code=4).err
    assert "found a tab; YAML takes spaces only (line 2, column 1)" in refused
    assert "try   keepsaid config edit" in refused
    edited(fresh, _FILE)
    fresh.run("config", "validate")


def test_the_schema_is_json_schema(fresh: Program) -> None:
    made = json.loads(fresh.run("config", "schema").out)
    assert made["properties"].keys() >= {"agent", "buffer", "channels"}
    assert fresh.run("config", "schema", "--json").json["schema"] == made
