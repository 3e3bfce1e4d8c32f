"""A disk that fills up under load, five times: intake says so, loses nothing acknowledged, and goes on by itself."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path

import apsw
from tests.unit.disk import Disk, opened
from tests.waits import HANG_S

from keepsaid.adapters.sql.writer import Writer
from keepsaid.adapters.sqlite.connection import Readers, open_reader
from keepsaid.adapters.sqlite.integrity import examine
from keepsaid.adapters.sqlite.stores import SqliteOperations
from keepsaid.domain.commits import IntakeResult, Receive
from keepsaid.domain.message import ProviderMarks
from keepsaid.errors import StoreFull
from keepsaid.testing.builders import AT_ONCE, arrival, said

PEOPLE = 8
EACH = 60
FILLINGS = 5
TEXT = "x" * 3_000


class Scene:
    """How full the disk is, and what the people have heard: the numbers acknowledged, and how often it was full."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.taken: dict[int, str] = {}
        self.refused = 0
        self.room = asyncio.Event()
        self.room.set()
        self._turn = asyncio.Condition()

    def fill(self) -> None:
        """No space any more, neither in the log nor in the file: whoever is refused waits until there is."""
        self.disk.write_error = self.disk.move_error = apsw.FullError("no space left on device")

    def empty(self) -> None:
        """There is space again; whoever was refused may try again."""
        self.disk.write_error = self.disk.move_error = None
        self.room.set()

    async def heard(self, number: int, key: str) -> None:
        """A message was acknowledged."""
        async with self._turn:
            self.taken[number] = key
            self._turn.notify_all()

    async def was_refused(self) -> None:
        """A message was refused for want of space."""
        if self.disk.write_error is not None:
            self.room.clear()
        async with self._turn:
            self.refused += 1
            self._turn.notify_all()

    async def until(self, taken: int = 0, refused: int = 0) -> None:
        """Wait until so many were acknowledged and refused."""
        async with self._turn:
            await self._turn.wait_for(lambda: len(self.taken) >= taken and self.refused >= refused)


async def talk(person: int, store: SqliteOperations, scene: Scene) -> None:
    """Send every message until it is taken, as providers do."""
    for n in range(EACH):
        number, key = person * EACH + n + 1, f"{person}:{n}"
        inbound = said(f"{key} {TEXT}", f"room {person}", marks=ProviderMarks(external_id=key))
        while number not in scene.taken:
            await scene.room.wait()
            try:
                received = await store.apply(Receive(arrival(number, inbound), AT_ONCE))
            except StoreFull:
                await scene.was_refused()
            else:
                assert (received.intake, received.number) == (IntakeResult.STORED, n + 1)
                await scene.heard(number, key)


def stored(path: Path) -> dict[int, str]:
    with closing(open_reader(path)) as db:
        rows = db.execute("SELECT id, external_id FROM message").fetchall()
    return {int(str(number)): str(key) for number, key in rows}


async def test_a_disk_that_fills_five_times_loses_nothing(tmp_path: Path) -> None:
    path, scene = tmp_path / "buffer.db", Scene(Disk())
    ledger, _ = opened(path, scene.disk)
    writer = Writer(ledger, "test")
    store = SqliteOperations(writer, Readers(path), writer)
    try:
        async with asyncio.timeout(HANG_S), asyncio.TaskGroup() as people:
            for person in range(PEOPLE):
                people.create_task(talk(person, store, scene))
            for filling in range(1, FILLINGS + 1):
                await scene.until(taken=filling * PEOPLE * EACH // (FILLINGS + 1))
                scene.fill()
                before = scene.refused
                await scene.until(refused=before + 1)
                known = dict(scene.taken)
                assert known.items() <= (await asyncio.to_thread(stored, path)).items()
                scene.empty()
    finally:
        await store.close()
    assert scene.refused >= FILLINGS
    assert len(scene.taken) == PEOPLE * EACH
    assert await asyncio.to_thread(stored, path) == scene.taken
    assert (await asyncio.to_thread(examine, path, ("buffer",))).problems == ()
