"""The watchdog logs where a held event loop stands, once a hold, and how long it was held."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.waits import HANG_S

from keepsaid.adapters.system.machine import Watchdog

_LIMIT_S = 0.2
_OFTEN = 10


class Heard(logging.Handler):
    """Keeps what the watchdog logs, and lets threads wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []
        self._news = threading.Condition()

    def emit(self, record: logging.LogRecord) -> None:
        with self._news:
            self.records.append(record)
            self._news.notify_all()

    def wait(self, count: int) -> None:
        """Block this thread until so much was logged."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.records) >= count, HANG_S)

    def more_than(self, count: int, seconds: float) -> bool:
        """Block this thread for some seconds, or until more was logged; returns whether it was."""
        with self._news:
            return self._news.wait_for(lambda: len(self.records) > count, seconds)


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler, log = Heard(), logging.getLogger("keepsaid.watchdog")
    log.addHandler(handler)
    yield handler
    log.removeHandler(handler)


class Feeding:
    """Counts how often the watchdog was to feed."""

    def __init__(self) -> None:
        self.times = 0
        self.often = asyncio.Event()

    def __call__(self) -> None:
        self.times += 1
        if self.times >= _OFTEN:
            self.often.set()


@contextmanager
def watching(limit_s: float, feed_s: float | None = None) -> Iterator[Feeding]:
    """A watchdog of the running loop."""
    feeding = Feeding()
    watchdog = Watchdog(limit_s, feeding, feed_s)
    try:
        yield feeding
    finally:
        watchdog.end()


def hold_the_loop(heard: Heard, count: int) -> None:
    heard.wait(count)


async def test_a_held_loop_is_logged_with_its_stack_and_again_when_it_is_free(heard: Heard) -> None:
    with watching(_LIMIT_S):
        hold_the_loop(heard, 1)
        await asyncio.to_thread(heard.wait, 2)
    held, free = heard.records
    stack = held.__dict__["stack"]
    assert [line for line in stack if line.endswith(" in hold_the_loop")], stack
    assert stack[-1].rpartition("/")[2].startswith("threading.py:"), "the innermost call comes last"
    assert "held for" in held.getMessage()
    assert held.__dict__["held_s"] >= _LIMIT_S
    assert "runs again" in free.getMessage()
    assert free.__dict__["held_s"] >= held.__dict__["held_s"]


async def test_each_hold_is_logged_once(heard: Heard) -> None:
    with watching(_LIMIT_S):
        for count in (1, 3):
            hold_the_loop(heard, count)
            assert not heard.more_than(count, 2 * _LIMIT_S), "the hold goes on, and is not logged again"
            await asyncio.to_thread(heard.wait, count + 1)
    assert ["runs again" in one.getMessage() for one in heard.records[:4]] == [False, True, False, True]


async def test_a_loop_that_runs_is_not_logged(heard: Heard) -> None:
    with watching(HANG_S, feed_s=0.005) as feeding:
        await feeding.often.wait()
    assert heard.records == []


async def test_without_a_limit_it_feeds_and_starts_no_thread(heard: Heard) -> None:
    with watching(0.0, feed_s=0.005) as feeding:
        await feeding.often.wait()
        assert not [one for one in threading.enumerate() if one.name == "keepsaid-watchdog"]


async def test_after_its_end_neither_thread_nor_timer_is_left(heard: Heard) -> None:
    with watching(HANG_S) as feeding:
        [thread] = [one for one in threading.enumerate() if one.name == "keepsaid-watchdog"]
        await asyncio.sleep(0)
    thread.join(HANG_S)
    assert not thread.is_alive()
    assert feeding.times == 1
