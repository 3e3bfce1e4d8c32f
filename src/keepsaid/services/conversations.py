"""Conversations as a reader follows them: what was said and answered, each once, and the answer while it is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from typing import Literal

from keepsaid.domain.message import StoredMessage
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.views import MessageFilter, Story
from keepsaid.ports.channel import TurnProgress
from keepsaid.ports.store import Store
from keepsaid.services.inbox import ProgressHub
from keepsaid.values import frozen

PAST_MAX = 200
"""How many messages of a conversation a reader who comes back receives at most, with their replies."""

_REPLIES_MAX = 200
_STEP_S, _STEPS = 1.0, 15
"""Seconds of silence after which a reader may have to go, and how often before the store is asked: what a schedule or
another process did tells nobody here."""


@frozen
class ReadMark:
    """How far a reader has read: the last message and the last reply they were sent, 0 for none."""

    message: int = 0
    reply: int = 0


@frozen
class ConversationEvent:
    """A message, a reply, or `mark` of how far it was read then; else a stage of an answer that is being written."""

    kind: Literal["message", "reply", "began", "delta", "tool", "waiting", "silence"]
    mark: ReadMark
    message: StoredMessage | None = None
    reply: StoredReply | None = None
    text: str = ""


class ConversationService:
    """Follows conversations of one channel; `mark_seen` records that a reply was sent to its reader."""

    def __init__(self, store: Store, hub: ProgressHub, mark_seen: Callable[[int], Awaitable[bool]]) -> None:
        self._store = store
        self._hub = hub
        self._mark_seen = mark_seen

    async def follow(
        self, place: tuple[str, str], since: ReadMark | None, over: Callable[[], bool] = lambda: False
    ) -> AsyncGenerator[ConversationEvent, None]:
        """What comes in a conversation (channel, name) until all is `over`; first what came after `since`.

        Without `since` that is only the replies that nobody has seen. A reply counts as seen once it was sent.
        """
        sent: set[int] = set()
        stage: _Stage | None = None
        with self._hub.listening_to(place) as queue:
            mark = since or ReadMark(await self._newest(place))
            start, unread = mark, since is not None
            if mark.reply:
                # it arrived, or its reader would not name it; the connection may have ended before that was recorded
                sent.add(mark.reply)
                await self._mark_seen(mark.reply)
            while not over():
                for one in await self._news(place, start, sent, unread=unread):
                    mark = ReadMark(
                        max(mark.message, one.message.id if one.message else 0),
                        max(mark.reply, one.reply.id if one.reply else 0),
                    )
                    yield ConversationEvent(one.kind, mark, one.message, one.reply)
                    if one.reply is not None and _is_unseen(one.reply):
                        await self._mark_seen(one.reply.id)
                    if one.reply is not None:
                        stage = _without_past(queue) or stage
                unread = True
                while not over():
                    if stage is not None and stage.kind != "settled":
                        yield ConversationEvent(stage.kind, mark, text=stage.text)
                    stage = await _next(queue, over)
                    if stage.kind in _LOOKED_AT:
                        break

    async def _newest(self, place: tuple[str, str]) -> int:
        channel, conversation = place
        found = await self._store.find(MessageFilter(channel, conversation=conversation, limit=1))
        return max((story.message.id for story in found), default=0)

    async def _news(
        self, place: tuple[str, str], start: ReadMark, sent: set[int], *, unread: bool
    ) -> list[ConversationEvent]:
        """What the reader does not have, oldest first: messages after the start, and replies to send."""
        channel, conversation = place
        wanted = MessageFilter(channel, conversation=conversation, limit=PAST_MAX)
        stories = await self._store.find(wanted) if unread else ()
        news = _once([one for story in reversed(stories) for one in _of_story(story, start)])
        unseen = await self._store.unseen(channel, conversation, _REPLIES_MAX)
        known = sent.union(map(_id_of, news))
        news += [ConversationEvent("reply", start, reply=reply) for reply in unseen if reply.id not in known]
        fresh = [one for one in news if _id_of(one) not in sent]
        sent.update(map(_id_of, fresh))
        return fresh


def _of_story(story: Story, start: ReadMark) -> Iterator[ConversationEvent]:
    if story.message.id > start.message:
        yield ConversationEvent("message", start, message=story.message)
    for reply in story.replies:
        if reply.id > start.reply or _is_unseen(reply):
            yield ConversationEvent("reply", start, reply=reply)


def _is_unseen(reply: StoredReply) -> bool:
    return reply.state == "pending" and reply.draft.url is None


def _id_of(one: ConversationEvent) -> int:
    found = one.message or one.reply
    return 0 if found is None else found.id


def _once(news: list[ConversationEvent]) -> list[ConversationEvent]:
    """Each once: one reply may answer several messages; it follows the last of them."""
    last = {_id_of(one): place for place, one in enumerate(news)}
    return [one for place, one in enumerate(news) if last[_id_of(one)] == place]


@frozen
class _Stage:
    kind: Literal["began", "delta", "tool", "waiting", "settled", "silence"]
    text: str = ""


_LOOKED_AT = ("began", "settled", "silence")
"""Stages at which the store may hold more than before: a message that is answered now, or its answer."""


def _without_past(queue: asyncio.Queue[TurnProgress]) -> _Stage | None:
    """Leave out the stages of answers that have ended: the reader has the replies. None where no answer has."""
    heard = [queue.get_nowait() for _ in range(queue.qsize())]
    ended = max((place for place, one in enumerate(heard) if one.kind == "settled"), default=-1)
    for one in heard[ended + 1 :]:
        queue.put_nowait(one)
    return _Stage("settled") if ended >= 0 else None


async def _next(queue: asyncio.Queue[TurnProgress], over: Callable[[], bool]) -> _Stage:
    for _ in range(_STEPS):
        try:
            heard = await asyncio.wait_for(queue.get(), _STEP_S)
        except TimeoutError:
            if over():
                break
        else:
            return _Stage(heard.kind, heard.text)
    return _Stage("silence")
