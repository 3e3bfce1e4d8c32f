"""Feedback by reaction: a thumbs-down on an answer marks the memory that it rests on as wrong (spec: channels, C16).

Feedback is on one memory: it is left out of the next turns of its lane, searches still find it, and `/wrong undo`
brings it back. A thumb does not say which memory it means. So a memory is marked only if no other can be meant: if the
turn was shown exactly one for its messages. If there are several, `/wrong` asks which one; a reaction marks none of
them, or one dislike would take right memories from the lane, and nobody would notice. Pinned memories are never marked:
the owner wants them in every turn.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from keepsaid.domain import memory, receipt
from keepsaid.domain.commits import Received, RecordFeedback
from keepsaid.domain.ids import show
from keepsaid.domain.message import REACTION, Inbound, Lane, Trust
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Store
from keepsaid.text.emoji import is_thumbs_down
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.memory")


@frozen
class ReactionFeedback:
    """Records the feedback of people who are let in, on the channels whose settings have `feedback`."""

    store: Store
    clock: Clock
    channels: Collection[str]

    async def record(self, inbound: Inbound, received: Received) -> None:
        """Record a thumbs-down that was stored, once for the stored message. Raises StoreError.

        It is called again for a delivery that comes again: the process may have died before. A note, in the commit of
        the mark, keeps a repeat from marking what was withdrawn meanwhile.
        """
        origin, target = inbound.origin, inbound.marks.reply_to
        if origin.channel not in self.channels or target is None or not _is_dislike(inbound):
            return
        place = Lane(origin.channel, normalise(origin.account), normalise(origin.conversation), "")
        shown = await self.store.reminded_by(place, normalise(target))
        if shown is None:
            return
        if (meant := await self._find_memory(shown)) is None:
            ids = {"turn": shown.turn_id}
            _log.info("a thumbs-down marks nothing: it may mean several memories, or none", extra=ids)
            return
        word = receipt.JudgeMemory(shown.turn_id, meant, memory.person_of(origin))
        await self.store.apply(RecordFeedback(word, self.clock.now_ms(), f"feedback:{show('message', received.id)}"))

    async def _find_memory(self, shown: receipt.Reminded) -> int | None:
        """The only memory that a turn was shown for its messages, or opened; None if there are more, or none."""
        story = await self.store.turn(shown.turn_id)
        chosen = receipt.chosen_in(story.trace) if story is not None else []
        pinned = {one.get("id") for one in chosen if one.get("cause") == receipt.Cause.PINNED}
        meant = [one for one in shown.memories if one not in pinned]
        return meant[0] if len(meant) == 1 else None


def _is_dislike(inbound: Inbound) -> bool:
    """Whether a person who may change the lane gave a thumbs-down; who is not let in has another event."""
    origin, content = inbound.origin, inbound.content
    if content.event != REACTION or inbound.by_bot or not (origin.direct or origin.trust is not Trust.EXTERNAL):
        return False
    return is_thumbs_down(content.text)
