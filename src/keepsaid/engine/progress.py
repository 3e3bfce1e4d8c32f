"""The hub: hands the progress of turns to whoever waits; what nobody hears is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from keepsaid.domain.message import Message
from keepsaid.ports.progress import Progress

_PIECES_MAX = 10_000


class ProgressHub:
    """Listeners by message id."""

    def __init__(self) -> None:
        self._listeners: dict[int, set[asyncio.Queue[Progress]]] = {}

    def tell(self, messages: Sequence[Message], progress: Progress) -> None:
        """Tell everybody who waits for one of the messages; one who does not keep up misses pieces."""
        if not self._listeners:
            return
        for message in messages:
            for queue in self._listeners.get(message.id, ()):
                if not queue.full():
                    queue.put_nowait(progress)

    @contextmanager
    def listening(self, message_id: int) -> Iterator[asyncio.Queue[Progress]]:
        """A queue of what happens to a message while the block runs."""
        queue: asyncio.Queue[Progress] = asyncio.Queue(_PIECES_MAX)
        self._listeners.setdefault(message_id, set()).add(queue)
        try:
            yield queue
        finally:
            self._listeners[message_id].discard(queue)
            if not self._listeners[message_id]:
                del self._listeners[message_id]
