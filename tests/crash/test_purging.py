"""Killed while what was kept aside is deleted, the next start ends it: no file of the home holds a byte of it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw
from tests.crash.test_forgetting import told

from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid_testkit.crash.process import environ

_SIDES = ("before", "after")
DEATHS = (
    *((f"commit.DropMemoryUndo.{side}", 1) for side in _SIDES),
    *((f"commit.{name}.{side}", count) for name in ("DropUndo", "EmptyLog") for count in (1, 2) for side in _SIDES),
)
"""Every step: deleted in both stores, both logs emptied, and that written down."""

_EMPTIED = {("commit.EmptyLog.after", 2), ("commit.DropUndo.before", 2), ("commit.DropUndo.after", 2)}
_IMAGE_BYTES = 24
_LOOK_MS = 20.0
_WITHIN_S = 240.0


async def aside(home: Path) -> list[bytes]:
    """Make a home that forgot something which cannot be undone any more; the ends of what it keeps aside."""
    await told(Home.at(home), ["The code of the locker is zebraquix7741 and nobody knows it"])
    async with opened(Home.at(home), Config()) as instance:
        begun = await instance.services.forgetting.forget_selected(ForgetSelector(text="zebraquix7741"), "owner", 1)
        assert begun is not None
        assert begun.state == "done"
    return [image for name in ("buffer", "memory") for image in images(home / "data" / f"{name}.db", name)]


def images(path: Path, name: str) -> list[bytes]:
    """The ends of what one store keeps aside."""
    table = {"buffer": "forgotten_aside", "memory": "memory_aside"}[name]
    with closing(apsw.Connection(str(path))) as db:
        found = [bytes(row[0]) for row in db.execute(f"SELECT images FROM {table}")]
    assert found, f"{name} keeps something aside"
    return [image[-_IMAGE_BYTES:] for image in found]


def held(home: Path, words: Sequence[bytes]) -> set[str]:
    """The files of a home that hold any of it."""
    files = [(file.name, file.read_bytes()) for file in home.rglob("*") if file.is_file()]
    return {name for name, raw in files if any(word in raw for word in words)}


async def purged(home: Path) -> None:
    """A new runtime ends what was begun."""
    async with opened(Home.at(home), Config()) as instance, asyncio.timeout(_WITHIN_S):
        await instance.start()
        while await instance.operations.forgettings.undoable():
            await instance.clock.wait(asyncio.Event(), _LOOK_MS)


async def test_killed_while_it_deletes_the_next_start_leaves_no_byte(tmp_path: Path) -> None:
    made = tmp_path / "made"
    words = await aside(made)
    homes = [Path(shutil.copytree(made, tmp_path / f"home{n}")) for n in range(len(DEATHS))]
    lives = [f"{home} {point} {count}" for home, (point, count) in zip(homes, DEATHS, strict=True)]
    process = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-m", "tests.crash.purging"],
        input="\n".join(lives), env=environ(), capture_output=True, text=True, timeout=_WITHIN_S, check=True,
    )  # fmt: skip
    assert dict(zip(DEATHS, process.stdout.split(), strict=True)) == dict.fromkeys(DEATHS, "True")
    left = {death: held(home, words) for home, death in zip(homes, DEATHS, strict=True)}
    assert {death for death, files in left.items() if not files} == _EMPTIED, "the logs hold it until they are empty"
    for home in homes:
        await purged(home)
    assert {death: found for home, death in zip(homes, DEATHS, strict=True) if (found := held(home, words))} == {}
