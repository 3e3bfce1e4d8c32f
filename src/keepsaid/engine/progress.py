"""The hub: hands the progress of turns to whoever waits; what nobody hears is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from keepsaid.domain.lane import Lane
from keepsaid.domain.message import StoredMessage
from keepsaid.ports.channel import TurnProgress

_PIECES_MAX = 10_000
_AHEAD = "an earlier message here has to be answered first: "


class ProgressHub:
    """Listeners by message id, each with the lane of its message where it is known."""

    def __init__(self) -> None:
        self._listeners: dict[int, dict[asyncio.Queue[TurnProgress], Lane | None]] = {}

    def tell(self, messages: Sequence[StoredMessage], progress: TurnProgress) -> None:
        """Tell everybody who waits for one of the messages; one who does not keep up misses pieces.

        That a message waits is told to those who wait behind it in its lane, too.
        """
        if not self._listeners:
            return
        for message in messages:
            for queue in self._listeners.get(message.id, ()):
                _put(queue, progress)
        if progress.kind == "waiting" and messages:
            told = {message.id for message in messages}
            behind = replace(progress, text=_AHEAD + progress.text)
            for id_, queues in self._listeners.items():
                for queue, lane in queues.items():
                    if id_ not in told and lane == messages[0].lane:
                        _put(queue, behind)

    @contextmanager
    def listening(self, message_id: int, lane: Lane | None = None) -> Iterator[asyncio.Queue[TurnProgress]]:
        """A queue of what happens to a message, and ahead of it in its lane, while the block runs."""
        queue: asyncio.Queue[TurnProgress] = asyncio.Queue(_PIECES_MAX)
        self._listeners.setdefault(message_id, {})[queue] = lane
        try:
            yield queue
        finally:
            del self._listeners[message_id][queue]
            if not self._listeners[message_id]:
                del self._listeners[message_id]


def _put(queue: asyncio.Queue[TurnProgress], progress: TurnProgress) -> None:
    if not queue.full():
        queue.put_nowait(progress)
