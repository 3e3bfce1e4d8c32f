"""The gauge: a warning once for each crossing, in the log and the journal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.engine.supervisor import BacklogLimits, BacklogMonitor
from keepsaid.testing.builders import said
from keepsaid.testing.clock import VirtualClock
from keepsaid_testkit.contracts.store_driver import StoreDriver


class Scene:
    """A store in which things wait, and its gauge."""

    def __init__(self, marks: BacklogLimits) -> None:
        self.store = InMemoryOperations()
        self.clock = VirtualClock()
        self.gauge = BacklogMonitor(self.store, self.clock, marks)
        self.road = StoreDriver(self.store)

    async def hear(self, count: int) -> None:
        """Messages come in, each in a room of its own."""
        for _ in range(count):
            await self.road.receive(said(room=f"room {self.road.new_id()}"), self.clock.now_ms())

    async def answer(self, count: int) -> None:
        """As many are answered, the oldest first."""
        groups = await self.store.due(1 << 60, count)
        for group in groups:
            await self.road.route(group.lane, self.clock.now_ms())
        for claimed in await self.road.claim(self.clock.now_ms(), count):
            await self.road.answer(claimed)

    def told(self) -> list[dict[str, Any]]:
        """What stands in the journal."""
        told = self.store.database.rows("SELECT payload FROM journal WHERE topic = 'buffer.backlog' ORDER BY id")
        return [json.loads(payload) for (payload,) in told]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if getattr(record, "code", "") == "KS-BACKLOG"]


async def test_a_crossing_is_told_once_until_it_was_calm_again(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(BacklogLimits(count=10, age_ms=1_000_000))
    waits = 0
    heard: list[int] = []
    for change in (9, 1, 5, -7, 3, -4, 2, 3):  # 9, 10, 15, 8, 11, 7, 9, 12 wait
        waits += change
        await (scene.hear(change) if change > 0 else scene.answer(-change))
        assert (await scene.store.backlog()).waiting == waits
        await scene.gauge.work()
        await scene.gauge.work()
        heard.append(len(scene.told()))
    assert heard == [0, 1, 1, 1, 1, 1, 1, 2]
    assert [(one["what"], one["waiting"], one["limit"]) for one in scene.told()] == [
        ("count", 10, 10),
        ("count", 12, 10),
    ]
    assert len(warnings(caplog)) == 2


async def test_the_oldest_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(BacklogLimits(count=100, age_ms=600_000))
    await scene.hear(1)
    for _ in range(3):
        await scene.clock.advance(300_000)
        await scene.gauge.work()
    assert [(one["what"], one["oldest_age_ms"]) for one in scene.told()] == [("age", 600_000)]
    assert warnings(caplog) == ["1 messages wait, the oldest for 600 s"]
    await scene.answer(1)
    await scene.gauge.work()
    await scene.hear(1)
    await scene.clock.advance(600_000)
    await scene.gauge.work()
    assert len(scene.told()) == 2


async def test_a_clock_set_back_is_no_age() -> None:
    scene = Scene(BacklogLimits(count=100, age_ms=1))
    await scene.hear(1)
    scene.clock.jump(-3_600_000)
    await scene.gauge.work()
    assert scene.told() == []
