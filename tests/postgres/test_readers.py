"""Queries on PostgreSQL: each sees one moment, cannot write, and outlives a connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import psycopg
import pytest
import pytest_asyncio
from psycopg.pq import TransactionStatus
from tests.postgres.server import cut_off, empty

from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.adapters.postgres.readers import PostgresReaders
from keepsaid.adapters.postgres.session import PostgresSession
from keepsaid.adapters.sql.query import JointStatement, as_json, column, every, run, scalar
from keepsaid.errors import StoreError

_COUNT = "SELECT count(*) FROM note"


@pytest_asyncio.fixture
async def readers(place: PostgresPlace) -> AsyncIterator[PostgresReaders]:
    empty(place)
    made = PostgresReaders(place, 1)
    yield made
    await made.close()
    empty(place)


def another(place: PostgresPlace) -> None:
    """Somebody else writes a row."""
    with psycopg.connect(place.url, autocommit=True) as db:
        db.execute(f"INSERT INTO {place.schema}.note (name, text, until) VALUES (gen_random_uuid()::text, '', 1)")


async def test_all_statements_of_a_query_see_one_moment(place: PostgresPlace, readers: PostgresReaders) -> None:
    """Also of one that was taken for a single statement before."""

    def twice(db: PostgresSession) -> tuple[object, object]:
        first = scalar(db, _COUNT)
        another(place)
        return first, scalar(db, _COUNT)

    for _ in range(3):
        first, second = await readers.view(twice)
        assert first == second
    first, second = await readers.run(twice)
    assert first == second


async def test_statements_that_end_a_query_see_one_moment_and_nothing_is_open_after_them(
    place: PostgresPlace, readers: PostgresReaders
) -> None:
    """All of a query at once, or after another statement."""
    count = JointStatement(_COUNT)

    def at_once(db: PostgresSession) -> tuple[object, ...]:
        [[(first,)], [(second,)]] = db.ask(count, count, ends=True)
        return first, second, db.connection.info.transaction_status

    def after_one(db: PostgresSession) -> tuple[object, ...]:
        before = scalar(db, _COUNT)
        another(place)
        first, second, status = at_once(db)
        assert before == first
        return first, second, status

    for query in (at_once, after_one, at_once, after_one):
        first, second, status = await readers.view(query)
        assert (first, status) == (second, TransactionStatus.IDLE)


async def test_a_query_asks_for_nothing_after_its_end(readers: PostgresReaders) -> None:
    def goes_on(db: PostgresSession) -> object:
        db.ask(JointStatement(_COUNT), ends=True)
        return scalar(db, _COUNT)

    with pytest.raises(AssertionError, match="after its end"):
        await readers.view(goes_on)
    assert await readers.view(scalar, _COUNT) == 0


async def test_a_query_of_one_statement_sees_what_was_written_before(
    place: PostgresPlace, readers: PostgresReaders
) -> None:
    for n in range(3):
        assert await readers.view(scalar, _COUNT) == n
        another(place)


async def test_no_query_can_write(place: PostgresPlace, readers: PostgresReaders) -> None:
    another(place)
    for way in (readers.view, readers.run):
        with pytest.raises(StoreError, match="read-only"):
            await way(run, "DELETE FROM note")
    cut_off(place)
    assert await readers.view(scalar, _COUNT) == 1
    with pytest.raises(StoreError, match="read-only"):
        await readers.view(run, "DELETE FROM note")


async def test_rows_with_bytes_are_the_same_each_time(place: PostgresPlace, readers: PostgresReaders) -> None:
    """The first time as text, then in the binary format, in which bytes take half the size."""
    del place
    values = (b"\x00\\x'\xff", 1 << 40, -3, 0.1, "\u00e4\\", True, None)
    statement = "SELECT ?1, ?2, CAST(?3 AS int), CAST(?4 AS REAL), ?5, 1 = 1, CAST(NULL AS BLOB)"
    for _ in range(8):
        assert await readers.view(every, statement, values[:5]) == [values]


async def test_lists_that_are_bound_become_rows_in_their_order(place: PostgresPlace, readers: PostgresReaders) -> None:
    del place
    numbers, texts = [3, -1, 1 << 40], ["{b}", 'a"\\,', "", "\u00e4"]

    def listed(db: PostgresSession, values: Sequence[object], name: str) -> list[object]:
        statement = f"SELECT value FROM json_each/*{name}*/(?) AS listed ORDER BY listed.rowid"
        return column(db, statement, (as_json(values),))

    assert await readers.view(listed, numbers, "numbers") == numbers
    assert await readers.view(listed, texts, "texts") == texts
    assert await readers.view(listed, [], "numbers") == await readers.view(listed, [], "texts") == []
