"""The instance lock: no second process beside the first, whatever is done to the files of the first."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from keepsaid.adapters.system import lock
from keepsaid.adapters.system.lock import FileLock, holder, identity_of
from keepsaid.errors import HomeBusy, StoreGone

HOLD = """
import sys
from pathlib import Path
from keepsaid.adapters.system.lock import FileLock
lock = FileLock(Path(sys.argv[1]), [Path(path) for path in sys.argv[2:]])
lock.acquire()
print("held", flush=True)
sys.stdin.readline()
"""


@contextmanager
def held_elsewhere(*paths: Path | str) -> Iterator[int]:
    """A process that holds the lock of a file, and is told of the other paths; its id."""
    command = [sys.executable, "-c", HOLD, *map(str, paths)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process.pid
        finally:
            process.kill()


@pytest.fixture
def lock_file(tmp_path: Path) -> Path:
    """Where the lock of a home stands."""
    (tmp_path / "home" / "run").mkdir(parents=True)
    return tmp_path / "home" / "run" / "lock"


def test_a_chat_that_holds_a_home_is_called_one(lock_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lock_file.parent)
    with held_elsewhere(lock_file, "chat"):
        with pytest.raises(HomeBusy) as busy:
            FileLock(lock_file).acquire()
        is_told = sys.platform == "linux"
        assert busy.value.what.endswith(": a chat") is is_told
        assert ("quit that chat" in busy.value.hint) is is_told


def test_a_held_lock_names_its_process_until_it_dies(lock_file: Path) -> None:
    with held_elsewhere(lock_file) as pid:
        assert holder(lock_file) == pid
        with pytest.raises(HomeBusy, match=f"process {pid} "):
            FileLock(lock_file).acquire()
    assert holder(lock_file) is None
    lock = FileLock(lock_file)
    lock.acquire()
    assert holder(lock_file) == os.getpid()
    lock.release()
    assert holder(lock_file) is None


def test_a_deleted_lock_file_lets_nobody_in(lock_file: Path) -> None:
    with held_elsewhere(lock_file):
        lock_file.unlink()
        with pytest.raises(HomeBusy):
            FileLock(lock_file).acquire()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who listens on a socket")
def test_a_home_made_anew_is_busy_while_the_process_of_the_deleted_one_lives(lock_file: Path) -> None:
    with held_elsewhere(lock_file) as pid:
        shutil.rmtree(lock_file.parent.parent)
        lock_file.parent.mkdir(parents=True)
        assert holder(lock_file) == pid
        with pytest.raises(HomeBusy, match=f"process {pid} "):
            FileLock(lock_file).acquire()


def test_a_renamed_home_without_its_lock_file_is_busy(lock_file: Path) -> None:
    home = lock_file.parent.parent
    with held_elsewhere(lock_file):
        lock_file.unlink()
        home.rename(home.with_name("moved"))
        with pytest.raises(HomeBusy):
            FileLock(home.with_name("moved") / "run" / "lock").acquire()


def test_two_homes_do_not_use_the_same_store(lock_file: Path, tmp_path: Path) -> None:
    store = tmp_path / "shared.db"
    (tmp_path / "other").mkdir()
    other = FileLock(tmp_path / "other" / "lock", [store])
    with held_elsewhere(lock_file, store), pytest.raises(HomeBusy):
        other.acquire()
    other.acquire()
    other.release()


def test_a_lock_that_was_refused_holds_nothing(lock_file: Path, tmp_path: Path) -> None:
    free, taken = tmp_path / "free.db", tmp_path / "taken.db"
    with held_elsewhere(lock_file, taken), pytest.raises(HomeBusy):
        FileLock(tmp_path / "lock", [free, taken]).acquire()
    with held_elsewhere(tmp_path / "lock", free):
        assert holder(tmp_path / "lock") is not None


def unlink(path: Path) -> None:
    path.unlink()


def replace(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.touch()


def move_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))


@pytest.mark.parametrize("harm", [unlink, replace, move_folder])
def test_a_lost_lock_file_is_noticed(lock_file: Path, harm: Callable[[Path], None]) -> None:
    lock = FileLock(lock_file)
    lock.acquire()
    lock.check()
    harm(lock_file)
    with pytest.raises(StoreGone, match="deleted, moved or replaced"):
        lock.check()
    lock.release()


def test_a_name_is_held_once_and_then_free_again(tmp_path: Path) -> None:
    name = lock.name_of(tmp_path)
    for take in (lock.take, lambda named: lock.take_file(named, tmp_path)):
        release = take(name)
        with pytest.raises(lock.NameTaken) as taken:
            take(name)
        assert taken.value.pid == os.getpid()
        release()
        take(name)()


def test_every_spelling_of_a_path_has_one_name(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert lock.name_of(tmp_path / "link") == lock.name_of(tmp_path / "there")
    assert lock.name_of(tmp_path / "there" / ".." / "there") == lock.name_of(tmp_path / "there")
    assert lock.name_of(tmp_path) != lock.name_of(tmp_path / "there")


def test_a_lock_file_has_an_identity_of_its_own(tmp_path: Path) -> None:
    """However often it is asked; a copy is another file."""
    one, two = tmp_path / "one", tmp_path / "two"
    for file in (one, two):
        file.write_bytes(b"")
    assert identity_of(one) == identity_of(one)
    assert identity_of(one) != identity_of(two)
