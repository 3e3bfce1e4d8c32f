"""Waiting for something to happen: whoever waits is woken by the commit that tells of it."""

from __future__ import annotations

import asyncio
from pathlib import Path

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.commits import Tell
from keepsaid.engine.subscriptions import Subscribers
from keepsaid.testing.clock import VirtualClock


async def test_who_waits_is_woken_though_nobody_has_subscribed() -> None:
    store = InMemoryOperations()
    subscribers = Subscribers(store, VirtualClock())
    with subscribers.happened.listening() as rung:
        assert await subscribers.work() is None
        assert rung.is_set()


async def test_who_waits_is_woken_by_what_was_written_down_however_long_ago_he_looked(tmp_path: Path) -> None:
    async with opened(Home.at(tmp_path), Config()) as instance:
        await instance.start(answering=False)
        telling, clock = instance.telling, instance.clock
        waiting = asyncio.ensure_future(telling.wait_for("deploy.finished", "build-8", 30))
        with telling.listening() as told:
            before = clock.monotonic_ms()
            await instance.operations.apply(Tell("deploy.finished", "{}", clock.now_ms(), "build-8"))
            assert await waiting is not None
            await told.wait()
            assert clock.monotonic_ms() - before < 2_000
