"""Loops: do a stage's work until there is none, then wait for a hint or the next due time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from keepsaid.errors import KeepsaidError, StoreBroken
from keepsaid.ports.clock import Clock

_log = logging.getLogger("keepsaid.engine")
_FAILED_WAIT_MS = 1_000


async def _nothing_due() -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage as a loop sees it: `work` returns how much it did, `due` when there is more to do."""

    name: str
    work: Callable[[], Awaitable[int]]
    hint: asyncio.Event
    poll_ms: int = 5_000
    due: Callable[[], Awaitable[int | None]] = _nothing_due


async def keep_going(stage: Stage, clock: Clock, broken: Callable[[StoreBroken], None]) -> None:
    """Run a stage until cancelled; an error is logged and waited out, a broken disk ends it."""
    while True:
        try:
            wait_ms = await _round(stage, clock)
        except StoreBroken as error:
            broken(error)
            return
        except KeepsaidError as error:
            _log.warning("stage %s: %s", stage.name, error.what, extra={"code": error.code})
            wait_ms = _FAILED_WAIT_MS
        except Exception as error:  # noqa: BLE001  # guard: engine loop - one bad item must not stop a stage
            _log.error("stage %s failed", stage.name, exc_info=error)
            wait_ms = _FAILED_WAIT_MS
        await clock.wait(stage.hint, wait_ms)


async def _round(stage: Stage, clock: Clock) -> float:
    """One round of work; returns how long to wait for the next, in milliseconds."""
    if await stage.work():
        return 0
    due = await stage.due()
    return stage.poll_ms if due is None else max(0, min(stage.poll_ms, due - clock.now_ms()))
