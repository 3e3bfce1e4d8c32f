"""The pair of stores: a missing, empty, exchanged or foreign half and a lost log are refused; crashes are not."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

import apsw
import pytest

from keepsaid.adapters.sqlite.stores import (
    SqliteMemories,
    SqliteOperations,
    accept_loss,
    check_pair,
    open_stores,
    read_stores,
)
from keepsaid.adapters.sqlite.writer import progress_of
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.domain.commits import Receive
from keepsaid.domain.forgetting import EmptyLog
from keepsaid.domain.memory import Kind, NewMemory, Source, conversation_scope
from keepsaid.domain.message import Trust
from keepsaid.domain.views import MessageFilter
from keepsaid.errors import LogLost, StoreError, StoreUnpaired
from keepsaid.testing.builders import AT_ONCE, arrival, lane_of, said

Stores = tuple[SqliteOperations, SqliteMemories]
Harm = Callable[[Path], None]


def paths(home: Path) -> tuple[Path, Path]:
    """The two files of a home."""
    return home / "buffer.db", home / "memory.db"


def made(home: Path) -> None:
    """A directory for a home."""
    home.mkdir(exist_ok=True)


def contents(home: Path) -> dict[str, bytes]:
    """The files of a home with bytes in them, but for indexes of logs, which every reader makes anew."""
    found = {file.name: file.read_bytes() for file in home.iterdir()}
    return {name: content for name, content in found.items() if content and not name.endswith("-shm")}


def remove_logs(home: Path) -> None:
    """Delete both logs."""
    for log in home.glob("*-wal"):
        log.unlink()


async def texts(operations: SqliteOperations) -> list[str]:
    """The messages of a store."""
    return [story.message.inbound.content.text for story in await operations.find(MessageFilter(limit=99))]


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[Stores]:
    """Both stores, as a start opens them."""
    made(home)
    async with AsyncExitStack() as closing_all:
        yield await open_stores(*paths(home), SystemIds(), closing_all)


async def put(stores: Stores, number: int) -> None:
    """A message and a memory."""
    operations, memories = stores
    await operations.apply(Receive(arrival(number, said(f"message {number}")), AT_ONCE))
    lane = lane_of("room")
    scope, sources = conversation_scope(lane), (Source("message", str(number)),)
    new = NewMemory(f"m:{number}", Kind.EPISODE, f"memory {number}", scope, Trust.KNOWN, lane, sources=sources)
    await memories.keep((new,), number)


async def held(home: Path) -> list[str]:
    """The messages that a start finds."""
    async with opened(home) as (operations, _):
        return await texts(operations)


async def full(home: Path, number: int = 1) -> Path:
    """A home with a message and a memory, closed."""
    async with opened(home) as stores:
        await put(stores, number)
    return home


async def killed(home: Path) -> Path:
    """What kill -9 leaves of a home that has checkpointed one message, and acknowledged another since."""
    async with opened(home) as stores:
        await put(stores, 1)
        assert await stores[0].apply(EmptyLog(whole=False))
        assert await stores[1].forgetful.empty_log()
        await put(stores, 2)
        return Path(shutil.copytree(home, home.with_name(f"{home.name}-killed")))


async def refused(home: Path, kind: type[StoreError]) -> StoreError:
    """The error of a start and of a reader, which change nothing."""
    before = contents(home)
    with pytest.raises(kind) as started:
        async with opened(home):
            pass
    with pytest.raises(kind) as read:
        async with AsyncExitStack() as closing_all:
            await read_stores(*paths(home), SystemIds(), closing_all)
    assert contents(home) == before
    assert read.value.what == started.value.what
    return started.value


def empty_half(name: str) -> Harm:
    """Cut a file to nothing."""

    def harm(home: Path) -> None:
        (home / name).write_bytes(b"")

    return harm


def missing_half(name: str) -> Harm:
    """Delete a file."""
    return lambda home: (home / name).unlink()


LOST = {
    f"{how.__name__} {name}": (how(name), name)
    for how in (empty_half, missing_half)
    for name in ("buffer.db", "memory.db")
}


@pytest.mark.parametrize("how", LOST)
async def test_an_empty_or_missing_half_is_refused_and_can_be_accepted(tmp_path: Path, how: str) -> None:
    harm, name = LOST[how]
    home = await full(tmp_path / "home")
    harm(home)
    error = await refused(home, StoreError)
    assert str(home / name) in error.what
    assert "accept-loss" in error.hint
    accept_loss(*paths(home))
    assert await held(home) == ([] if name == "buffer.db" else ["message 1"])
    assert await held(await full(home, 2)) != []


@pytest.mark.parametrize("how", LOST)
async def test_a_half_of_a_pair_that_never_held_anything_is_made_again(tmp_path: Path, how: str) -> None:
    async with opened(tmp_path / "home"):
        pass
    LOST[how][0](tmp_path / "home")
    assert await held(await full(tmp_path / "home")) == ["message 1"]


async def test_exchanged_stores_are_refused_and_work_when_they_are_put_right(tmp_path: Path) -> None:
    home = await full(tmp_path / "home")

    def exchange() -> None:
        for old, new in (("buffer.db", "aside"), ("memory.db", "buffer.db"), ("aside", "memory.db")):
            (home / old).rename(home / new)

    exchange()
    error = await refused(home, StoreUnpaired)
    assert "exchanged" in error.what
    exchange()
    assert await held(home) == ["message 1"]


async def test_a_buffer_in_the_place_of_the_memory_store_is_refused(tmp_path: Path) -> None:
    home = await full(tmp_path / "home")
    shutil.copyfile(home / "buffer.db", home / "memory.db")
    assert "holds messages" in (await refused(home, StoreUnpaired)).what


@pytest.mark.parametrize("name", ["buffer.db", "memory.db"])
async def test_a_half_of_another_home_is_refused_and_can_be_accepted(tmp_path: Path, name: str) -> None:
    home, other = await full(tmp_path / "home"), await full(tmp_path / "other", 7)
    shutil.copyfile(other / name, home / name)
    assert "another home" in (await refused(home, StoreUnpaired)).what
    accept_loss(*paths(home))
    assert await held(home) == ["message 7" if name == "buffer.db" else "message 1"]


@pytest.mark.parametrize("name", ["buffer.db", "memory.db"])
@pytest.mark.parametrize("cut", [True, False])
async def test_a_lost_log_with_commits_in_it_is_refused_and_can_be_accepted(
    tmp_path: Path, name: str, cut: bool
) -> None:
    home = await killed(tmp_path / "home")
    log = home / f"{name}-wal"
    kept = log.read_bytes()
    assert kept
    log.unlink()
    if cut:
        log.touch()
    error = await refused(home, LogLost)
    assert str(log) in error.what
    log.write_bytes(kept)
    assert len(await held(Path(shutil.copytree(home, tmp_path / "again")))) == 2, "the log was put back"
    log.unlink()
    accept_loss(*paths(home))
    assert len(await held(home)) == (1 if name == "buffer.db" else 2)


async def test_a_log_that_begins_anew_after_a_reader_left_is_missed_too(tmp_path: Path) -> None:
    """The checkpoint moves all of the log but cannot cut it while somebody reads; the next commit begins it anew."""
    async with opened(tmp_path / "home") as stores:
        await put(stores, 1)
        with closing(apsw.Connection(str(tmp_path / "home" / "buffer.db"))) as reading:
            reading.execute("BEGIN")
            reading.execute("SELECT * FROM store_mark").fetchall()
            assert not await stores[0].apply(EmptyLog(whole=False))
            reading.execute("ROLLBACK")
        await put(stores, 2)
        left = Path(shutil.copytree(tmp_path / "home", tmp_path / "left"))
    (left / "buffer.db-wal").unlink()
    await refused(left, LogLost)


async def test_a_lost_log_that_held_a_whole_new_store_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path / "home"):
        pass
    (tmp_path / "home" / "buffer.db").unlink()
    (tmp_path / "home" / "memory.db").unlink()
    async with opened(tmp_path / "home") as stores:
        await put(stores, 1)
        home = Path(shutil.copytree(tmp_path / "home", tmp_path / "killed"))
    remove_logs(home)
    await refused(home, LogLost)


async def test_a_store_that_another_program_checkpointed_after_a_kill_opens(tmp_path: Path) -> None:
    home = await killed(tmp_path / "home")
    for path in paths(home):
        with closing(apsw.Connection(str(path))) as db:
            db.execute("SELECT * FROM store_mark").fetchall()
        assert not path.with_name(f"{path.name}-wal").exists(), "SQLite moved the log into the file"
    assert len(await held(home)) == 2


@pytest.mark.parametrize("left", ["missing", "empty", "torn", "half", "of another store", "older"])
async def test_no_progress_file_that_a_power_cut_leaves_is_refused(tmp_path: Path, left: str) -> None:
    home, other = await full(tmp_path / "home"), await full(tmp_path / "other")
    whole = progress_of(paths(home)[0]).read_bytes()
    async with opened(other) as stores:
        for number in range(9, 12):
            await put(stores, number)
            await stores[0].apply(EmptyLog(whole=False))
    kinds = {
        "missing": None,
        "empty": b"",
        "torn": whole[:20] + bytes(4) + whole[24:],
        "half": whole[:16],
        "of another store": progress_of(paths(other)[0]).read_bytes(),
        "older": whole,
    }
    if left == "older":
        async with opened(home) as stores:
            await put(stores, 2)
        assert progress_of(paths(home)[0]).read_bytes() != whole
    progress_of(paths(home)[0]).unlink()
    if (content := kinds[left]) is not None:
        progress_of(paths(home)[0]).write_bytes(content)
    assert "message 1" in await held(home)


async def test_a_copy_taken_of_a_running_home_at_any_commit_opens(tmp_path: Path) -> None:
    """Copies that follow the order of writes: the databases and logs as they were before or after the progress file."""
    for number in range(1, 7):
        async with opened(tmp_path / "home") as stores:
            await put(stores, number)
            if number % 3 == 0:
                await stores[0].apply(EmptyLog(whole=False))
            left = Path(shutil.copytree(tmp_path / "home", tmp_path / f"left{number}"))
        assert len(await held(left)) == number
        assert len(await held(left)) == number


async def test_a_home_of_version_1_becomes_a_pair_at_its_first_start(tmp_path: Path) -> None:
    home = await full(tmp_path / "home")
    with closing(apsw.Connection(str(home / "buffer.db"))) as db:
        db.execute("UPDATE store_mark SET memory = NULL")
    assert check_pair(*paths(home)) is False
    assert await held(home) == ["message 1"]
    assert check_pair(*paths(home)) is True


async def test_both_stores_in_one_file_are_checked_for_a_lost_log(tmp_path: Path) -> None:
    one = tmp_path / "one" / "both.db"
    one.parent.mkdir()
    async with AsyncExitStack() as closing_all:
        stores = await open_stores(one, one, SystemIds(), closing_all)
        await put(stores, 1)
        await stores[0].apply(EmptyLog(whole=False))
        await put(stores, 2)
        left = Path(shutil.copytree(one.parent, tmp_path / "left")) / one.name
    left.with_name("both.db-wal").unlink()
    with pytest.raises(LogLost):
        async with AsyncExitStack() as closing_all:
            await open_stores(left, left, SystemIds(), closing_all)
    with pytest.raises(LogLost):
        async with AsyncExitStack() as closing_all:
            await read_stores(left, left, SystemIds(), closing_all)
    accept_loss(left, left)
    async with AsyncExitStack() as closing_all:
        operations, _ = await open_stores(left, left, SystemIds(), closing_all)
        assert [story.message.inbound.content.text for story in await operations.find(MessageFilter(limit=9))] == [
            "message 1"
        ]
