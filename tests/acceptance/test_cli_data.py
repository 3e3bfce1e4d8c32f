"""`keepsaid data`: a backup and a restore touch nothing of what else is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside


@pytest.fixture
def stored(tmp_path: Path) -> Program:
    """A home with a message in it."""
    program = Program(tmp_path / "home")
    program.run("inbox", "send", "keep this")
    return program


def test_a_neighbour_with_a_name_like_ours_stays(
    stored: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.partial"
    mine.mkdir()
    (mine / "thesis").write_text("of years", "utf-8")
    inside(stored, capsys, "data", "backup", str(tmp_path / "mine"))
    assert (mine / "thesis").read_text("utf-8") == "of years"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["home", "mine", "mine.partial"]


def test_restored_into_the_directory_one_stands_in(
    stored: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inside(stored, capsys, "data", "backup", str(tmp_path / "made"))
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    said = inside(stored, capsys, "data", "restore", str(tmp_path / "made"), "--to", ".").err
    assert f"keepsaid --home {place} status" in said
    assert Path.cwd() == place
    assert sorted(one.name for one in place.iterdir()) == ["cache", "config", "data", "run", "state"]
    assert inside(Program(place), capsys, "status", "--json").json["messages"] == 1


def test_a_link_that_leads_to_nothing_is_left_out(
    stored: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").write_text("log: {level: debug}\n", "utf-8")
    (stored.home / "config").mkdir(exist_ok=True)
    (stored.home / "config/config.yaml").symlink_to(tmp_path / "elsewhere")
    (stored.home / "config/gone").symlink_to(tmp_path / "nowhere")
    said = inside(stored, capsys, "data", "backup", str(tmp_path / "made")).err
    assert f"left out: {stored.home / 'config/gone'} leads to nothing" in said
    copied = tmp_path / "made/config/config.yaml"
    assert copied.read_text("utf-8") == "log: {level: debug}\n"
    assert not copied.is_symlink()


def test_a_file_that_cannot_be_copied_is_named(
    stored: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stored.home / "config").mkdir(exist_ok=True)
    os.mkfifo(stored.home / "config/pipe")
    refused = inside(stored, capsys, "data", "backup", str(tmp_path / "made"), code=1).err
    assert f"{stored.home / 'config/pipe'} cannot be backed up" in refused
    assert sorted(one.name for one in tmp_path.iterdir()) == ["home"]


def test_a_path_that_is_not_text(stored: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = os.fsdecode(bytes(tmp_path) + b"/caf\xe9")
    assert "[KS-HOME]" in inside(stored, capsys, "data", "backup", name, code=1).err
    assert "[KS-HOME]" in inside(Program(Path(name)), capsys, "status", code=1).err
    assert sorted(one.name for one in tmp_path.iterdir()) == ["home"]
