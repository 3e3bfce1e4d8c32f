"""Recall of 100,000 made-up memories in PostgreSQL beside the same in a file: the same questions in turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from bench.contender import Absent
from bench.servers import postgres
from keepsaid.adapters.postgres.connection import PostgresPlace, connect
from keepsaid.adapters.postgres.stores import migrate_stores, open_memories
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.adapters.system.machine import SystemIds
from keepsaid_testkit import latency
from keepsaid_testkit.made_talk import MadeQuestion, MadeTalk

_MEMORIES, _QUESTIONS = 100_000, 100


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Milliseconds a question takes in each place, and how many times as long PostgreSQL takes."""
    for place in (folder.parent, folder):
        place.chmod(0o711)  # a PostgreSQL that runs as another user has to find its files below
    try:
        return asyncio.run(_measured(folder, max(1_000, int(_MEMORIES * scale))))
    except Absent as reason:
        return {"skipped": str(reason)}


async def _measured(folder: Path, count: int) -> dict[str, object]:
    asked = list(MadeTalk().questions(_QUESTIONS))
    server = folder / "server"
    server.mkdir()
    async with postgres(server) as address:
        there = (await _in_postgres(f"postgresql:///?{address.replace(' ', '&')}", count, asked)).shape()
    async with latency.recalling(folder / "memory.db", asked) as (store, recall):
        await latency.fill(store, count, _quiet)
        ours = (await latency.ask(recall, asked)).shape()
    times = {name: round(there[name] / ours[name], 2) for name in ("p50_ms", "p95_ms")}
    return {"memories": count, "questions": len(asked), "files": ours, "postgres": there, "times": times}


async def _in_postgres(url: str, count: int, asked: Sequence[MadeQuestion]) -> latency.Times:
    await asyncio.to_thread(migrate_stores, PostgresPlace(url))  # the writer asks the other store whether it lives
    store = await open_memories(PostgresPlace(url), SystemIds(), TombstoneKeyring(None))
    try:
        await latency.fill(store, count, _quiet)
        with connect(PostgresPlace(url)) as server:  # what autovacuum does within a minute of so many rows
            server.autocommit = True
            server.execute("VACUUM (ANALYZE) memory_posting, memory_piece")
        return await latency.ask(latency.recall_of(store, asked), asked)
    finally:
        await store.close()


def _quiet(_done: int, _total: int, _what: str) -> None:
    """Nobody watches the stores grow."""
