"""Trying: one thing asked of an extension, within a time limit, and what was wrong with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from keepsaid.extensions.guest import Fault, Phase, fault_of

_LEAVE_S = 0.5
"""How long one that was broken off gets to end; one that does not heed it is left behind."""


async def tried(phase: Phase, work: Callable[[], Awaitable[Any]], limit_s: float) -> Fault | None:
    """Do something of an extension; what was wrong, if anything was. Raises only when its caller is cancelled."""
    task = asyncio.create_task(_guarded(phase, work), name=f"extension-{phase}")
    try:
        done, _ = await asyncio.wait((task,), timeout=limit_s)
    except asyncio.CancelledError:
        task.cancel()
        raise
    if not done:
        task.cancel()
        await asyncio.wait((task,), timeout=_LEAVE_S)
        return Fault(phase, f"it took longer than {limit_s:g} s")
    return Fault(phase, "it cancelled itself") if task.cancelled() else task.result()


async def _guarded(phase: Phase, work: Callable[[], Awaitable[Any]]) -> Fault | None:
    try:
        await work()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # guard: extension - what it raises is its own end alone
        return fault_of(phase, error)
    return None
