"""The ledger and its writer: one bad commit is refused alone, and a bad disk refuses all with nothing kept."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.unit.disk import Disk, opened
from tests.waits import HANG_S

from keepsaid.adapters.sql.operations.queries import buffer_commits
from keepsaid.adapters.sql.query import CommitTable
from keepsaid.adapters.sql.search.memories import MEMORY_TABLE
from keepsaid.adapters.sql.tombstones import open_keyring
from keepsaid.adapters.sql.writer import RejectedCommit, Writer
from keepsaid.adapters.sqlite.connection import Readers, open_writer
from keepsaid.adapters.sqlite.integrity import migrate
from keepsaid.adapters.sqlite.stores import SqliteOperations, open_operations
from keepsaid.adapters.sqlite.writer import TransactionExecutor
from keepsaid.domain.commits import Commit, ExpireLeases, IntakeResult, Receive, Received
from keepsaid.domain.message import Content
from keepsaid.domain.states import IllegalMove, move
from keepsaid.domain.views import MessageFilter
from keepsaid.errors import StoreBroken, StoreError, StoreFull
from keepsaid.ports import runtime
from keepsaid.testing.builders import AT_ONCE, arrival, said

BIG = "x" * 200_000


def receive(number: int, text: str = "hello", room: str = "room") -> Receive:
    return Receive(arrival(number, said(text, room)), AT_ONCE)


@dataclass(frozen=True, slots=True)
class ClaimedBatch(Commit[str]):
    """A move that its table does not list, after a change that must be undone."""


@dataclass(frozen=True, slots=True)
class Wrong(Commit[str]):
    """A commit with a mistake in it."""


def odd() -> CommitTable:
    """How the commits above are applied."""

    def claim(db: apsw.Connection, commit: ClaimedBatch) -> str:
        db.execute("DELETE FROM message")
        return move("batch", "done", "claim")

    def wrong(db: apsw.Connection, commit: Wrong) -> str:
        db.execute("DELETE FROM message")
        return str(db.execute("SELECT * FROM nowhere").fetchall())

    return CommitTable({ClaimedBatch: claim, Wrong: wrong}, {})


def unfit(number: int) -> Receive:
    """A message that came past the door, with text that SQLite does not take."""
    return Receive(arrival(number, replace(said(), content=Content(b"", "\ud800"))), AT_ONCE)


def stored(path: Path) -> list[int]:
    """The numbers of the messages on disk, as another program sees them."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return [row[0] for row in db.execute("SELECT id FROM message ORDER BY id")]
    finally:
        db.close()


def verdicts(results: Sequence[Any]) -> list[object]:
    return [result.intake if isinstance(result, Received) else type(result.error) for result in results]


# A group


def test_a_bad_commit_is_refused_alone(tmp_path: Path) -> None:
    ledger, _ = opened(tmp_path / "buffer.db", also=odd())
    group = [receive(1), Wrong(), receive(2), ClaimedBatch(), receive(3), ExpireLeases(5)]
    first, wrong, second, claim, third, relinquished = ledger.apply(group)
    assert verdicts([first, second, third]) == [IntakeResult.STORED] * 3
    assert [result.number for result in (first, second, third)] == [1, 2, 3]
    assert relinquished == 0
    assert isinstance(wrong.error, StoreError)
    assert "no such table: nowhere" in wrong.error.what
    assert isinstance(claim.error, IllegalMove)
    assert stored(tmp_path / "buffer.db") == [1, 2, 3]
    ledger.close()


def test_a_bad_message_is_refused_alone_among_its_like(tmp_path: Path) -> None:
    ledger, _ = opened(tmp_path / "buffer.db")
    ledger.apply([receive(1)])
    group = [receive(2), unfit(3), receive(1, room="other"), receive(4), receive(5, room="other")]
    results = ledger.apply(group)
    assert verdicts(results) == [
        IntakeResult.STORED,
        UnicodeEncodeError,
        StoreError,
        IntakeResult.STORED,
        IntakeResult.STORED,
    ]
    assert [results[n].number for n in (0, 3, 4)] == [2, 3, 1]
    assert stored(tmp_path / "buffer.db") == [1, 2, 4, 5]
    ledger.close()


@pytest.mark.parametrize(("commit", "error"), [(Wrong(), StoreError), (ClaimedBatch(), IllegalMove)])
def test_a_bad_commit_alone_leaves_nothing(tmp_path: Path, commit: Commit[str], error: type[Exception]) -> None:
    ledger, db = opened(tmp_path / "buffer.db", also=odd())
    ledger.apply([receive(1)])
    (refused,) = ledger.apply([commit])
    assert type(refused.error) is error
    assert not db.in_transaction
    assert stored(tmp_path / "buffer.db") == [1]
    ledger.close()


@pytest.mark.usefixtures("disarmed")
def test_a_group_passes_the_points_of_its_commits(tmp_path: Path) -> None:
    ledger, _ = opened(tmp_path / "buffer.db")
    ledger.apply([receive(1)])
    seen: list[str] = []
    runtime.arm(seen.append)
    ledger.apply([receive(2), ExpireLeases(5)])
    runtime.arm(None)
    assert seen == [
        "commit.ExpireLeases.before",
        "commit.Receive.before",
        "commit.ExpireLeases.after",
        "commit.Receive.after",
    ]
    ledger.close()


