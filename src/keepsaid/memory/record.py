"""Recording: what was said becomes episodes, verbatim, no model involved (design: section 4.3, hot path)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from keepsaid.domain.command import command_in
from keepsaid.domain.commits import EpisodesKept
from keepsaid.domain.memory import Kind, NewMemory, Source, Used, chat_of, conversation_scope, episode_scope, person_of
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.provenance import trust_of_words
from keepsaid.domain.redaction import Masked, Redaction
from keepsaid.domain.turn import NO_MODEL
from keepsaid.domain.views import EpisodeWork
from keepsaid.memory.deeds import Deeds
from keepsaid.ports.buffer import BufferView
from keepsaid.ports.clock import Clock
from keepsaid.ports.memories import Memories
from keepsaid.ports.operations import Operations
from keepsaid.ports.points import point
from keepsaid.ports.redactor import Redactor, masked_texts

RECORDED_MAX = 50
"""Batches whose episodes are recorded in one go."""

ASSISTANT = "assistant"
"""The speaker of replies."""


class Recorder:
    """Follows the operational store: batches whose episodes are not known to be in memory are its work.

    What the tools of their turns asked for is done with them. What it writes holds no secret; where a message does is
    kept beside it. Memory is written first and the work cleared after; all of it is named by what it records, so that
    doing it again after a crash between the two changes nothing.
    """

    def __init__(
        self,
        buffer: BufferView,
        memories: Memories,
        operations: Operations,
        clock: Clock,
        redactor: Redactor,
        deeds: Deeds,
    ) -> None:
        self._buffer = buffer
        self._memories = memories
        self._operations = operations
        self._clock = clock
        self._redactor = redactor
        self._deeds = deeds
        self._hint: asyncio.Event | None = None
        self._running = 0
        self._left = True

    def watch(self, hint: asyncio.Event) -> None:
        """Learn of new work from the hint that wakes who records: only one runtime makes work in a store."""
        self._hint = hint

    @property
    def caught_up(self) -> bool:
        """Whether nothing is due, so that nobody need ask the store."""
        return self._hint is not None and not (self._hint.is_set() or self._running or self._left)

    async def catch_up(self, limit: int = RECORDED_MAX, conversation: str | None = None) -> int:
        """Record up to `limit` batches, oldest first, of one conversation or of all; returns how many were due.

        Another may have cleared them meanwhile. Raises a StoreError when a store refuses; the work is then
        still due.
        """
        self._running += 1
        try:
            self._left = self._left or conversation is None
            work = await self._buffer.episode_work(limit, conversation)
            if work:
                await self._record(work)
            if conversation is None:
                self._left = len(work) >= limit
            return len(work)
        finally:
            self._running -= 1

    async def _record(self, work: Sequence[EpisodeWork]) -> None:
        said = [episode for batch in work for episode in episodes(batch)]
        found = await masked_texts(self._redactor, [episode.text for episode in said])
        used = [
            Used(batch.turn_id, batch.used, batch.replied_at or self._clock.now_ms())
            for batch in work
            if batch.turn_id is not None and batch.used
        ]
        if said or used:
            fit = [replace(one, text=plain.text) for one, plain in zip(said, found, strict=True)]
            await self._memories.keep(fit, self._clock.now_ms(), used)
        await self._deeds.do([one.wishes for one in work if one.wishes is not None], self._clock.now_ms())
        point("episodes.kept")
        await self._operations.apply(EpisodesKept(tuple(batch.batch_id for batch in work), _redactions(said, found)))


def _redactions(said: Sequence[NewMemory], found: Sequence[Masked]) -> tuple[Redaction, ...]:
    """The marks of the messages that hold secrets; a reply is ours, and what it holds was said before it."""
    return tuple(
        Redaction(int(source.ref), plain.marks)
        for episode, plain in zip(said, found, strict=True)
        for source in episode.sources
        if plain.marks and source.kind == "message"
    )


def episodes(work: EpisodeWork) -> list[NewMemory]:
    """The episodes of one batch: each message that says something, and the reply a model or program gave."""
    said = [_heard(message) for message in work.messages if _says_something(message)]
    if work.turn_id is not None and work.messages and work.reply.strip() and work.model != NO_MODEL:
        said.append(_answered(work, work.turn_id))
    return said


def _says_something(message: Message) -> bool:
    """Whether there is anything to remember: a command is said to the program alone."""
    return bool(message.text.strip()) and command_in(message) is None


def _heard(message: Message) -> NewMemory:
    origin = message.inbound.origin
    return NewMemory(
        key=f"message:{message.id}",
        kind=Kind.EPISODE,
        text=message.text,
        scope=episode_scope(origin, message.lane),
        trust=trust_of_words(origin.trust, message.text),
        lane=message.lane,
        speaker=origin.name or origin.sender,
        speaker_id=person_of(origin),
        chat_of=chat_of((origin,)),
        said_at=message.received_at,
        sources=(Source("message", str(message.id)),),
    )


def _answered(work: EpisodeWork, turn_id: int) -> NewMemory:
    """The reply: heard in its conversation only, trusted as its turn, and external when anything in its lane is.

    Other lanes never show external words, and within a lane they live on in the replies to them: so the
    model was shown some if any stood in the lane before.
    """
    lane = work.messages[0].lane
    return NewMemory(
        key=f"reply:{turn_id}",
        kind=Kind.EPISODE,
        text=work.reply,
        scope=conversation_scope(lane),
        trust=Trust.EXTERNAL if work.external else work.trust or Trust.KNOWN,
        lane=lane,
        speaker=ASSISTANT,
        chat_of=chat_of([one.inbound.origin for one in work.messages]),
        said_at=work.replied_at,
        sources=(Source("reply", str(turn_id)),),
    )
