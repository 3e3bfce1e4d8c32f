"""Writers at one database: lines that break, servers that cut off, and processes that take turns."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import psycopg
import pytest
from tests.postgres.proxy import Proxy, between
from tests.postgres.server import cut_off, empty

from keepsaid.adapters.postgres.connection import WRITER_LOCK, PostgresPlace
from keepsaid.adapters.postgres.stores import open_operations
from keepsaid.adapters.postgres.writer import PostgresExecutor, WriterSession
from keepsaid.adapters.sql.operations.store import SqlOperations
from keepsaid.adapters.sql.query import CommitTable, column, load
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain.commits import IntakeResult
from keepsaid.domain.forgetting import EmptyLog
from keepsaid.domain.message import ProviderMarks
from keepsaid.errors import StoreUnreachable
from keepsaid.testing.builders import said
from keepsaid_testkit.contracts.store_driver import StoreDriver


@pytest.fixture(autouse=True)
def _empty(place: PostgresPlace) -> None:
    empty(place)


@asynccontextmanager
async def opened(place: PostgresPlace) -> AsyncIterator[SqlOperations]:
    """An operational store in the database, as one process has it."""
    store = await open_operations(place, TombstoneKeyring(None))
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
def line(place: PostgresPlace) -> Iterator[tuple[Proxy, PostgresPlace]]:
    """A line to the database that can be cut."""
    with tempfile.TemporaryDirectory(prefix="keepsaid-px-") as folder, between(place, Path(folder)) as made:
        yield made


def messages(place: PostgresPlace) -> list[str]:
    """The texts of all messages, in order."""
    with psycopg.connect(place.url) as db:
        return [text for (text,) in db.execute(f"SELECT text FROM {place.schema}.message ORDER BY id")]


async def test_a_commit_whose_answer_was_lost_is_kept_and_said_to_be(line: tuple[Proxy, PostgresPlace]) -> None:
    proxy, place = line
    async with opened(place) as store:
        await StoreDriver(store).receive(said("before"))
        proxy.cut_after = b"COMMIT"
        received = await StoreDriver(store, 100).receive(said("and now"))
        assert received.intake is IntakeResult.STORED
        assert messages(place) == ["before", "and now"]


async def test_a_commit_that_never_reached_the_server_is_applied_once_more(line: tuple[Proxy, PostgresPlace]) -> None:
    proxy, place = line
    async with opened(place) as store:
        await StoreDriver(store).receive(said("before"))
        proxy.cut_after = b"INSERT INTO message ("
        assert (await StoreDriver(store, 100).receive(said("cut", marks=ProviderMarks("k")))).number == 2
        assert messages(place) == ["before", "cut"]


async def test_a_commit_is_refused_and_not_kept_while_no_server_is_there(line: tuple[Proxy, PostgresPlace]) -> None:
    proxy, place = line
    async with opened(place) as store:
        await StoreDriver(store).receive(said("before"))
        proxy.is_away = True
        with pytest.raises(StoreUnreachable, match="cannot be reached"):
            await StoreDriver(store, 100).receive(said("lost", marks=ProviderMarks("k")))
        proxy.is_away = False
        assert messages(place) == ["before"]
        assert (await StoreDriver(store, 200).receive(said("lost", marks=ProviderMarks("k")))).number == 2
        assert messages(place) == ["before", "lost"]


async def test_after_the_server_cut_it_off_a_store_goes_on(place: PostgresPlace) -> None:
    async with opened(place) as store:
        driver = StoreDriver(store)
        first = await driver.receive(said("before"))
        assert await store.story(first.id) is not None, "a reader has its connection"
        cut_off(place)
        assert (await driver.receive(said("after"))).number == 2
        story = await store.story(first.id)
        assert story is not None, "a reader goes on too"
        assert story.message.text == "before"


def test_a_commit_reads_by_indexes_also_while_its_tables_are_empty(place: PostgresPlace) -> None:
    """A plan is kept: one that was made for an empty table would read the whole of what that becomes."""
    session = WriterSession(place)
    plan = column(session, f"EXPLAIN {load('intake')['known_keys']}", (session.texts((b"one", b"two")),))
    session.connection.close()
    assert any("Index Scan using message_key_pkey" in line for line in plan), "\n".join(plan)
    assert not any("Seq Scan" in line for line in plan)


def test_whoever_connects_again_leaves_no_connection_behind(place: PostgresPlace) -> None:
    """How a transaction ended may be asked several times, each on a new connection."""
    session = WriterSession(place)
    before = session.connection
    session.reconnect()
    assert before.closed
    before = session.connection
    session.reconnect()
    assert before.closed
    assert column(session, "SELECT 1") == [1]
    session.connection.close()


async def test_what_another_process_stored_is_known(place: PostgresPlace) -> None:
    keyed = said("hello", marks=ProviderMarks("k"))
    async with opened(place) as former, opened(place) as successor:
        await StoreDriver(former).receive(said("first"))
        first = await StoreDriver(successor, 100).receive(keyed)
        again = await StoreDriver(former, 200).receive(keyed)
        assert (again.intake, again.id, again.number) == (IntakeResult.DUPLICATE, first.id, first.number)
        assert (await StoreDriver(former, 300).receive(said("more"))).number == 3


async def test_one_that_stops_in_the_midst_of_a_transaction_is_cut_off(place: PostgresPlace) -> None:
    """It has the writer's place, and the others wait until one of them has its connection ended."""
    async with opened(place) as store:
        frozen = WriterSession(place)
        held = frozen.transaction()
        held.__enter__()
        await StoreDriver(store).receive(said("meanwhile"))
        with pytest.raises((psycopg.errors.IdleInTransactionSessionTimeout, psycopg.errors.AdminShutdown)):
            frozen.execute("SELECT 1")
        frozen.connection.close()
    assert messages(place) == ["meanwhile"]


