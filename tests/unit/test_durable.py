"""Durable files: what is reported as written is synced, the file before its name and the name before the report."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from keepsaid.config import load
from keepsaid.config.home import append_line, put_in_place, sync_tree, write_file
from keepsaid.interfaces.cli.data import whole
from keepsaid.interfaces.cli.program import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the path of an open file is asked of Linux")


@contextmanager
def watched() -> Iterator[list[str]]:
    """The paths of all that is synced in the block, as they were then, and `-> NAME` for each new name."""
    seen: list[str] = []

    def watch(frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call" and called is os.fsync:
            seen.append(str(Path(f"/proc/self/fd/{frame.f_locals['number']}").readlink()))
        if event == "c_call" and called in (os.replace, os.rename):
            seen.append(f"-> {frame.f_locals['target']}")

    sys.setprofile(watch)
    try:
        yield seen
    finally:
        sys.setprofile(None)


def test_a_file_is_synced_before_it_has_its_name_and_the_name_after_it(tmp_path: Path) -> None:
    file = tmp_path / "one.txt"
    with watched() as seen:
        write_file(file, "text")
    assert seen == [f"{file}.partial", f"-> {file}", str(tmp_path)]
    assert (file.read_text("utf-8"), file.stat().st_mode & 0o777) == ("text", 0o600)


def test_a_copy_is_synced_before_it_takes_its_place(tmp_path: Path) -> None:
    (tmp_path / "partial").write_text("x", "utf-8")
    with watched() as seen:
        put_in_place(tmp_path / "partial", tmp_path / "whole")
    assert seen == [str(tmp_path / "partial"), f"-> {tmp_path / 'whole'}", str(tmp_path)]


def test_a_line_is_synced(tmp_path: Path) -> None:
    with watched() as seen:
        append_line(tmp_path / "lines", "one")
        append_line(tmp_path / "lines", "two")
    assert seen == [str(tmp_path / "lines"), str(tmp_path), str(tmp_path / "lines")]
    assert (tmp_path / "lines").read_text("utf-8") == "one\ntwo\n"


def test_a_folder_is_synced_with_all_that_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "file").touch()
    with watched() as seen:
        sync_tree(tmp_path)
    assert seen == [str(tmp_path / "in" / "file"), str(tmp_path / "in"), str(tmp_path)]


def test_a_folder_that_takes_its_place_is_on_the_disk(tmp_path: Path) -> None:
    made = tmp_path / "made"
    with watched() as seen, whole(made) as partial:
        (partial / "file").touch()
    assert [Path(one).name for one in seen if not one.startswith("->")] == ["file", Path(seen[1]).name, tmp_path.name]


def test_what_a_backup_and_a_restore_report_is_synced(tmp_path: Path) -> None:
    home, made, to = tmp_path / "home", tmp_path / "made", tmp_path / "to"
    assert run(["--home", str(home), "inbox", "send", "keep this"]) == 0
    with watched() as seen:
        assert run(["--home", str(home), "data", "backup", str(made)]) == 0
        assert run(["--home", str(home), "data", "restore", str(made), "--to", str(to)]) == 0
    synced = {Path(path).name for path in seen}
    files = [file for folder in (made, to) for file in folder.rglob("*") if file.is_file()]
    assert {"manifest.json", "buffer.db", "memory.db"} <= {file.name for file in files}
    logs = {f"{store}.db-{kind}" for store in ("buffer", "memory") for kind in ("shm", "wal")}
    assert {file.name for file in files} <= synced | logs
    assert str(tmp_path) in seen


def test_an_empty_config_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.touch()
    _, warnings = load(file)
    assert [warning.partition(":")[0] for warning in warnings] == [f"{file} is empty"]
    file.write_text("# nothing yet\n", "utf-8")
    assert load(file)[1] == []