@pytest.fixture
def disarmed() -> Iterator[None]:
    """Leave no point armed."""
    yield
    runtime.arm(None)


def test_where_both_stores_are_one_file_a_refusal_is_forgotten_too(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    db = open_writer(path)
    for part in ("buffer", "memory"):
        migrate(db, path, part)
    ledger = TransactionExecutor(db, path, buffer_commits(db, open_keyring(path)) | MEMORY_TABLE)
    ledger.apply([receive(1)])
    ledger.apply([receive(2), unfit(3)])
    assert verdicts(ledger.apply([receive(4)])) == [IntakeResult.STORED]
    ledger.close()


# A full disk


def refused_by(results: Sequence[Any]) -> set[type[Exception]]:
    assert all(isinstance(result, RejectedCommit) for result in results)
    return {type(result.error) for result in results}


def test_a_full_database_refuses_the_whole_group_and_later_takes_it(tmp_path: Path) -> None:
    ledger, db = opened(tmp_path / "buffer.db")
    ledger.apply([receive(1)])
    room = db.pragma("page_count") + 4
    db.pragma("max_page_count", room)
    group = [receive(2), receive(3, BIG), ExpireLeases(5), receive(4)]
    results = ledger.apply(group)
    assert refused_by(results) == {StoreFull}
    assert results[0].error.hint == "free some space; a running instance then continues by itself"
    assert stored(tmp_path / "buffer.db") == [1]
    assert verdicts(ledger.apply([receive(5)])) == [IntakeResult.STORED]
    db.pragma("max_page_count", 100_000)
    assert verdicts(ledger.apply([*group[:2], group[3]])) == [IntakeResult.STORED] * 3
    assert stored(tmp_path / "buffer.db") == [1, 2, 3, 4, 5]
    ledger.close()


@asynccontextmanager
async def writing(path: Path, disk: Disk | None = None) -> AsyncIterator[SqliteOperations]:
    ledger, _ = opened(path, disk)
    writer = Writer(ledger, "test")
    operations = SqliteOperations(writer, Readers(path), writer)
    try:
        async with asyncio.timeout(HANG_S):
            yield operations
    finally:
        if disk is not None:
            disk.release()
        await operations.close()


async def test_intake_resumes_by_itself_when_there_is_room_again(tmp_path: Path) -> None:
    disk = Disk()
    async with writing(tmp_path / "buffer.db", disk) as operations:
        await operations.apply(receive(1))
        disk.write_error = apsw.FullError("no space left on device")
        for number in (2, 3):
            with pytest.raises(StoreFull, match="no space left"):
                await operations.apply(receive(number))
        assert [story.message.id for story in await operations.find(MessageFilter())] == [1]
        disk.write_error = None
        assert (await operations.apply(receive(3))).number == 2
    assert stored(tmp_path / "buffer.db") == [1, 3]


async def test_a_full_disk_between_commits_ends_nothing(tmp_path: Path) -> None:
    disk = Disk()
    async with writing(tmp_path / "buffer.db", disk) as operations:
        disk.move_error = apsw.FullError("no space left on device")
        await operations.apply(receive(1, "x" * 900_000))
        for number in range(2, 8):
            async with asyncio.timeout(HANG_S):
                await operations.apply(receive(number, "x" * 900_000))
        disk.move_error = None
        await operations.apply(receive(8))
    assert stored(tmp_path / "buffer.db") == list(range(1, 9))


# A broken disk


async def test_an_error_of_the_disk_ends_all_writing(tmp_path: Path) -> None:
    disk = Disk()
    async with writing(tmp_path / "buffer.db", disk) as operations:
        await operations.apply(receive(1))
        disk.sync_error = apsw.IOError("the disk is on fire")
        with pytest.raises(StoreBroken, match="the disk is on fire"):
            await operations.apply(receive(2))
        before = (disk.syncs, disk.writes)
        for number in (2, 3):
            with pytest.raises(StoreBroken, match="the disk is on fire"):
                await operations.apply(receive(number))
        assert 1 in [story.message.id for story in await operations.find(MessageFilter())]
    assert (disk.syncs, disk.writes) == before, "nothing is moved or synced any more, not even at the end"
    again = await open_operations(tmp_path / "buffer.db")
    received = await again.apply(receive(4))
    await again.close()
    assert (received.intake, stored(tmp_path / "buffer.db")[0]) == (IntakeResult.STORED, 1)


async def test_an_error_while_reading_for_a_commit_ends_all_writing(tmp_path: Path) -> None:
    disk = Disk()
    async with writing(tmp_path / "buffer.db", disk) as operations:
        await operations.apply(receive(1))
    async with writing(tmp_path / "buffer.db", disk) as operations:
        disk.read_error = apsw.IOError("a bad sector")
        with pytest.raises(StoreBroken, match="a bad sector"):
            await operations.apply(receive(2, room="other"))
        with pytest.raises(StoreBroken):
            await operations.apply(receive(3))
    assert stored(tmp_path / "buffer.db") == [1]


async def test_what_waited_behind_the_error_is_not_acknowledged(tmp_path: Path) -> None:
    disk = Disk()
    async with writing(tmp_path / "buffer.db", disk) as operations:
        disk.hold()
        first = asyncio.create_task(operations.apply(receive(1)))
        assert await asyncio.to_thread(disk.reached.wait, 5)
        second = asyncio.create_task(operations.apply(receive(2)))
        await _queued(second)
        disk.sync_error = apsw.IOError("the disk is on fire")
        disk.release()
        results = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(result) for result in results] == [StoreBroken, StoreBroken]


