"""The inbox: put a message, wait for its reply and hear its progress; drop, requeue, resend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import replace
from typing import Literal

from keepsaid.domain import commits, compaction, route, views
from keepsaid.domain.command import command_in
from keepsaid.domain.ids import show
from keepsaid.domain.message import Inbound, Lane, StoredMessage
from keepsaid.errors import StoreError
from keepsaid.ports import channel, runtime, store
from keepsaid.text.normal import cut, duration, normalise
from keepsaid.values import frozen

STOPPED = "stopped by the person who asked"
"""Why a batch was dropped whose answering somebody cancelled."""


_ROUTED_WITHIN_MS, _ROUTED_LOOK_MS = 10_000, 20


class InboxService:
    """Decides about what is stored; whoever works on it is woken."""

    def __init__(self, operations: store.Store, clock: runtime.Clock, hints: runtime.Wakeups) -> None:
        self._operations = operations
        self._clock = clock
        self._hints = hints

    async def requeue(self, batch_id: int, reason: str) -> bool:
        """Queue a dead, dropped or parked batch again; False when it is none of these."""
        done = await self._operations.apply(commits.Requeue(batch_id, self._clock.now_ms(), normalise(reason)))
        self._hints.work.set()
        return done

    async def drop(self, batch_id: int, reason: str) -> bool:
        """Drop a queued batch; False when it is not queued."""
        done = await self._operations.apply(commits.Drop(batch_id, self._clock.now_ms(), normalise(reason)))
        self._hints.work.set()
        return done

    async def stop(self, message_id: int) -> bool:
        """Cancel the answering of a message: drop its batch also while a turn runs, and end that turn's calls.

        One that was just stored is waited for until it is in a batch, for ten seconds at most. False if nothing answers
        it: it is settled, or its window collects for longer. A requeue brings it back.
        """
        until = self._clock.due_ms() + _ROUTED_WITHIN_MS
        while (story := await self._operations.story(message_id)) is not None and story.batch is None:
            if self._clock.due_ms() >= until:
                return False
            await self._clock.wait(asyncio.Event(), _ROUTED_LOOK_MS)
        if story is None or story.batch is None:
            return False
        stop = commits.Drop(story.batch.id, self._clock.now_ms(), STOPPED, running=True)
        stopped = await self._operations.apply(stop)
        self._hints.wake_holders(story.batch.id)
        self._hints.work.set()
        return stopped

    async def mark_seen(self, reply_id: int, provider_id: str | None = None) -> bool:
        """Record that a reply was pulled; `provider_id` is what its medium calls it."""
        return await self._operations.apply(commits.MarkReplyShown(reply_id, self._clock.now_ms(), provider_id))

    async def settle_reply(self, reply_id: int, *, again: bool) -> bool:
        """Send a dead reply `again`, or accept that it, or one that waits, never arrives; False when it is neither."""
        done = await self._operations.apply(commits.Decide(reply_id, self._clock.now_ms(), again))
        self._hints.deliver.set()
        return done

    async def describe_waiting(self) -> str:
        """One line for each of the newest messages that wait for an answer or for a person; ten at most."""
        found: list[views.Story] = []
        for state in _WAITING:
            found += await self._operations.find(views.MessageFilter(state=state, limit=_WAITING_MAX))
        now, newest = self._clock.now_ms(), sorted(found, key=lambda one: one.message.id, reverse=True)
        waiting = [one for one in newest if command_in(one.message) is None][:_WAITING_MAX]
        return "\n".join(_line(one, now) for one in waiting) or "No message waits."

    async def reset_lane(self, lane: Lane) -> int:
        """End a lane's context here; returns how many records it had, -1 where it moved meanwhile."""
        tail = await self._operations.context(lane, 1)
        cut = compaction.CutContext(lane, tail.version, tail.head, compaction.CutReason.RESET, self._clock.now_ms())
        return tail.head - tail.covered if await self._operations.apply(cut) else -1


_WAITING, _WAITING_MAX = ("received", "batched", "review", "dead"), 10
_LINE_CHARS = 60


