"""Stores copied back into their home from a backup: what was forgotten since is forgotten again before any read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside
from tests.acceptance.test_cli_forget import found, residue, say, until_remembered

_SECRET = "My locker code is Zebraquix7741 at the Quovadisium gym"
_KEPT = "The dentist is in Braga on Friday"
_STORES = ("buffer.db", "memory.db")


def put_back(program: Program, backup: Path) -> None:
    """Copy both stores of a backup over those of the home, as a person would."""
    for name in _STORES:
        shutil.copy(backup / name, program.home / "data" / name)
    program.run("data", "accept-loss", "--yes")


@pytest.fixture
def program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Program:
    """A home in which something was forgotten, with the stores of an older backup put in place."""
    program = Program(tmp_path / "home")
    with program.serving() as server:
        say(server, _SECRET)
        for text in (f"Note: {_SECRET}", _KEPT):
            inside(program, capsys, "memory", "add", text, "--kind", "fact")
        until_remembered(program, capsys, "locker code", _SECRET)
        inside(program, capsys, "data", "backup", str(tmp_path / "backup"))
        inside(program, capsys, "memory", "forget", "--filter", "quovadisium", "--yes")
        inside(program, capsys, "memory", "forgotten", "--wait")
    assert residue(program.home) == []
    put_back(program, tmp_path / "backup")
    assert residue(program.home), "the backup holds it"
    return program


def test_a_start_forgets_again(program: Program, capsys: pytest.CaptureFixture[str]) -> None:
    with program.serving():
        inside(program, capsys, "memory", "forgotten", "--wait")
        assert found(program, capsys, "locker code gym") == []
        assert [one["text"] for one in found(program, capsys, "dentist")] == [_KEPT]
    assert residue(program.home) == []


@pytest.mark.parametrize(
    "command",
    [
        ("memory", "search", "locker code gym", "--json"),
        ("memory", "ls", "--json"),
        ("inbox", "ls", "--json"),
        ("status", "--json"),
        ("data", "export", "FILE"),
        ("data", "backup", "FILE"),
    ],
)
def test_a_command_that_reads_forgets_again_first(program: Program, tmp_path: Path, command: tuple[str, ...]) -> None:
    made = tmp_path / "made" / "out"
    made.parent.mkdir()
    ran = program.run(*(str(made) if word == "FILE" else word for word in command))
    assert "uovadisium" not in ran.out + ran.err
    assert "is forgotten again" in ran.err
    assert residue(program.home) == []
    assert residue(made.parent) == []
    assert "is forgotten again" not in program.run("memory", "ls").err, "once"


def test_an_import_does_not_bring_it_back(program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other, bundle = Program(tmp_path / "other"), tmp_path / "all.jsonl"
    shutil.copytree(tmp_path / "backup", other.home / "data")
    inside(other, capsys, "data", "export", str(bundle))
    assert b"Quovadisium" in bundle.read_bytes()
    inside(program, capsys, "data", "import", str(bundle))
    assert found(program, capsys, "locker code gym") == []
    assert residue(program.home) == []


def test_a_restored_home_is_read_only_after_it_forgot(tmp_path: Path, program: Program) -> None:
    restored = Program(tmp_path / "restored")
    program.run("data", "restore", str(tmp_path / "backup"), "--to", str(restored.home))
    assert residue(restored.home)
    assert "Quovadisium" not in restored.run("memory", "search", "locker code gym").out
    assert residue(restored.home) == []


def test_the_tombstones_alone_are_enough_for_a_restore(tmp_path: Path, program: Program) -> None:
    for name in _STORES:
        (program.home / "data" / name).unlink()
    restored = Program(tmp_path / "restored")
    program.run("data", "restore", str(tmp_path / "backup"), "--to", str(restored.home))
    assert "Quovadisium" not in restored.run("memory", "search", "locker code gym").out
    assert residue(restored.home) == []


def test_what_was_undone_is_not_forgotten_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Program(tmp_path / "home")
    inside(program, capsys, "memory", "add", _SECRET, "--kind", "fact")
    inside(program, capsys, "data", "backup", str(tmp_path / "backup"))
    given = ("memory", "forget", "--filter", "quovadisium", "--yes", "--undo-for", "1d", "--json")
    receipt = inside(program, capsys, *given).json
    hashes = program.home / "data" / "forgotten.hashes"
    assert hashes.read_bytes()
    assert hashes.stat().st_mode & 0o777 == 0o600
    inside(program, capsys, "memory", "restore", receipt["id"])
    assert hashes.read_bytes() == b""
    assert [one["text"] for one in found(program, capsys, "locker code")] == [_SECRET]
    put_back(program, tmp_path / "backup")
    assert [one["text"] for one in found(program, capsys, "locker code")] == [_SECRET]
    with program.serving():
        assert [one["text"] for one in found(program, capsys, "locker code")] == [_SECRET]


def test_a_home_that_cannot_be_written_is_not_read(program: Program) -> None:
    lock = program.home / "run" / "lock"
    lock.unlink(missing_ok=True)
    lock.mkdir(parents=True)
    ran = program.run("memory", "search", "locker code gym", code=None)
    assert ran.code != 0
    assert "uovadisium" not in ran.out + ran.err
    assert "older copy" in ran.err
