"""Files of an export: whole or not there, and what a kill left is gone with the next."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from keepsaid.services.bundles import NAMED, placed

KILLED = """
import os, signal, sys
from pathlib import Path
from keepsaid.services.bundles import placed
with placed(Path(sys.argv[1]), force=True) as out:
    out.write(b"what was said")
    out.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(target: Path) -> list[str]:
    """Killed while it writes; the names of what is there then."""
    done = subprocess.run([sys.executable, "-c", KILLED, str(target)], check=False)
    assert done.returncode == -signal.SIGKILL
    return names(target)


def names(target: Path) -> list[str]:
    return sorted(file.name for file in target.parent.iterdir())


@pytest.mark.parametrize("name", ["mine.jsonl", f"{NAMED}memory-2026-01-01T000000Z.md"])
def test_what_a_killed_export_left_is_gone_with_the_next(tmp_path: Path, name: str) -> None:
    [left] = killed(tmp_path / name)
    assert (left.startswith(f".{name}."), left.endswith(".partial")) == (True, True)
    other = tmp_path / f".{name}.partial"
    other.write_text("of somebody else")
    later = tmp_path / name.replace("2026", "2027")
    with placed(later, force=False) as out:
        out.write(b"all of it")
    assert names(later) == sorted([other.name, later.name])
    assert later.read_bytes() == b"all of it"


def test_what_is_being_written_is_left_alone(tmp_path: Path) -> None:
    target = tmp_path / "mine.jsonl"
    with placed(target, force=True) as first, placed(target, force=True) as second:
        assert len(names(target)) == 2
        first.write(b"one")
        second.write(b"two")
    assert (names(target), target.read_bytes()) == (["mine.jsonl"], b"one")