def _line(story: views.Story, now: int) -> str:
    message, age = story.message, duration(max(0, now - story.message.received_at))
    place, words = f"{message.lane.channel} {message.lane.conversation}", " ".join(message.text.split())
    return f"{show('message', message.id)}  {story.state}  {age}  {place}  {cut(words, _LINE_CHARS)}"


SETTLED = ("done", "dropped", "review", "dead")
"""States of a message of which there is nothing more to tell, unless a person queues it again."""

Receive = Callable[[Inbound], Awaitable[commits.Received]]

_PIECES_MAX = 10_000
_AHEAD = "an earlier message here has to be answered first: "
_LOOK_S = 1.0
"""Seconds of silence before the store is asked: what is dropped, spawned or answered elsewhere tells nobody here."""


@frozen
class AnswerProgress:
    """News of a message: its `story` as it is now, a piece of the answer, a tool that runs, a wait, or silence.

    `paused` says of a wait that it ends with /resume.
    """

    story: views.Story
    kind: Literal["story", "piece", "tool", "waiting", "silence"] = "story"
    text: str = ""
    paused: bool = False


@frozen
class AskResult:
    """A message that was put in, and its story once it was settled."""

    received: commits.Received
    story: views.Story


class AskService:
    """Sends messages and waits for their outcome."""

    def __init__(
        self,
        operations: store.Store,
        hub: ProgressHub,
        receive: Receive,
        inbox: InboxService,
        remembered: Callable[[views.Story], Awaitable[views.Story]],
    ) -> None:
        self._remembered = remembered
        self._operations = operations
        self._hub = hub
        self._receive = receive
        self._inbox = inbox

    async def ask(self, inbound: Inbound, delta: Callable[[str], object] | None = None) -> AskResult:
        """Put a message in and wait until it is settled; `delta` takes each piece of the answer as it is written.

        Its replies then count as seen. An answer that was written before anybody listened is one piece. A piece may be
        written again when a turn is tried again: what counts is the story. Raises what `receive` raises with nothing
        stored.
        """
        received, streamed = await self._receive(inbound), False
        async with aclosing(self.follow(received.id, received.lane)) as progress:
            async for heard in progress:
                if heard.kind == "piece" and delta is not None:
                    streamed = True
                    delta(heard.text)
                if heard.story.state in SETTLED:
                    if delta is not None and not streamed and heard.story.replies:
                        delta("\n\n".join(reply.draft.text for reply in heard.story.replies))
                    await self.mark_seen(heard.story)
                    return AskResult(received, heard.story)
        raise StoreError("the message was forgotten or pruned while it was waited for", safe="It was stored before.")

    async def follow(
        self, message_id: int, lane: Lane, over: Callable[[], bool] = lambda: False
    ) -> AsyncGenerator[AnswerProgress, None]:
        """What happens to a message, its story first, until it is settled, gone from the store, or all is `over`."""
        with self._hub.listening(message_id, lane) as queue:
            if (story := await self._operations.story(message_id)) and await self._waits_for_resume(story):
                yield AnswerProgress(story, "waiting", route.PAUSED, paused=True)
            async with aclosing(self._news(message_id, queue, over)) as news:
                async for one in news:
                    yield one

    async def _news(
        self, message_id: int, queue: asyncio.Queue[channel.TurnProgress], over: Callable[[], bool]
    ) -> AsyncGenerator[AnswerProgress, None]:
        while (story := await self.story(message_id)) is not None:
            yield AnswerProgress(story)
            if story.state in SETTLED:
                return
            while not over():
                if (progress := await _next(queue)) is None:
                    yield AnswerProgress(story, "silence")
                    break
                if progress.kind == "settled":
                    break
                if progress.kind == "waiting" or story.batch is None:
                    story = await self.story(message_id) or story
                    yield AnswerProgress(story)
                    if story.state in SETTLED:
                        return
                if progress.kind == "waiting":
                    yield AnswerProgress(story, "waiting", progress.text, progress.paused)
                    break
                yield AnswerProgress(story, "tool" if progress.kind == "tool" else "piece", progress.text)
            if over():
                return

    async def story(self, message_id: int) -> views.Story | None:
        """One message and its outcome, with the memories that its turn stored once it is settled."""
        story = await self._operations.story(message_id)
        return await self._remembered(story) if story is not None and story.state in SETTLED else story

    async def _waits_for_resume(self, story: views.Story) -> bool:
        """Whether a message waits because its conversation is paused; who listens later was not notified of that."""
        batch = story.batch
        if batch is None or story.state in SETTLED or batch.verdict.rule == route.COMMAND_RULE:
            return False
        line = await self._operations.line(story.message.lane)
        return line is not None and line.paused

    async def mark_seen(self, story: views.Story) -> None:
        """Record that the replies of a message were pulled, except those that go to a URL."""
        for reply in story.replies:
            if reply.state == "pending" and reply.draft.url is None:
                await self._inbox.mark_seen(reply.id)


