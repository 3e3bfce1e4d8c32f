"""Folders of a backup and of a restored home: what a kill left of one, a copy of everything, is gone with the next."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from keepsaid.interfaces.cli.data import whole
from keepsaid.services.bundles import NAMED, clear

KILLED = """
import os, signal, sys
from pathlib import Path
from keepsaid.interfaces.cli.data import whole
with whole(Path(sys.argv[1])) as partial:
    (partial / "buffer.db").write_text("what was said")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(made: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(made)], check=False)
    assert done.returncode == -signal.SIGKILL


def left(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


@pytest.mark.parametrize(("first", "then"), [("mine", "mine"), (f"{NAMED}2026-01-01", f"{NAMED}2027-01-01")])
def test_what_a_killed_backup_left_is_gone_with_the_next(tmp_path: Path, first: str, then: str) -> None:
    mine = tmp_path / ".mine.partial"
    mine.mkdir()
    killed(tmp_path / first)
    assert len(left(tmp_path)) == 1
    with whole(tmp_path / then) as partial:
        (partial / "buffer.db").write_text("all of it")
    assert left(tmp_path) == [f"{then}/buffer.db"]
    assert mine.is_dir(), "it is not ours"


def test_a_folder_that_was_empty_is_so_again_before_it_is_filled(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    killed(home)
    assert len(left(home)) == 1
    clear(home, tmp_path, home)
    assert list(home.iterdir()) == []


def test_what_is_being_filled_is_left_alone(tmp_path: Path) -> None:
    with whole(tmp_path / f"{NAMED}one") as partial:
        (partial / "buffer.db").write_text("one")
        with whole(tmp_path / f"{NAMED}two") as other:
            (other / "buffer.db").write_text("two")
        assert partial.is_dir()
    assert left(tmp_path) == [f"{NAMED}one/buffer.db", f"{NAMED}two/buffer.db"]
