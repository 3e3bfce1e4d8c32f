"""What the outbox does with a reply that may have arrived, and with one that never arrives."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from keepsaid.adapters.channels.push import PushChannel
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import LIFE_MS, SURE_MS
from keepsaid.domain.commits import TakeReplies
from keepsaid.domain.message import Lane
from keepsaid.domain.reply import Delivered, ReplyDraft, Sending, SendResult, StoredReply
from keepsaid.errors import ProcessFenced, StoreUnreachable
from keepsaid.pipeline.leasing import LifeTerms, ProcessAge
from keepsaid.pipeline.outbox import OutboxSender
from keepsaid.ports.channel import MAY_SEND, check_may_send
from keepsaid.testing.builders import CHANNEL, said
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.reply_receiver import ReplyReceiver
from keepsaid_testkit.contracts.store_driver import StoreDriver


class Doubtful:
    """A channel that never learns whether its first try arrived."""

    name = CHANNEL
    sending = Sending.PUSH

    def __init__(self) -> None:
        self.sent: list[StoredReply] = []

    async def send(self, reply: StoredReply) -> SendResult:
        """Take it, and say so from the second on."""
        self.sent.append(reply)
        return SendResult(Delivered.CONFIRMED if len(self.sent) > 1 else Delivered.DOUBT, retry_after_ms=0)

    async def close(self) -> None:
        """Do nothing."""


@pytest.mark.parametrize(
    ("given_up", "sent", "state"),
    [
        (frozenset(), [False, True], "sent"),
        (frozenset((CHANNEL,)), [False], "dead"),
        (frozenset(("x",)), [False, True], "sent"),
    ],
)
async def test_what_may_have_arrived_is_repeated_or_given_up(
    given_up: frozenset[str], sent: list[bool], state: str
) -> None:
    road, clock, channel = StoreDriver(InMemoryOperations()), VirtualClock(), Doubtful()
    await road.queue(said(), clock.now_ms())
    claimed = await road.claim_one(clock.now_ms())
    await road.answer(claimed, at=clock.now_ms())
    post = OutboxSender(road.store, {CHANNEL: channel}, clock, "one", asyncio.Event(), given_up)
    for _ in range(3):
        await post.deliver()
        await post.stop(5)
        await clock.advance(1)
    assert [reply.possible_duplicate for reply in channel.sent] == sent
    turn = await road.store.turn(claimed.turn_id)
    assert turn is not None
    assert [reply.state for reply in turn.replies] == [state]


class Absent:
    """A channel whose receiver is never there; remembers when it was asked."""

    name = CHANNEL
    sending = Sending.PUSH

    def __init__(self, clock: VirtualClock) -> None:
        self.tried_at: list[int] = []
        self._clock = clock

    async def send(self, _reply: StoredReply) -> SendResult:
        """Ask to be tried again."""
        self.tried_at.append(self._clock.now_ms())
        return SendResult(Delivered.RETRY, "nobody is there")

    async def close(self) -> None:
        """Do nothing."""


async def test_a_reply_that_never_arrives_is_tried_twenty_times_within_an_hour_and_is_dead() -> None:
    road, clock = StoreDriver(InMemoryOperations()), VirtualClock()
    channel = Absent(clock)
    await road.queue(said(), clock.now_ms())
    claimed = await road.claim_one(clock.now_ms())
    await road.answer(claimed, at=clock.now_ms())
    post = OutboxSender(road.store, {CHANNEL: channel}, clock, "one", asyncio.Event())
    while (due := await post.deliver()) is not None:
        await post.stop(5)
        await clock.advance(max(1, due - clock.due_ms()))
    waits = [after - before for before, after in pairwise(channel.tried_at)]
    assert len(channel.tried_at) == 20
    assert all(500 * 2**n <= wait <= 500 * 2**n + 300 for n, wait in enumerate(waits[:9]))
    assert all(300_000 <= wait <= 300_300 for wait in waits[10:])
    assert sum(waits) < 3_600_000
    turn = await road.store.turn(claimed.turn_id)
    assert turn is not None
    assert [reply.state for reply in turn.replies] == ["dead"]


class Outage(Absent):
    """A channel whose provider is down for a day, in doubt whether a try arrived."""

    async def send(self, _reply: StoredReply) -> SendResult:
        self.tried_at.append(self._clock.now_ms())
        if self.tried_at[-1] - self.tried_at[0] < 86_400_000:
            return SendResult(Delivered.DOUBT if len(self.tried_at) % 2 else Delivered.RETRY, "down", outage=True)
        return SendResult(Delivered.CONFIRMED)


async def test_an_outage_does_not_count_toward_the_twenty_tries() -> None:
    road, clock = StoreDriver(InMemoryOperations()), VirtualClock()
    channel = Outage(clock)
    await road.queue(said(), clock.now_ms())
    claimed = await road.claim_one(clock.now_ms())
    await road.answer(claimed, at=clock.now_ms())
    post = OutboxSender(road.store, {CHANNEL: channel}, clock, "one", asyncio.Event())
    while (due := await post.deliver()) is not None:
        await post.stop(5)
        await clock.advance(max(1, due - clock.due_ms()))
    turn = await road.store.turn(claimed.turn_id)
    assert turn is not None
    assert ([reply.state for reply in turn.replies], len(channel.tried_at) > 200) == (["sent"], True)


class Overtaken(InMemoryOperations):
    """A store whose process is frozen once it took a reply, until others took it over, and then is cut off for a while.

    With None it is not frozen.
    """

    def __init__(self, clock: VirtualClock, unreachable: int | None) -> None:
        super().__init__()
        self._clock, self._is_over, self._unreachable = clock, False, unreachable

    async def apply(self, commit: Any) -> Any:
        if self._is_over and self._unreachable:
            self._unreachable -= 1
            raise StoreUnreachable("nobody answers")
        if self._is_over:
            raise ProcessFenced("others took over its work")
        result = await super().apply(commit)
        if isinstance(commit, TakeReplies) and self._unreachable is not None:
            await self._clock.advance(LIFE_MS)
            self._is_over = True
        return result


class Connecting(Absent):
    """A channel that is frozen while it connects, for so long."""

    def __init__(self, clock: VirtualClock, frozen_ms: int) -> None:
        super().__init__(clock)
        self._frozen_ms = frozen_ms

    async def send(self, _reply: StoredReply) -> SendResult:
        await self._clock.advance(self._frozen_ms)
        try:
            check_may_send()
        except InterruptedError as error:
            return SendResult(Delivered.RETRY, str(error))
        self.tried_at.append(self._clock.now_ms())
        return SendResult(Delivered.CONFIRMED)


async def _taken(store: Overtaken, clock: VirtualClock, channel: Absent) -> tuple[OutboxSender, ProcessAge]:
    """An outbox with one reply to send, of a process that shares its store and has just said that it lives."""
    road = StoreDriver(store)
    await road.queue(said(), clock.now_ms())
    await road.answer(await road.claim_one(clock.now_ms()), at=clock.now_ms())
    life = ProcessAge(store, clock, "one", LifeTerms(shares=True))
    await life.work()
    return OutboxSender(store, {CHANNEL: channel}, clock, "one", asyncio.Event(), standing=life), life


@pytest.mark.parametrize("unreachable", [0, 3])
async def test_who_was_frozen_with_a_reply_that_it_took_does_not_send_it(unreachable: int) -> None:
    clock = VirtualClock()
    store, channel = Overtaken(clock, unreachable), Connecting(clock, 0)
    post, life = await _taken(store, clock, channel)
    await post.deliver()
    await clock.advance(60_000)
    await post.stop(60)
    with pytest.raises(ProcessFenced):
        await life.ascertain()
    assert channel.tried_at == []


async def test_who_slept_with_a_reply_and_was_not_taken_for_dead_says_so_and_sends_it() -> None:
    clock = VirtualClock()
    store, channel = Overtaken(clock, None), Connecting(clock, 0)
    post, life = await _taken(store, clock, channel)
    await clock.advance(LIFE_MS)
    assert not life.is_sure
    await post.deliver()
    await post.stop(60)
    assert (len(channel.tried_at), life.is_sure) == (1, True)


@pytest.mark.parametrize(("frozen_ms", "sent"), [(SURE_MS - 1, 1), (SURE_MS, 0), (LIFE_MS, 0)])
async def test_who_is_frozen_while_it_connects_sends_only_within_its_life(frozen_ms: int, sent: int) -> None:
    clock = VirtualClock()
    store, channel = Overtaken(clock, None), Connecting(clock, frozen_ms)
    post, _ = await _taken(store, clock, channel)
    await post.deliver()
    await post.stop(60)
    assert len(channel.tried_at) == sent


async def test_a_push_channel_posts_nothing_once_others_may_have_sent_it() -> None:
    async with ReplyReceiver() as receiver:
        channel = PushChannel("http", [receiver.host])
        draft = ReplyDraft(1, "It hangs in the boathouse.", url=receiver.url)
        reply = StoredReply(1, Lane("http", "default", "http:chat:42", "root:http:chat:42"), None, "sending", draft)
        MAY_SEND.set(lambda: False)
        assert ((await channel.send(reply)).outcome, receiver.accepted) == (Delivered.RETRY, [])
        MAY_SEND.set(lambda: True)
        assert (await channel.send(reply)).outcome is Delivered.CONFIRMED
        await channel.close()