async def _next(queue: asyncio.Queue[channel.TurnProgress]) -> channel.TurnProgress | None:
    try:
        return await asyncio.wait_for(queue.get(), _LOOK_S)
    except TimeoutError:
        return None


class ProgressHub:
    """Listeners by message id, each with the lane of its message where it is known.

    `publish` lets other processes know which messages are settled. Others listen to a whole conversation.
    """

    def __init__(self) -> None:
        self.publish: Callable[[int], None] | None = None
        self._listeners: dict[int, dict[asyncio.Queue[channel.TurnProgress], Lane | None]] = {}
        self._followers: dict[tuple[str, str], list[asyncio.Queue[channel.TurnProgress]]] = {}

    def tell(self, messages: Sequence[StoredMessage], progress: channel.TurnProgress) -> None:
        """Tell everybody who waits for one of the messages; one who does not keep up misses pieces.

        Clients that wait for later messages of its lane are notified too.
        """
        if self.publish is not None and progress.kind == "settled":
            for message in messages:
                self.publish(message.id)
        self._tell_followers(messages, progress)
        if not self._listeners or progress.kind == "began":
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

    def _tell_followers(self, messages: Sequence[StoredMessage], progress: channel.TurnProgress) -> None:
        for place in {(one.lane.channel, one.lane.conversation) for one in messages} if self._followers else ():
            for queue in self._followers.get(place, ()):
                _put(queue, progress)

    def hear(self, number: int) -> None:
        """Tell everybody who waits for a message that it is settled: another process says so."""
        for queue in self._listeners.get(number, ()):
            _put(queue, channel.TurnProgress("settled"))
        for queues in self._followers.values():
            for queue in queues:
                _put(queue, channel.TurnProgress("settled"))

    @contextmanager
    def listening(self, message_id: int, lane: Lane | None = None) -> Iterator[asyncio.Queue[channel.TurnProgress]]:
        """A queue of what happens to a message, and ahead of it in its lane, while the block runs."""
        queue: asyncio.Queue[channel.TurnProgress] = asyncio.Queue(_PIECES_MAX)
        self._listeners.setdefault(message_id, {})[queue] = lane
        try:
            yield queue
        finally:
            del self._listeners[message_id][queue]
            if not self._listeners[message_id]:
                del self._listeners[message_id]

    @contextmanager
    def listening_to(self, place: tuple[str, str]) -> Iterator[asyncio.Queue[channel.TurnProgress]]:
        """A queue of what happens in a conversation (channel, name), while the block runs."""
        queue: asyncio.Queue[channel.TurnProgress] = asyncio.Queue(_PIECES_MAX)
        self._followers.setdefault(place, []).append(queue)
        try:
            yield queue
        finally:
            self._followers[place].remove(queue)
            if not self._followers[place]:
                del self._followers[place]


def _put(queue: asyncio.Queue[channel.TurnProgress], progress: channel.TurnProgress) -> None:
    if not queue.full():
        queue.put_nowait(progress)
