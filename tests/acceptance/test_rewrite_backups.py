"""`memory forget --rewrite-backups`: what was forgotten is gone from the backups of a home, and they still restore."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside

Capture = pytest.CaptureFixture[str]
_WORD = "quovadisium"
_KEPT = "the train leaves at nine"


def holds(folder: Path) -> list[str]:
    """Files below a folder that hold the word."""
    found = (file for file in folder.rglob("*") if file.is_file() and _WORD.encode() in file.read_bytes().lower())
    return sorted(file.name for file in found)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "home")


@pytest.fixture
def backup(program: Program, capsys: Capture, tmp_path: Path) -> Path:
    """A backup of a home that knows two things."""
    for text in (f"my locker code is {_WORD}", _KEPT):
        inside(program, capsys, "memory", "add", text)
    made = tmp_path / "backup"
    inside(program, capsys, "data", "backup", str(made))
    assert holds(made) == ["memory.db"]
    return made


def test_a_backup_forgets_with_its_home_and_still_restores(
    program: Program, capsys: Capture, backup: Path, tmp_path: Path
) -> None:
    others = ["backup.former", "backup.restored", "backup.rewritten"]  # of the person, whatever they are
    for name in others:
        (tmp_path / name).mkdir()
    done = inside(program, capsys, "memory", "forget", "--filter", _WORD, "--yes", "--rewrite-backups", "--json")
    assert done.json["backups"] == []
    assert f"rewritten: {backup}" in done.err
    assert holds(backup) == []
    assert sorted(path.name for path in tmp_path.glob("*backup*")) == ["backup", *others]
    receipt = inside(program, capsys, "memory", "forgotten", done.json["id"], "--json").json["forgetting"]
    assert receipt["backups"] == []
    inside(program, capsys, "data", "restore", str(backup), "--to", str(tmp_path / "again"))
    found = inside(program, capsys, "--home", str(tmp_path / "again"), "memory", "ls", "--json").json["memories"]
    assert [one["text"] for one in found] == [_KEPT]


def test_alone_it_rewrites_what_an_earlier_forgetting_left(program: Program, capsys: Capture, backup: Path) -> None:
    left = inside(program, capsys, "memory", "forget", "--filter", _WORD, "--yes", "--json").json
    assert left["backups"] == [str(backup)]
    assert holds(backup) == ["memory.db"]
    assert f"rewritten: {backup}" in inside(program, capsys, "memory", "forget", "--rewrite-backups").err
    assert holds(backup) == []
    assert inside(program, capsys, "memory", "forget", "--rewrite-backups").err == ""


def test_a_damaged_backup_is_named_and_left(program: Program, capsys: Capture, backup: Path) -> None:
    (backup / "buffer.db").write_bytes(b"damaged")
    done = inside(program, capsys, "memory", "forget", "--filter", _WORD, "--yes", "--rewrite-backups", "--json")
    assert done.json["backups"] == [str(backup)]
    assert f"not rewritten: {backup}" in done.err
    assert f"a copy from before may still hold it: {backup}" in done.err
    assert holds(backup) == ["memory.db"]


def test_a_rewriting_that_was_killed_between_its_two_names_goes_on(
    program: Program, capsys: Capture, backup: Path, tmp_path: Path
) -> None:
    inside(program, capsys, "memory", "forget", "--filter", _WORD, "--yes")
    former = backup.rename(backup.with_name(".keepsaid-rewriting-backup.former"))
    (tmp_path / ".keepsaid-rewriting-backup.rewritten").mkdir()
    with (program.home / "state" / "backups.jsonl").open("a") as noted:
        noted.write(f'{{"path": "{former}", "at": 0}}\n')
    assert "rewritten: " in inside(program, capsys, "memory", "forget", "--rewrite-backups").err
    assert holds(tmp_path / "backup") == []
    assert [path.name for path in tmp_path.glob("*backup*")] == ["backup"]


def test_a_backup_from_after_a_forgetting_is_not_named(program: Program, capsys: Capture, tmp_path: Path) -> None:
    inside(program, capsys, "memory", "add", f"my locker code is {_WORD}")
    done = inside(program, capsys, "memory", "forget", "--filter", _WORD, "--yes", "--json").json
    inside(program, capsys, "data", "backup", str(tmp_path / "later"))
    assert inside(program, capsys, "memory", "forgotten", done["id"], "--json").json["forgetting"]["backups"] == []