async def _queued(task: asyncio.Task[Received]) -> None:
    """Let a task run until it waits."""
    await asyncio.wait([task], timeout=0)
    await asyncio.to_thread(lambda: None)
    assert not task.done()


# Reading


def _all(db: apsw.Connection, sql: str) -> list[Any]:
    return db.execute(sql).fetchall()


async def test_readers_cannot_write(tmp_path: Path) -> None:
    async with writing(tmp_path / "buffer.db") as operations:
        await operations.apply(receive(1))
        readers = Readers(tmp_path / "buffer.db", 1)
        for statement in (
            "DELETE FROM message",
            "INSERT INTO tombstone (hash, created_at) VALUES (x'00', 1)",
            "CREATE TABLE theirs (x)",
            "PRAGMA user_version = 5",
            "DROP TABLE message",
        ):
            with pytest.raises(StoreError, match="cannot be opened for writing"):
                await readers.run(_all, statement)
        assert await readers.run(_all, "SELECT id FROM message") == [(1,)]
        await readers.close()
    assert stored(tmp_path / "buffer.db") == [1]


async def test_a_query_without_end_is_cut_short_by_the_close(tmp_path: Path) -> None:
    reading = threading.Event()
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"

    def read(db: apsw.Connection) -> int:
        rows = 0
        for _ in db.execute(endless):
            rows += 1
            reading.set()
        return rows

    async with writing(tmp_path / "buffer.db"):
        readers = Readers(tmp_path / "buffer.db", 1)
        result = asyncio.create_task(readers.run(read))
        assert await asyncio.to_thread(reading.wait, 5)
        async with asyncio.timeout(HANG_S):
            await readers.close()
            with pytest.raises(StoreError, match="interrupt"):
                await result


async def test_a_reader_sees_one_moment(tmp_path: Path) -> None:
    count = "SELECT count(*) FROM message"
    reading, go_on = threading.Event(), threading.Event()

    def twice(db: apsw.Connection) -> list[Any]:
        before = db.execute(count).fetchall()
        reading.set()
        assert go_on.wait(HANG_S)
        return before + db.execute(count).fetchall()

    async with writing(tmp_path / "buffer.db") as operations:
        await operations.apply(receive(1))
        readers = Readers(tmp_path / "buffer.db", 1)
        looking = asyncio.create_task(readers.run(twice))
        assert await asyncio.to_thread(reading.wait, 5)
        await operations.apply(receive(2))
        go_on.set()
        assert await looking == [(1,), (1,)]
        assert await readers.run(_all, count) == [(2,)]
        await readers.close()


# The end


async def test_closing_writes_what_is_queued(tmp_path: Path) -> None:
    disk = Disk()
    async with writing(tmp_path / "buffer.db", disk) as operations:
        disk.hold()
        commits = [asyncio.create_task(operations.apply(receive(number))) for number in range(1, 60)]
        assert await asyncio.to_thread(disk.reached.wait, 5)
        closing = asyncio.create_task(operations.close())
        await asyncio.wait([closing], timeout=0)
        disk.release()
        received = await asyncio.gather(*commits)
        await closing
        assert [one.number for one in received] == list(range(1, 60))
        with pytest.raises(StoreBroken, match="closed"):
            await operations.apply(receive(60))
    assert stored(tmp_path / "buffer.db") == list(range(1, 60))


async def test_a_commit_is_kept_also_when_nobody_waits_for_it_any_more(tmp_path: Path) -> None:
    disk = Disk()
    async with writing(tmp_path / "buffer.db", disk) as operations:
        disk.hold()
        leaving = asyncio.create_task(operations.apply(receive(1)))
        assert await asyncio.to_thread(disk.reached.wait, 5)
        leaving.cancel()
        disk.release()
        assert (await operations.apply(receive(2))).number == 2
        assert leaving.cancelled()
    assert stored(tmp_path / "buffer.db") == [1, 2]


async def test_many_wait_for_one_sync(tmp_path: Path) -> None:
    disk = Disk()
    async with writing(tmp_path / "buffer.db", disk) as operations:
        await operations.apply(receive(1))
        disk.hold()
        syncs = disk.syncs
        first = asyncio.create_task(operations.apply(receive(2)))
        assert await asyncio.to_thread(disk.reached.wait, 5)
        others = [asyncio.create_task(operations.apply(receive(number))) for number in range(3, 103)]
        await asyncio.wait(others, timeout=0)
        disk.release()
        await asyncio.gather(first, *others)
        assert disk.syncs - syncs == 2