async def test_one_that_stops_between_statements_that_go_together_is_ended_by_who_waits(place: PostgresPlace) -> None:
    """For the server it is not idle: more of what it sends together may come at any moment."""
    frozen = WriterSession(place)
    silent = frozen.connection.pgconn
    silent.enter_pipeline_mode()
    for statement in (b"BEGIN", b"SELECT pg_advisory_xact_lock(%d)" % WRITER_LOCK):
        silent.send_query_params(statement, [])
    silent.send_flush_request()
    while silent.flush():
        pass
    with psycopg.connect(place.url, autocommit=True) as db:
        while not db.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND granted").fetchall():
            pass
    async with opened(place) as store:
        await StoreDriver(store).receive(said("after it"))
    assert messages(place) == ["after it"]
    frozen.connection.close()


async def test_a_group_is_kept_whose_space_cannot_be_freed(place: PostgresPlace) -> None:
    """Another one frees space in a table meanwhile: the log is not emptied, and nothing else is refused."""
    async with opened(place) as store:
        await StoreDriver(store).receive(said("one"))
        with psycopg.connect(place.url) as other:
            other.execute("LOCK TABLE keepsaid.message IN SHARE UPDATE EXCLUSIVE MODE")
            emptied, received = await asyncio.gather(
                store.apply(EmptyLog()), StoreDriver(store, 100).receive(said("two"))
            )
        assert not emptied
        assert received.intake is IntakeResult.STORED
        assert await store.apply(EmptyLog())
    assert messages(place) == ["one", "two"]


async def test_no_commit_waits_until_space_is_freed(place: PostgresPlace) -> None:
    """Of a large database that takes longer than a silent process is taken to live."""
    async with opened(place) as store:
        await StoreDriver(store).receive(said("one"))
        with psycopg.connect(place.url) as other:
            other.execute("LOCK TABLE keepsaid.message IN SHARE UPDATE EXCLUSIVE MODE")
            freeing = asyncio.create_task(store.apply(EmptyLog()))
            await StoreDriver(store, 100).receive(said("two"))
            assert not freeing.done()
        assert await freeing
    assert messages(place) == ["one", "two"]


async def test_a_store_is_closed_while_space_is_freed(place: PostgresPlace) -> None:
    """What was begun is broken off, and is not said to be done."""
    async with opened(place) as store:
        with psycopg.connect(place.url) as other:
            other.execute("LOCK TABLE keepsaid.message IN SHARE UPDATE EXCLUSIVE MODE")
            freeing = asyncio.create_task(store.apply(EmptyLog()))
            await StoreDriver(store).receive(said("one"))
            await store.close()
            assert not await freeing
    assert messages(place) == ["one"]


def test_upkeep_that_reads_before_it_writes_is_not_done_until_it_has_written(place: PostgresPlace) -> None:
    steps = iter((True, True, None))
    table = CommitTable({}, {}, (lambda _db, _finish: next(steps),))
    executor = PostgresExecutor(place, lambda _: table, TombstoneKeyring(None))
    assert [executor.tidy() for _ in range(3)] == [True, True, False]
    executor.close()
