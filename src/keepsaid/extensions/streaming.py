"""Streaming: pieces of answers go to the channels that show them; one that does not keep up misses pieces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Message
from keepsaid.extensions.guest import Guest
from keepsaid.ports.channel import Progress, Progresses
from keepsaid.ports.extension import StreamingProvider

_log = logging.getLogger("keepsaid.extensions")
_PIECES_MAX = 256
_PIECE_S = 5.0
_SILENT_S = 300.0
"""A lane of which nothing is heard for so long has nobody waiting to show more."""


class Streams:
    """Tells those who wait for a message, and the channel it came by."""

    def __init__(self, others: Progresses, active: Callable[[], Sequence[Guest]]) -> None:
        self._others = others
        self._active = active
        self._shown: dict[Lane, tuple[asyncio.Queue[str], asyncio.Task[None]]] = {}

    def tell(self, messages: Sequence[Message], progress: Progress) -> None:
        """Tell everybody; never blocks."""
        self._others.tell(messages, progress)
        if progress.kind == "waiting":
            return
        streaming = {one.id: one.provided.streaming for one in self._active() if one.provided.streaming is not None}
        if not streaming:
            return
        for lane in {message.lane: None for message in messages}:
            if lane.channel in streaming:
                self._show(streaming[lane.channel], lane, progress.text if progress.kind == "delta" else "")

    def _show(self, provider: StreamingProvider, lane: Lane, piece: str) -> None:
        if lane not in self._shown:
            queue: asyncio.Queue[str] = asyncio.Queue(_PIECES_MAX)
            self._shown[lane] = queue, asyncio.create_task(self._pump(provider, lane, queue), name="stream")
        queue, _ = self._shown[lane]
        if not queue.full():
            queue.put_nowait(piece)

    async def _pump(self, provider: StreamingProvider, lane: Lane, queue: asyncio.Queue[str]) -> None:
        """Show what comes, until an answer is settled and nothing more has come."""
        try:
            while True:
                async with asyncio.timeout(_SILENT_S):
                    piece = await queue.get()
                async with asyncio.timeout(_PIECE_S):
                    await provider.stream(lane, piece)
                if not piece and queue.empty():
                    return
        except Exception as error:  # noqa: BLE001  # guard: extension - what it did not show comes with the answer
            _log.warning("the channel %s shows no pieces (%s)", lane.channel, type(error).__name__)
        finally:
            del self._shown[lane]
