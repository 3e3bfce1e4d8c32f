"""The frozen disk: a writer on a real ext4 is stopped, its disk is copied as it stands, and the copy is judged.

What the kernel had not written is not in the copy, as after a power cut. Needs root, loop devices and mkfs.ext4.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic

import pytest
from tests.figures import Figures
from tests.power.frozen_writer import __file__ as writer_file
from tests.power.frozen_writer import message

from keepsaid_testkit.power.book import Book
from keepsaid_testkit.power.judge import Finding, judge

CUTS = 30
MEGABYTES = 64
RAM = Path("/dev/shm")
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.soak


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=60)


@contextmanager
def mounted(image: Path, place: Path) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    run("mount", "-o", "loop", image, place)
    try:
        yield place
    finally:
        run("umount", place)


@pytest.fixture
def disk() -> Iterator[Path]:
    """A folder on RAM with an empty ext4 in it."""
    if os.geteuid() != 0 or shutil.which("mkfs.ext4") is None or not RAM.is_dir():
        pytest.skip("the frozen disk needs root, mkfs.ext4 and a file system on RAM")
    with TemporaryDirectory(dir=RAM) as name:
        folder = Path(name)
        with (folder / "disk").open("wb") as image:
            image.truncate(MEGABYTES << 20)
        run("mkfs.ext4", "-q", "-F", folder / "disk")
        try:
            with mounted(folder / "disk", folder / "mount"):
                pass
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no loop device can be mounted here ({error.stderr!r})")
        yield folder


def frozen(folder: Path, mode: str, seconds: float) -> list[int]:
    """Write for so long, then freeze the disk into `copy`; returns the numbers acknowledged."""
    ledger = folder / "ledger"
    ledger.write_text("")
    with mounted(folder / "disk", folder / "mount") as place:
        command = [sys.executable, writer_file, str(place / "buffer.db"), str(ledger), mode, "1"]
        writer = subprocess.Popen(command, env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"})
        try:
            wait_for(ledger, writer, seconds)
            writer.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, writer.pid, os.WSTOPPED)
            shutil.copyfile(folder / "disk", folder / "copy")
        finally:
            writer.kill()
            writer.wait(10)
        for left in place.glob("buffer.db*"):
            left.unlink()
    return [int(line) for line in ledger.read_text().splitlines()]


def wait_for(ledger: Path, writer: subprocess.Popen[bytes], seconds: float) -> None:
    """Until the writer has acknowledged for so long."""
    end = monotonic() + 30
    while not ledger.stat().st_size and monotonic() < end:
        keeps_on(writer, 0.01)
    keeps_on(writer, seconds)


def keeps_on(writer: subprocess.Popen[bytes], seconds: float) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        writer.wait(seconds)


async def judged(folder: Path, numbers: list[int]) -> Finding:
    sent = {number: message(number) for number in range(1, max(numbers) + 1_000)}
    book = Book(sent, [("message", number) for number in numbers], last_id=len(sent) + 1)
    with mounted(folder / "copy", folder / "mount") as place:
        return await judge(place / "buffer.db", book)


async def test_a_frozen_disk_has_all_that_was_acknowledged(disk: Path, figures: Figures) -> None:
    chance, acknowledged = Random(1), 0
    for _ in range(CUTS):
        numbers = frozen(disk, "full", chance.uniform(0.1, 1.0))
        finding = await judged(disk, numbers)
        assert (finding.lost, finding.corrupt) == ((), ())
        acknowledged += len(numbers)
    figures(cuts=CUTS, acknowledged=acknowledged, lost=0)
    assert acknowledged > CUTS * 10


async def test_a_frozen_disk_lacks_what_was_not_synced(disk: Path, figures: Figures) -> None:
    chance = Random(2)
    for cut in range(1, CUTS + 1):
        finding = await judged(disk, frozen(disk, "normal", chance.uniform(0.1, 1.0)))
        assert finding.corrupt == ()
        if finding.lost:
            figures(cuts=cut, lost=len(finding.lost))
            return
    pytest.fail("nothing was lost")
