"""Previews: while a turn runs, its channel shows that somebody types, and as much of the answer as is there.

Nothing of that is stored, and none of it counts as delivery (spec: channels, C12 and C13).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from keepsaid.domain.message import Lane, StoredMessage
from keepsaid.ports.channel import Channel, PreviewChannel, Progresses, TurnProgress
from keepsaid.ports.runtime import Clock

_LONGEST_MS = 600_000
_DRAFTS_EVERY_MS = 200
_NUMBER_MASK = 0x7FFF_FFFF


class _Preview:
    """The preview of one turn: what of its answer is there, and whether it is over."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.text = ""
        self.is_over = False
        self.news = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Previews:
    """Shows the turns of every lane whose channel shows previews, and tells `others`; `channels` may grow."""

    def __init__(self, others: Progresses, channels: Mapping[str, Channel], clock: Clock) -> None:
        self._others = others
        self._channels = channels
        self._clock = clock
        self._shown: dict[Lane, _Preview] = {}

    def tell(self, messages: Sequence[StoredMessage], progress: TurnProgress) -> None:
        """Begin, continue or end the preview of a turn. Never blocks."""
        self._others.tell(messages, progress)
        for lane, message_id in {one.lane: one.id for one in messages}.items():
            if progress.kind == "began":
                self._begin(lane, message_id)
            elif (preview := self._shown.get(lane)) is not None:
                preview.text += progress.text if progress.kind == "delta" else ""
                preview.is_over = preview.is_over or progress.kind in ("settled", "waiting")
                preview.news.set()

    def _begin(self, lane: Lane, message_id: int) -> None:
        channel: object = self._channels.get(lane.channel)
        if not isinstance(channel, PreviewChannel):
            return
        if (former := self._shown.get(lane)) is not None:
            former.is_over = True
            former.news.set()
        # a turn has a number of its own, which is not 0
        preview = self._shown[lane] = _Preview(message_id & _NUMBER_MASK or 1)
        preview.task = asyncio.create_task(self._show(channel, lane, preview), name="preview")

    async def _show(self, channel: PreviewChannel, lane: Lane, preview: _Preview) -> None:
        try:
            until, shown = self._clock.monotonic_ms() + _LONGEST_MS, ""
            is_typing = shows_drafts = True
            while not preview.is_over and (is_typing or shows_drafts) and self._clock.monotonic_ms() < until:
                preview.news.clear()
                if shows_drafts and preview.text != shown:
                    shown = preview.text
                    shows_drafts = await channel.show_draft(lane, preview.number, shown)
                    await self._pause(preview, _DRAFTS_EVERY_MS)
                    continue
                is_typing = is_typing and await channel.show_typing(lane)
                await self._clock.wait(preview.news, channel.typing_ms)
        finally:
            if self._shown.get(lane) is preview:
                del self._shown[lane]

    async def _pause(self, preview: _Preview, wait_ms: int) -> None:
        """Wait, whatever is written meanwhile, but for the end."""
        until = self._clock.monotonic_ms() + wait_ms
        while not preview.is_over and (left := until - self._clock.monotonic_ms()) > 0:
            preview.news.clear()
            await self._clock.wait(preview.news, left)
