"""Schedules: what a look at many costs when nothing is due, and what a thousand that are due at once are to intake."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench.disk import percentile
from keepsaid.adapters.sqlite.stores import SqliteOperations, open_operations
from keepsaid.adapters.system.machine import SystemClock, SystemIds
from keepsaid.domain.batch import Window
from keepsaid.domain.commits import Received
from keepsaid.domain.message import Content, Inbound, Lane, Origin, Trust, lane_key
from keepsaid.domain.schedule import NewSchedule, Target, What
from keepsaid.domain.scheduling import ReplaceSchedules
from keepsaid.domain.timing import Cron
from keepsaid.engine.scheduler import JobRunner, Scheduler, SchedulerDeps
from keepsaid.pipeline.intake import IntakeLimits, MessageIntake
from keepsaid.ports.runtime import Wakeups

_LOOKS = 200
_PACE_S = 0.005
_MORNING = Cron("30 8 * * *", "Europe/Berlin")


def measure(folder: Path, scale: float) -> dict[str, float]:
    """Milliseconds of a look among 10,000, and of intake alone and beside 1,000 that are due at once."""
    return asyncio.run(_measured(folder / "schedules.db", scale))


async def _measured(path: Path, scale: float) -> dict[str, float]:
    store = await open_operations(path)
    clock, ids = SystemClock(), SystemIds()
    door = MessageIntake(store, clock, ids, {"bench": Window()}, IntakeLimits())
    owner = Lane("bench", "default", "owner", lane_key("owner"))
    reach = SchedulerDeps(door.receive, frozenset({"bench"}), Wakeups(), owner)
    scheduler = Scheduler(store, clock, ids, reach, JobRunner())
    try:
        await scheduler.recover()
        await _keep(store, int(10_000 * scale), clock.now_ms() + 86_400_000)
        looks = sorted([await _look(scheduler) for _ in range(_LOOKS)])
        alone = await _intake(door, asyncio.sleep(2))
        await _keep(store, due := int(1_000 * scale), clock.now_ms(), "due")
        began = time.perf_counter()
        beside = await _intake(door, _until_done(scheduler))
        took_s = time.perf_counter() - began
    finally:
        await store.close()
    return {
        "look_ms_p50": percentile(looks, 50),
        "look_ms_p99": percentile(looks, 99),
        "due_at_once": due,
        "executed_a_second": due / took_s,
        "intake_ms_p99_alone": percentile(alone, 99),
        "intake_ms_p99_beside": percentile(beside, 99),
    }


async def _keep(store: SqliteOperations, count: int, next_at: int, source: str = "bench") -> None:
    ids = SystemIds()
    wanted = []
    for n in range(count):
        lane = Lane("bench", "default", f"room-{n % 100}", lane_key(f"room-{n % 100}"))
        new = NewSchedule(ids.next(), source, f"s{n}", _MORNING, What.SAY, "good morning", Target(lane))
        wanted.append((new, next_at))
    await store.apply(ReplaceSchedules(source, tuple(wanted), 0))


async def _look(scheduler: Scheduler) -> float:
    began = time.perf_counter()
    await scheduler.work()
    return 1_000 * (time.perf_counter() - began)


async def _until_done(scheduler: Scheduler) -> None:
    """As the stage does it: again and again, with a moment between."""
    clock = SystemClock()
    while (due := await scheduler.work()) is not None and due - clock.due_ms() < 1_000:
        await clock.wait(asyncio.Event(), due - clock.due_ms())


async def _intake(door: MessageIntake, beside: object) -> list[float]:
    """How long each message took to be stored while something went on, sorted."""
    assert asyncio.iscoroutine(beside)
    other = asyncio.ensure_future(beside)
    took: list[float] = []
    while not other.done():
        began = time.perf_counter()
        await _said(door, len(took))
        took.append(1_000 * (time.perf_counter() - began))
        await asyncio.sleep(_PACE_S)
    await other
    return sorted(took)


async def _said(door: MessageIntake, number: int) -> Received:
    origin = Origin("bench", "default", f"talk-{number % 20}", "ann", trust=Trust.KNOWN)
    return await door.receive(Inbound(origin, Content(b"hello", "hello")))
