"""Recording: what was said becomes episodes, verbatim, no model involved (design: section 4.3, hot path)."""

from __future__ import annotations

from keepsaid.domain.commits import EpisodesKept
from keepsaid.domain.memory import Kind, NewMemory, Source, conversation_scope, episode_scope
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.views import EpisodeWork
from keepsaid.ports.buffer import BufferView
from keepsaid.ports.clock import Clock
from keepsaid.ports.memories import Memories
from keepsaid.ports.operations import Operations
from keepsaid.ports.points import point

ASSISTANT = "assistant"
"""The speaker of replies."""


class Recorder:
    """Follows the operational store: batches whose episodes are not known to be in memory are its work.

    Memory is written first and the work cleared after; episodes are named by what they record, so that
    doing it again after a crash between the two changes nothing.
    """

    def __init__(self, buffer: BufferView, memories: Memories, operations: Operations, clock: Clock) -> None:
        self._buffer = buffer
        self._memories = memories
        self._operations = operations
        self._clock = clock

    async def catch_up(self, limit: int = 50, conversation: str | None = None) -> int:
        """Record up to `limit` batches, oldest first, of one conversation or of all; returns how many it cleared.

        Raises a StoreError when a store refuses; the work is then still due.
        """
        work = await self._buffer.episode_work(limit, conversation)
        if not work:
            return 0
        said = [episode for batch in work for episode in episodes(batch)]
        if said:
            await self._memories.keep(said, self._clock.now_ms())
        point("episodes.kept")
        return await self._operations.apply(EpisodesKept(tuple(batch.batch_id for batch in work)))


def episodes(work: EpisodeWork) -> list[NewMemory]:
    """The episodes of one batch: each message that says something, and the reply to them."""
    said = [_heard(message) for message in work.messages if message.text.strip()]
    if work.turn_id is not None and work.reply.strip() and work.messages:
        said.append(_answered(work, work.turn_id))
    return said


def _heard(message: Message) -> NewMemory:
    origin = message.inbound.origin
    return NewMemory(
        key=f"message:{message.id}",
        kind=Kind.EPISODE,
        text=message.text,
        scope=episode_scope(origin, message.lane),
        trust=origin.trust,
        lane=message.lane,
        speaker=origin.name or origin.sender,
        said_at=message.received_at,
        sources=(Source("message", str(message.id)),),
    )


def _answered(work: EpisodeWork, turn_id: int) -> NewMemory:
    """The reply: heard in its conversation only, and external when anything it answers is."""
    lane = work.messages[0].lane
    external = any(message.inbound.origin.trust is Trust.EXTERNAL for message in work.messages)
    return NewMemory(
        key=f"reply:{turn_id}",
        kind=Kind.EPISODE,
        text=work.reply,
        scope=conversation_scope(lane),
        trust=Trust.EXTERNAL if external else Trust.KNOWN,
        lane=lane,
        speaker=ASSISTANT,
        said_at=work.replied_at,
        sources=(Source("reply", str(turn_id)),),
    )
