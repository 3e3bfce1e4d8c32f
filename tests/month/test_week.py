"""A week of twenty schedules on three channels, with models that fail: each time once, and nothing said elsewhere."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from tests.month.home import Mouth, played

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.app.instance import Instance, Outside
from keepsaid.app.work import OWNERS_LANE
from keepsaid.config import Config, Home
from keepsaid.domain.schedule import Schedule, ScheduleRun, What
from keepsaid.domain.timing import Cron, next_due
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.errors import ModelRejected, ModelUnreachable
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid_testkit.simulator.clock import EPOCH_MS, SimClock, Wall
from keepsaid_testkit.simulator.disk import MemoryStoreDisk
from keepsaid_testkit.simulator.loop import VirtualLoop

DAY_MS = 86_400_000
CHANNELS = ("desk", "phone", "wall")
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "UTC")
TIMES = ("0 8 * * *", "30 2 * * *", "0 6,18 * * *", "15 9 * * 1-5", "45 22 * * *")


def named(n: int) -> dict[str, object]:
    """The n-th schedule: what it says begins with where it is to be heard."""
    channel, room = CHANNELS[n % 3], f"room-{n % 7}"
    text = f"{channel} {room} schedule-{n}"
    to = {"channel": channel, "conversation": room}
    when = {"cron": TIMES[n % 5], "timezone": ZONES[n % 4]}
    return {**when, "to": to, "urgent": n % 2 == 0, "say" if n % 2 else "ask": text}


def config() -> Config:
    channels = {name: {"window_ms": 0} for name in CHANNELS}
    schedules = {"quiet": "23:00-06:00", "named": {f"s{n}": named(n) for n in range(20)}}
    settled = {"bulletin": {"enabled": False}, "collection": {"extractor": "none"}, "maintenance": {"enabled": False}}
    return Config.model_validate({"channels": channels, "schedules": schedules, **settled})


class Moody:
    """A model that says what it was asked, refuses one question for ever, and is often not there."""

    name = "test/moody"

    def __init__(self) -> None:
        self._chance = Random(7)

    async def answer(self, request: ModelRequest, _delta: Delta) -> ModelAnswer:
        asked = request.prompt.parts[-1][1].text
        if "schedule-4\n" in f"{asked}\n":
            raise ModelRejected("I will not")
        if self._chance.random() < 0.2:
            raise ModelUnreachable("nobody is there")
        words = next(line for line in reversed(asked.splitlines()) if "schedule-" in line)
        return ModelAnswer(words[words.index(next(one for one in CHANNELS if one in words)) :], (), Usage(), self.name)


class Week:
    """One machine on which the runtime is stopped and started; its disk and its clock go on."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.loop = loop
        self.wall = Wall(loop.time)
        self.ids = SystemIds(self.wall.now_ms, Random(1).getrandbits)
        self.mouths = {name: Mouth(name) for name in CHANNELS}
        self.store = InMemoryOperations()
        self._memories = MemoryStoreDisk().open(self.ids)
        self.instance = self._made()

    def _made(self) -> Instance:
        outside = Outside(SimClock(self.wall), self.ids, dict(self.mouths))
        return Instance(Home.at(Path("simulated")), config(), (self.store, self._memories), Moody(), outside)

    async def restart(self) -> None:
        await self.instance.stop()
        self.instance = self._made()
        await self.instance.start()

    async def until(self, end: int) -> None:
        """Live until a time on the wall: from one thing that is due to the next."""
        while (now := self.wall.now_ms()) < end:
            due = await self.store.schedules.next_due() or end
            self.loop.pass_by(max(0, min(due, end) - now) / 1_000)
            await self.rest()

    async def rest(self) -> None:
        """Wait until nothing is under way but what waits for its time."""
        for _ in range(600):
            await asyncio.sleep(0.5)
            seen = await self.store.overview()
            busy = sum(channel.unrouted for channel in seen.channels) + seen.replies.get("pending", 0)
            busy -= len(await self.store.unseen(OWNERS_LANE.channel, OWNERS_LANE.conversation))  # nobody is there
            if not busy + sum(seen.batches.get(state, 0) for state in ("queued", "leased")):
                break

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a statement reads."""
        return self.store.database.rows(sql)

    async def schedules(self) -> Sequence[Schedule]:
        """All schedules."""
        return await self.store.schedules.schedules(("active", "paused", "disabled", "cancelled"), 0, 100)

    async def runs(self) -> list[tuple[str, ScheduleRun]]:
        """All runs there were, with the text of their schedule."""
        found = await self.schedules()
        return [(one.new.text, run) for one in found for run in await self.store.schedules.runs(one.id, 1_000)]


async def week(home: Week) -> None:
    """Seven days: a restart every morning, an evening switched off, a clock set on and back."""
    for day in range(1, 8):
        await home.until(EPOCH_MS + day * DAY_MS - DAY_MS // 2)
        if day == 3:
            home.wall.jump(3 * 3_600_000)
        if day == 4:
            home.wall.jump(-3 * 3_600_000)
        if day == 5:
            await home.instance.stop()
            home.loop.pass_by(12 * 3_600)
        await home.until(EPOCH_MS + day * DAY_MS)
        await home.restart()
    await home.rest()
    await asyncio.sleep(60)


def test_a_week_says_everything_where_it_belongs_and_once() -> None:
    homes: list[Week] = []

    def made(loop: VirtualLoop) -> Week:
        homes.append(Week(loop))
        return homes[0]

    played(made, week)
    [home] = homes
    runs = asyncio.run(home.runs())
    said = [reply for mouth in home.mouths.values() for reply in mouth.said if not reply.draft.notice]
    assert len(said) > 100
    astray = [r.draft.text for r in said if r.draft.text.split()[:2] != [r.lane.channel, r.lane.conversation]]
    assert astray == []
    delivered = Counter(text for text, run in runs if run.output == "delivered")
    assert Counter(reply.draft.text for reply in said) == delivered
    told = [
        json.loads(payload) for (payload,) in home.rows("SELECT payload FROM journal WHERE topic = 'schedule.fired'")
    ]
    assert len(told) == len({(one["schedule"], one["due"]) for one in told})
    failing = home.rows("SELECT text FROM schedule WHERE state = 'disabled'")
    assert failing == [("phone room-4 schedule-4",)]
    [(notice,)] = home.rows("SELECT text FROM reply WHERE channel = 'terminal'")
    assert "is disabled" in notice
    assert not missing(home)
    assert {run.state for _, run in runs} <= {"executed", "skipped"}


def missing(home: Week) -> list[tuple[str, int]]:
    """Times that came and have no row in the ledger, though nothing was switched off, set or failing then."""
    lost = []
    odd = [(2.4, 4.0), (4.4, 5.0)]
    schedules = asyncio.run(home.schedules())
    known = set(home.rows("SELECT schedule_id, due_at FROM schedule_run"))
    for row in schedules:
        timing, due = row.new.timing, EPOCH_MS
        assert isinstance(timing, Cron)
        while (following := next_due(timing, due, due)) is not None and following < EPOCH_MS + 7 * DAY_MS:
            due, day = following, (following - EPOCH_MS) / DAY_MS
            if (
                (row.id, due) not in known
                and row.state == "active"
                and not any(begin <= day <= end for begin, end in odd)
            ):
                lost.append((row.new.text, due))
    assert any(row.new.what is What.ASK for row in schedules)
    return lost
