"""Maintenance: a whole run over a memory that is large, and intake beside it and without.

Half of what is there was said, half learned, over 430 days, so that about one learned memory in thirty is archived.
"""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from bench.disk import percentile
from bench.intake import Put, message, receiving
from keepsaid.adapters.embedders.hashed import Hashed
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.adapters.system.machine import SystemClock, SystemIds
from keepsaid.domain.graph import Association, Relation
from keepsaid.domain.maintenance import DAY_MS
from keepsaid.domain.memory import IMPORTANCE, Kind, NewMemory, NewVector, conversation_scope
from keepsaid.domain.message import Lane, Trust
from keepsaid.memory.indexing import AssociationFinder, Embedding
from keepsaid.memory.maintenance import Maintenance, MaintenanceProgress
from keepsaid_testkit.made_talk import MadeTalk

_EACH = 1_000
_ROOMS = 50
_DAYS = 430
_A_SECOND = 200
_ALONE_S = 15.0

Figures = dict[str, float]
T = TypeVar("T")


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Seconds of a run alone and beside intake, its longest step, and what intake takes beside it."""
    return asyncio.run(_measured(folder, int(100_000 * scale)))


async def _measured(folder: Path, count: int) -> dict[str, object]:
    made, beside = folder / "made.db", folder / "beside.db"
    await _fill(made, count)
    shutil.copyfile(made, beside)
    alone, seconds = await _maintained(made)
    async with receiving(folder / "intake.db") as put:
        load = Load(put)
        before, _ = await load.beside(asyncio.sleep(_ALONE_S))
        while_maintained, (done, took) = await load.beside(_maintained(beside))
        after, _ = await load.beside(asyncio.sleep(_ALONE_S))
    quiet = (before["p99_ms"] + after["p99_ms"]) / 2
    return {
        "memories": count,
        "seconds": seconds,
        "steps": alone.steps,
        "faded": sum(alone.changed.values()),
        "archived": alone.archived,
        "related": alone.related,
        "longest_step_ms": alone.longest_ms,
        "beside_intake": {"seconds": took, "longest_step_ms": done.longest_ms},
        "intake": {"before": before, "beside": while_maintained, "after": after},
        "intake_p99_ratio": while_maintained["p99_ms"] / quiet,
    }


class Load:
    """Messages at a steady pace, each sent when it is due whether or not the one before is acknowledged."""

    def __init__(self, put: Put) -> None:
        self._put = put
        self._sent = 0

    async def beside(self, work: Awaitable[T]) -> tuple[Figures, T]:
        """How long acknowledgements take while something is done, and what came of that."""
        doing = asyncio.ensure_future(work)
        waits: list[float] = []
        under_way: set[asyncio.Task[None]] = set()
        began = time.perf_counter()
        n = 0
        while not doing.done():
            task = asyncio.create_task(self._one(waits))
            under_way.add(task)
            task.add_done_callback(under_way.discard)
            n += 1
            await asyncio.sleep(max(0.0, began + n / _A_SECOND - time.perf_counter()))
        await asyncio.gather(*under_way)
        waits.sort()
        figures = {"messages": float(n), "p50_ms": percentile(waits, 50) * 1e3, "p99_ms": percentile(waits, 99) * 1e3}
        return figures, await doing

    async def _one(self, waits: list[float]) -> None:
        self._sent += 1
        one, began = message(self._sent), time.perf_counter()
        await self._put(one)
        waits.append(time.perf_counter() - began)


async def _maintained(path: Path) -> tuple[MaintenanceProgress, float]:
    """A whole run, as a person or the night asks for it."""
    async with _opened(path) as store:
        clock = SystemClock()
        embedding = Embedding(Hashed(), store, clock)
        associating = AssociationFinder(store.relating, store, store.graph, clock)
        began = time.perf_counter()
        done = await Maintenance(store.upkeep, clock, embedding=embedding, associating=associating).run()
        return done, time.perf_counter() - began


@asynccontextmanager
async def _opened(path: Path) -> AsyncIterator[SqliteMemories]:
    store = await open_memories(path, SystemIds())
    try:
        yield store
    finally:
        await store.close()


async def _fill(path: Path, count: int) -> None:
    """Memories with hashed vectors, two associations each."""
    talk, embedder = MadeTalk(), Hashed()
    now, last = SystemClock().now_ms(), 0
    async with _opened(path) as store:
        space = await embedder.space()
        for first in range(0, count, _EACH):
            texts = talk.texts(first, min(_EACH, count - first))
            at = now - _DAYS * DAY_MS * (count - first) // count
            made = [_memory(first + n, text, at) for n, text in enumerate(texts)]
            ids = await store.keep(made, at)
            due = await store.unembedded(space, last, 2 * _EACH)
            vectors = await embedder.texts([one.text for one in due])
            last = due[-1].piece_id if due else last
            new = [NewVector(one.piece_id, vector) for one, vector in zip(due, vectors, strict=True)]
            await store.keep_vectors(space, new, now, last)
            await store.graph.relate(_edges(ids), (), now)


def _memory(n: int, text: str, said_at: int) -> NewMemory:
    kind = list(IMPORTANCE)[n // 2 % len(IMPORTANCE)] if n % 2 else Kind.EPISODE
    lane = Lane("library", "default", f"room {n % _ROOMS}", "root")
    return NewMemory(
        key=f"made:{n}",
        kind=kind,
        text=text,
        scope=conversation_scope(lane),
        trust=Trust.KNOWN,
        lane=lane,
        speaker=MadeTalk.speaker(n),
        said_at=said_at,
        importance=IMPORTANCE.get(kind, 0.5),
    )


def _edges(ids: Sequence[int]) -> list[Association]:
    return [
        Association(one, ids[(n * 31 + step) % len(ids)], Relation.PART_OF, 0.5)
        for n, one in enumerate(ids)
        for step in (7, 77)
        if one != ids[(n * 31 + step) % len(ids)]
    ]
