"""Intake: the public `receive` under concurrent producers, against one commit a message through aiosqlite."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from bench.disk import percentile
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.adapters.system.machine import SystemClock, SystemIds
from keepsaid.domain.batch import Window
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.pipeline.intake import IntakeLimits, MessageIntake

PRODUCERS = 64
_BUSY_SLICE_S = 0.002
_PEER_SCHEMA = """
CREATE TABLE buffer (
  id INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, sender TEXT NOT NULL, conversation TEXT NOT NULL,
  external_id TEXT UNIQUE, payload BLOB NOT NULL, received_at INTEGER NOT NULL, priority INTEGER NOT NULL DEFAULT 100,
  routed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX idx_unrouted ON buffer (routed, priority, id) WHERE routed = 0;
CREATE INDEX idx_conversation ON buffer (conversation, received_at);
CREATE INDEX idx_retention ON buffer (received_at) WHERE routed = 1;
"""
Put = Callable[[Inbound], Awaitable[object]]
Figures = dict[str, float]


def message(n: int) -> Inbound:
    """The n-th message: 400 bytes of JSON, one of 200 conversations."""
    text = f"message {n} of a person who says something of ordinary length, as people do"
    payload = b'{"text": "%s", "pad": "%s"}' % (text.encode(), b"x" * 300)
    origin = Origin("http", "default", f"c{n % 200}", f"u{n % 50}", trust=Trust.KNOWN)
    return Inbound(origin, Content(payload, text), ProviderMarks(f"evt-{n}"))


async def produce(put: Put, count: int, producers: int) -> Figures:
    """Let producers put `count` messages made beforehand, each waiting for its acknowledgement."""
    return await sent(put, [message(n) for n in range(count)], producers)


async def sent(put: Put, messages: Iterable[Inbound], producers: int) -> Figures:
    """Let producers put messages, each waiting for its acknowledgement; figures of those that were."""
    left, waits = iter(messages), []

    async def producer() -> None:
        for one in left:
            start = time.perf_counter()
            await put(one)
            waits.append(time.perf_counter() - start)

    start = time.perf_counter()
    await asyncio.gather(*(producer() for _ in range(producers)))
    took = time.perf_counter() - start
    waits.sort()
    return {
        "per_s": len(waits) / took,
        "p50_ms": percentile(waits, 50) * 1e3,
        "p99_ms": percentile(waits, 99) * 1e3,
    }


@asynccontextmanager
async def receiving(path: Path) -> AsyncIterator[Put]:
    """The public `receive` on a store of its own, de-duplication and ids included, synchronous=FULL."""
    operations = await open_operations(path)
    try:
        yield MessageIntake(operations, SystemClock(), SystemIds(), {"http": Window()}, IntakeLimits()).receive
    finally:
        await operations.close()


async def ours(folder: Path, count: int, producers: int, *, busy: bool = False) -> Figures:
    """The public `receive`, beside a busy loop if asked."""
    async with receiving(folder / f"ours-{producers}-{busy}.db") as put:
        stop = asyncio.Event()
        burner = asyncio.create_task(burn(stop)) if busy else None
        figures = await produce(put, count, producers)
        stop.set()
        if burner is not None:
            await burner
    return figures


async def burn(stop: asyncio.Event) -> None:
    """Keep the event loop busy in slices of 2 ms, letting others in between."""
    while not stop.is_set():
        until = time.perf_counter() + _BUSY_SLICE_S
        while time.perf_counter() < until:
            pass
        await asyncio.sleep(0)


@asynccontextmanager
async def one_commit_each(path: Path) -> AsyncIterator[Put]:
    """The same messages through aiosqlite, one durable commit each, de-duplicated, ids returned."""
    import aiosqlite  # noqa: PLC0415 - a peer: where it is not installed, the others can still be measured

    async with aiosqlite.connect(path, isolation_level=None) as db:
        await db.execute("PRAGMA journal_mode=WAL")
        await db.execute("PRAGMA synchronous=FULL")
        await db.executescript(_PEER_SCHEMA)

        async def put(one: Inbound) -> object:
            cursor = await db.execute(
                "INSERT INTO buffer (channel, sender, conversation, external_id, payload, received_at, priority)"
                " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (external_id) DO NOTHING RETURNING id",
                (
                    one.origin.channel,
                    one.origin.sender,
                    one.origin.conversation,
                    one.marks.external_id,
                    one.content.payload,
                    time.time_ns() // 1_000_000,
                    one.priority,
                ),
            )
            row = await cursor.fetchone()
            await cursor.close()
            return row

        yield put


async def peer(folder: Path, count: int, producers: int) -> Figures:
    """The same through aiosqlite."""
    async with one_commit_each(folder / "peer.db") as put:
        return await produce(put, count, producers)


def measure(folder: Path, scale: float) -> dict[str, object]:
    """All figures of intake; `scale` 1 is the published size."""
    count = int(60_000 * scale)
    run = asyncio.run
    result: dict[str, object] = {
        "receive_64_producers": run(ours(folder, count, PRODUCERS)),
        "aiosqlite_64_producers": run(peer(folder, max(1_000, count // 10), PRODUCERS)),
        "receive_1_producer": run(ours(folder, max(1_000, count // 10), 1)),
        "receive_beside_busy_loop": run(ours(folder, max(500, count // 20), PRODUCERS, busy=True)),
        "sqlite_of_peer": sqlite3.sqlite_version,
    }
    first, second = result["receive_64_producers"], result["aiosqlite_64_producers"]
    assert isinstance(first, dict)
    assert isinstance(second, dict)
    result["ratio_to_aiosqlite"] = first["per_s"] / second["per_s"]
    return result
