"""A home that cannot be written: a read-only copy, or a disk without a byte left. What is stored can still be read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.many import run_many
from tests.acceptance.program import Program

_READS = (
    ("status",),
    ("memory", "search", "kettle"),
    ("memory", "ls"),
    ("why",),
    ("inbox", "ls"),
    ("data", "logs"),
    ("config", "show"),
    ("doctor", "--offline"),
    ("doctor", "--offline", "--deep"),
)
_WRITES = (
    ("memory", "add", "hello"),
    ("inbox", "send", "hello"),
    ("config", "set", "log.level", "debug"),
    ("config", "edit"),
    ("init", "--non-interactive"),
    ("serve", "--port", "0"),
)


def found(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Program]:
    """A home with one message and its answer, which ended well; it can be deleted afterwards."""
    program = Program(tmp_path / "home", {"KEEPSAID_MODELS__CHAT": "none"})
    program.run("chat", "-m", "the kettle is blue")
    yield program
    for folder in (program.home, *program.home.rglob("*")):
        folder.chmod(0o700)


@pytest.mark.skipif(os.getuid() == 0 and sys.platform != "linux", reason="modes of files do not hold for root")
@pytest.mark.parametrize("log", ["none", "empty"])
def test_a_read_only_home_is_read_and_never_written(stored: Program, log: str) -> None:
    if log == "empty":
        stored.run("status")  # a reader leaves the files of the log
    before = found(stored.home / "data")
    assert ("buffer.db-wal" in before) == (log == "empty")
    for path in (*stored.home.rglob("*"), stored.home):
        path.chmod(0o500 if path.is_dir() else 0o400)
    ended = run_many(stored, *_READS, *_WRITES)
    reads, writes = ended[: len(_READS)], ended[len(_READS) :]
    assert [(ran.code, ran.err.count("error")) for ran in reads] == [(0, 0)] * len(_READS), reads
    assert "kettle is blue" in reads[1].out
    assert "All is well." in reads[7].out
    assert [ran.code for ran in writes] == [1] * len(_WRITES)
    for ran in writes:
        assert f"this home is read-only: {stored.home / 'config'} cannot be written  [KS-HOME]" in ran.err
        assert "Commands that only read still work." in ran.err
    assert found(stored.home / "data") == before


def own_disk(folder: Path) -> tuple[str, ...]:
    """The start of a command that has a small disk of its own at `folder`."""
    if (unshare := shutil.which("unshare")) is None:
        pytest.skip("unshare is not installed")
    flags = ("-m",) if os.getuid() == 0 else ("-r", "-m")
    front = (unshare, *flags, "sh", "-c", f'mount -t tmpfs -o size=4m tmpfs "{folder}" && exec "$@"', "sh")
    if subprocess.run([*front, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    return front


def test_a_disk_without_a_byte_left_is_read_and_says_so(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    program = Program(disk / "home", {"KEEPSAID_MODELS__CHAT": "none", "KEEPSAID_BUFFER__MIN_FREE_DISK_MB": "0"})
    elsewhere = tmp_path / "backup"
    refused = (("memory", "add", "hello"), ("inbox", "send", "hello"), ("serve", "--port", "0"))
    ended = run_many(
        program,
        ("chat", "-m", "the kettle is blue"),
        ("fill",),
        ("memory", "search", "kettle"),
        ("doctor", "--offline"),
        *refused,
        ("data", "backup", str(disk / "backup")),
        ("data", "backup", str(elsewhere)),
        front=own_disk(disk),
        fill="fill",
    )
    said, search, doctor, *writes, backup, other = ended
    assert (said.code, search.code) == (0, 0), (said, search)
    assert "kettle is blue" in search.out
    assert "passes its integrity check" in doctor.out
    assert "fix: free some space" in doctor.out
    assert "fix: keepsaid doctor" not in doctor.out
    for ran in writes:
        assert ran.code == 1
        assert "error: the disk is full: no space left for" in ran.err
        assert "[KS-DB-FULL]" in ran.err
        assert "try   free some space" in ran.err
    for ran in (backup, other):
        assert ran.code == 1
        assert "No space left" in ran.err or "the disk is full" in ran.err
        assert "free some space" in ran.err
    assert not elsewhere.exists()
