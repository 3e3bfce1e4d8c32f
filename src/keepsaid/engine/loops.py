"""Loops: do a stage's work until there is none, then wait for a hint or the next due time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from keepsaid.errors import KeepsaidError, StoreBroken
from keepsaid.ports.runtime import Clock

_log = logging.getLogger("keepsaid.engine")
_FAILED_WAIT_MS = 1_000
_BROKEN_WAIT_MS = 60_000


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage as a loop sees it.

    `work` does what there is to do and returns when to come again, wall milliseconds: 0 at once, None when
    only a hint or the poll interval can tell. `vital` says that nothing is kept any more when its store is
    broken; the others go on without what it does.
    """

    name: str
    work: Callable[[], Awaitable[int | None]]
    hint: asyncio.Event
    poll_ms: int = 5_000
    vital: bool = True


async def keep_going(stage: Stage, clock: Clock, broken: Callable[[StoreBroken], None]) -> None:
    """Run a stage until cancelled; an error is logged and waited out, a broken disk ends it."""
    while True:
        try:
            wait_ms = await _round(stage, clock)
        except StoreBroken as error:
            if stage.vital:
                broken(error)
                return
            _log.error("stage %s: %s", stage.name, error.what, extra={"code": error.code})
            wait_ms = _BROKEN_WAIT_MS
        except KeepsaidError as error:
            _log.warning("stage %s: %s", stage.name, error.what, extra={"code": error.code})
            wait_ms = _FAILED_WAIT_MS
        except Exception as error:  # noqa: BLE001  # guard: engine loop - one bad item must not stop a stage
            _log.error("stage %s failed", stage.name, exc_info=error)
            wait_ms = _FAILED_WAIT_MS
        if _cancelled():
            return
        await clock.wait(stage.hint, wait_ms)


def _cancelled() -> bool:
    """Whether the loop was cancelled, though it heard of something else: a gathering may tell of a failure instead."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _round(stage: Stage, clock: Clock) -> float:
    """One round of work; returns how long to wait for the next, in milliseconds."""
    due = await stage.work()
    return stage.poll_ms if due is None else max(0, min(stage.poll_ms, due - clock.due_ms()))
