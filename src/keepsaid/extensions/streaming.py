"""Streaming: pieces of answers go to the channels that show them; one that does not keep up misses pieces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Message
from keepsaid.extensions.guest import Guest
from keepsaid.ports.progress import Progress, Progresses

_log = logging.getLogger("keepsaid.extensions")
_PIECES_MAX = 256

Piece = tuple[Lane, str]


class Streams:
    """Tells those who wait for a message, and the channel it came by."""

    def __init__(self, others: Progresses, active: Callable[[], Sequence[Guest]]) -> None:
        self._others = others
        self._active = active
        self._queues: dict[str, tuple[asyncio.Queue[Piece], asyncio.Task[None]]] = {}

    def tell(self, messages: Sequence[Message], progress: Progress) -> None:
        """Tell everybody; never blocks."""
        self._others.tell(messages, progress)
        if not self._queues or progress.kind == "waiting":
            return
        for lane in {message.lane: None for message in messages}:
            shown = self._queues.get(lane.channel)
            if shown is not None and not shown[0].full():
                shown[0].put_nowait((lane, progress.text if progress.kind == "delta" else ""))

    def begin(self) -> None:
        """Let the channels that stream show pieces."""
        for guest in self._active():
            if guest.provided.streaming is not None:
                queue: asyncio.Queue[Piece] = asyncio.Queue(_PIECES_MAX)
                self._queues[guest.id] = queue, asyncio.create_task(_show(guest, queue), name=f"stream-{guest.id}")

    async def end(self) -> None:
        """Show nothing more."""
        tasks = [task for _, task in self._queues.values()]
        self._queues.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _show(guest: Guest, queue: asyncio.Queue[Piece]) -> None:
    while True:
        lane, piece = await queue.get()
        if not guest.active or guest.provided.streaming is None:
            return
        try:
            await guest.provided.streaming.stream(lane, piece)
        except Exception as error:  # noqa: BLE001  # guard: extension - what it did not show comes with the answer
            _log.warning("the channel of %s shows no pieces (%s)", guest.id, type(error).__name__)
