"""Processes that share a database: what one wakes is woken in the others, by one clock, with ids of their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import time

import psycopg
import pytest
from tests.postgres.server import cut_off, empty
from tests.waits import HANG_S

from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.adapters.postgres.peers import NODE_LOCK, NODES, PostgresPeers
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.ports.runtime import Hint, Holders

_CLOCK_MS = 5_000
"""How far the clocks of one machine may be apart, with all that it does besides."""


class Process:
    """What one process publishes and hears."""

    def __init__(self, peers: PostgresPeers) -> None:
        self.peers = peers
        self.work, self.route, self.held, self.lost = Hint(), Hint(), Holders(), asyncio.Event()
        self.held[7] = [self.lost]
        peers.join({"work": self.work, "route": self.route}, {"held": self.held})


@pytest.fixture(autouse=True)
def _empty(place: PostgresPlace) -> None:
    empty(place)


@asynccontextmanager
async def joined(place: PostgresPlace) -> AsyncIterator[Process]:
    """A process that listens."""
    peers = await asyncio.to_thread(PostgresPeers, place)
    try:
        async with asyncio.timeout(HANG_S):
            yield Process(peers)
    finally:
        await peers.close()


async def test_what_one_wakes_is_woken_in_the_other(place: PostgresPlace) -> None:
    """And what nobody woke is not; who was woken by another wakes nobody in turn."""
    async with joined(place) as one, joined(place) as two:
        one.work.set()
        await two.work.wait()
        two.work.clear()
        one.held.wake(7)
        await two.lost.wait()
        assert not two.route.is_set()
        assert not two.work.is_set(), "neither its own nor an answer came back"
        two.route.set()
        await one.route.wait()


async def test_many_wake_ups_at_once_all_arrive(place: PostgresPlace) -> None:
    """However long their names are together."""
    async with joined(place) as one, joined(place) as two:
        events = {number: asyncio.Event() for number in range(10**15, 10**15 + 100)}
        two.held.update({number: [event] for number, event in events.items()})
        for number in events:
            one.held.wake(number)
        await asyncio.gather(*(event.wait() for event in events.values()))


async def test_a_line_that_broke_is_made_again_and_all_are_woken(place: PostgresPlace) -> None:
    """What was published meanwhile may be lost, so everybody looks."""
    async with joined(place) as one, joined(place) as two:
        await asyncio.to_thread(cut_off, place)
        await asyncio.gather(*(one.work.wait(), two.work.wait(), two.route.wait()))
        for hint in (one.work, two.work):
            hint.clear()
        one.work.set()
        await two.work.wait()


async def test_each_outage_is_one_line_of_the_log(place: PostgresPlace, caplog: pytest.LogCaptureFixture) -> None:
    async with joined(place) as one:
        for outages in (1, 2):
            one.work.clear()
            await asyncio.to_thread(cut_off, place)
            await one.work.wait()
            assert sum("no wake-ups" in line for line in caplog.messages) == outages


async def test_no_two_have_the_same_number_and_all_have_the_time_of_the_server(place: PostgresPlace) -> None:
    async with joined(place) as one, joined(place) as two:
        assert one.peers.node != two.peers.node
        assert abs(one.peers.now_ms() - two.peers.now_ms()) < _CLOCK_MS
        assert abs(one.peers.now_ms() - 1_000 * time()) < _CLOCK_MS


async def test_whose_number_was_taken_while_its_line_was_broken_has_another_one(place: PostgresPlace) -> None:
    """Its ids have it from then on."""
    async with joined(place) as one:
        before = one.peers.node
        ids = SystemIds(node=lambda: one.peers.node)
        first = ids.next() % NODES

        def taken() -> psycopg.Connection[tuple[object, ...]]:
            db = psycopg.connect(place.url, autocommit=True)
            db.execute("SELECT pg_advisory_lock(%s, %s)", (NODE_LOCK, before))
            return db

        waiting = asyncio.ensure_future(asyncio.to_thread(taken))
        while not waiting.done():
            cut_off(place)
            await asyncio.sleep(0)
        while one.peers.node == before:
            one.work.clear()
            cut_off(place)
            await one.work.wait()
        assert (first, ids.next() % NODES) == (before, one.peers.node)
        (await waiting).close()


async def test_the_last_word_is_sent_before_the_end(place: PostgresPlace) -> None:
    """So that others know at once that a process stopped."""
    async with joined(place) as two:
        async with joined(place) as one:
            one.route.set()
        await two.route.wait()
