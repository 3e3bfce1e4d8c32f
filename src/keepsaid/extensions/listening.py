"""Listening: channels of extensions hear what is said for as long as the runtime goes; one that ends begins anew."""

from __future__ import annotations

import asyncio
import logging

from keepsaid.extensions.guest import Guest
from keepsaid.ports.channel import Inbox
from keepsaid.ports.runtime import Clock

_log = logging.getLogger("keepsaid.extensions")
_AGAIN_MS, _AGAIN_MS_MAX = 1_000, 60_000
_LONG_MS = 60_000
"""One that listened for so long before it failed begins anew after the shortest wait."""


class Listeners:
    """One coroutine a channel that listens."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._listening: dict[str, asyncio.Task[None]] = {}

    def begin(self, guest: Guest) -> None:
        """Let one listen."""
        assert guest.context is not None, "what is active has a context"
        work = self._listen(guest, guest.context.inbox)
        self._listening[guest.id] = asyncio.create_task(work, name=f"listen-{guest.id}")

    async def end(self, id_: str | None = None, patience_s: float = 2.0) -> None:
        """Let one, or all, listen no more; one that does not heed is left behind."""
        ended = [
            self._listening.pop(one) for one in ([id_] if id_ else list(self._listening)) if one in self._listening
        ]
        for task in ended:
            task.cancel()
        if ended:
            await asyncio.wait(ended, timeout=patience_s)

    async def _listen(self, guest: Guest, inbox: Inbox) -> None:
        wait_ms = _AGAIN_MS
        while guest.active and guest.provided.listen is not None:
            began = self._clock.monotonic_ms()
            try:
                await guest.provided.listen(inbox)
                _log.warning("the channel of %s stopped listening", guest.id)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # guard: extension - the channel begins anew
                _log.warning("the channel of %s failed (%s)", guest.id, type(error).__name__, exc_info=error)
            if self._clock.monotonic_ms() - began > _LONG_MS:
                wait_ms = _AGAIN_MS
            await self._clock.wait(asyncio.Event(), wait_ms)
            wait_ms = min(2 * wait_ms, _AGAIN_MS_MAX)
