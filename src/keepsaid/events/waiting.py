"""Waiting for something to happen, over restarts: what happened meanwhile stands in the journal."""

from __future__ import annotations

from keepsaid.domain.event import Event
from keepsaid.events.bell import Bell
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import JournalView

_LOOK_MS = 5_000
"""Should a ring be missed."""


async def wait_for(
    journal: JournalView, clock: Clock, bell: Bell, wanted: tuple[str, str, int], timeout_ms: float
) -> Event | None:
    """The first event of a topic about something after an event (`wanted`), as soon as there is one.

    None when there is none in time. Whoever asks again after a restart with the same `wanted` misses nothing.
    """
    topic, correlation_id, after = wanted
    until = clock.monotonic_ms() + timeout_ms
    with bell.listening() as rung:
        while True:
            found = await journal.happened(topic, correlation_id, after)
            left = until - clock.monotonic_ms()
            if found is not None or left <= 0:
                return found
            await clock.wait(rung, min(left, _LOOK_MS))
