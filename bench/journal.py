"""The journal: what it adds to intake, how fast events reach a subscriber, and what one that hangs is to the others."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.disk import percentile
from bench.intake import PRODUCERS, produce
from keepsaid.adapters.sql.operations import journal
from keepsaid.adapters.sqlite.stores import SqliteOperations, open_operations
from keepsaid.adapters.system.machine import SystemClock, SystemIds
from keepsaid.domain.batch import Window
from keepsaid.domain.commits import Tell
from keepsaid.domain.event import EACH, RECEIVED, Event, several
from keepsaid.engine.subscriptions import Subscriber, Subscribers
from keepsaid.engine.subscriptions import Tell as Telling
from keepsaid.engine.supervisor import ServiceLoop, keep_going
from keepsaid.pipeline.intake import IntakeLimits, MessageIntake

_ROUNDS = 3
_OTHERS = 20
_PACE_S = 0.01
Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Office:
    """A store with subscribers, running."""

    store: SqliteOperations
    subscribers: Subscribers
    hint: asyncio.Event

    async def tell(self, name: str, topics: tuple[str, ...], tell: Telling) -> None:
        """Tell somebody of topics from now on."""
        await self.subscribers.add(Subscriber(name, tell, self.store, SystemClock(), SystemIds()), topics)


@asynccontextmanager
async def office(path: Path) -> AsyncIterator[Office]:
    """A new store, its dispatcher at work."""
    store = await open_operations(path)
    hint = store.journal.hint
    subscribers = Subscribers(store, SystemClock())
    stage = ServiceLoop("tell", subscribers.work, hint, poll_ms=1_000)
    loop = asyncio.create_task(keep_going(stage, SystemClock(), lambda _: None))
    try:
        yield Office(store, subscribers, hint)
    finally:
        await subscribers.stop()
        loop.cancel()
        await asyncio.gather(loop, return_exceptions=True)
        await store.close()


def measure(folder: Path, scale: float) -> dict[str, object]:
    """All figures; `scale` 1 is the published size."""
    return asyncio.run(_measured(folder, scale))


async def _measured(folder: Path, scale: float) -> dict[str, object]:
    rounds = [await _intake(folder, n, int(30_000 * scale)) for n in range(_ROUNDS)]
    return {
        "intake": rounds,
        "intake_added": sorted(one["without"] / one["with"] - 1 for one in rounds)[_ROUNDS // 2],
        "deliveries": await _delivered(folder / "deliveries.db", int(50_000 * scale)),
        "beside_one_that_hangs": await _beside(folder, int(1_000 * scale)),
    }


async def _intake(folder: Path, n: int, count: int) -> Figures:
    """Messages a second, with the journal's line for what came in and without it."""
    found: Figures = {}
    keep = journal.write_received
    for name in ("with", "without"):
        if name == "without":
            journal.write_received = lambda *_: None
        try:
            async with office(folder / f"{name}-{n}.db") as one:
                door = MessageIntake(one.store, SystemClock(), SystemIds(), {"http": Window()}, IntakeLimits())
                found[name] = (await produce(door.receive, count, PRODUCERS))["per_s"]
        finally:
            journal.write_received = keep
    return found


async def _delivered(path: Path, count: int) -> Figures:
    """Events a second, from the journal to the end of their deliveries, for one who does nothing with them."""
    heard, last = 0, asyncio.Event()

    async def hear(_event: Event) -> None:
        nonlocal heard
        heard += 1
        if heard == count:
            last.set()

    async with office(path) as one:
        each = min(EACH, 64)
        for first in range(0, count, each):
            facts = [(str(n), {"message": n}) for n in range(first, min(first + each, count))]
            await one.store.apply(Tell(RECEIVED, several(facts), 0))
        began, processor = time.perf_counter(), time.process_time()
        subscriber = Subscriber("one", hear, one.store, SystemClock(), SystemIds())
        await one.subscribers.add(subscriber, (RECEIVED,), from_start=True)
        await last.wait()
        took, spent = time.perf_counter() - began, time.process_time() - processor
    return {"events": float(count), "per_s": count / took, "per_processor_s": count / spent}


async def _beside(folder: Path, count: int) -> dict[str, object]:
    """How long an event takes to one subscriber: alone, beside others that are done at once, beside such that hang."""
    alone = await _paced(folder / "alone.db", count, 0)
    quick = await _paced(folder / "quick.db", count, _OTHERS)
    hanging = await _paced(folder / "hanging.db", count, _OTHERS, hang=True)
    return {"alone": alone, "quick": quick, "hanging": hanging, "p99_ratio": hanging["p99_ms"] / quick["p99_ms"]}


async def _paced(path: Path, count: int, others: int, *, hang: bool = False) -> Figures:
    waits: list[float] = []
    done = asyncio.Event()

    async def hear(event: Event) -> None:
        waits.append(time.perf_counter() - float(str(event.payload["sent"])))
        if len(waits) == count:
            done.set()

    async def other(_event: Event) -> None:
        if hang:
            await asyncio.Event().wait()

    async with office(path) as one:
        await one.tell("quick", ("tick.*",), hear)
        for n in range(others):
            await one.tell(f"other-{n}", ("tick.*",), other)
        for n in range(count):
            await one.store.apply(Tell("tick.tock", json.dumps({"sent": time.perf_counter()}), 0, str(n)))
            one.hint.set()
            await asyncio.sleep(_PACE_S)
        await done.wait()
    waits.sort()
    return {"p50_ms": percentile(waits, 50) * 1e3, "p99_ms": percentile(waits, 99) * 1e3}
