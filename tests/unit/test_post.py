"""What the outbox does with a reply that may have arrived, and with one that is not sent for long."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from keepsaid.adapters.channels.push import PushChannel
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import LIFE_MS, SURE_MS
from keepsaid.domain.commits import Decide, TakeReplies
from keepsaid.domain.message import Lane
from keepsaid.domain.reply import Delivered, ReplyDraft, Sending, SendLimits, SendResult, StoredReply
from keepsaid.errors import ProcessFenced, StoreUnreachable
from keepsaid.pipeline.leasing import LifeTerms, ProcessAge
from keepsaid.pipeline.outbox import OutboxSender
from keepsaid.ports.channel import MAY_SEND, Channel, check_may_send
from keepsaid.testing.builders import CHANNEL, said
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.reply_receiver import ReplyReceiver
from keepsaid_testkit.contracts.store_driver import StoreDriver

_LIMITS = SendLimits()


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
    post = OutboxSender(road.store, {CHANNEL: channel}, clock, "one", asyncio.Event(), SendLimits(given_up))
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


async def sent_until_settled(channel: Channel, clock: VirtualClock, limits: SendLimits = _LIMITS) -> StoredReply:
    """A reply as it is once it was tried as long as anything was due."""
    road = StoreDriver(InMemoryOperations())
    await road.queue(said(), clock.now_ms())
    claimed = await road.claim_one(clock.now_ms())
    await road.answer(claimed, at=clock.now_ms())
    post = OutboxSender(road.store, {CHANNEL: channel}, clock, "one", asyncio.Event(), limits)
    while (due := await post.deliver()) is not None:
        await post.stop(5)
        await clock.advance(max(1, due - clock.due_ms()))
    turn = await road.store.turn(claimed.turn_id)
    assert turn is not None
    [reply] = turn.replies
    return reply


async def test_what_was_not_sent_is_tried_for_a_day_and_is_dead() -> None:
    clock = VirtualClock()
    channel = Absent(clock)
    reply = await sent_until_settled(channel, clock)
    waits = [after - before for before, after in pairwise(channel.tried_at)]
    assert all(500 * 2**n <= wait <= 500 * 2**n + 300 for n, wait in enumerate(waits[:9]))
    assert all(300_000 <= wait <= 300_300 for wait in waits[10:])
    assert 86_400_000 <= sum(waits) < 86_400_000 + 300_300
    assert (reply.state, reply.detail) == ("dead", "nobody is there; given up after 24 h")


async def test_an_owner_says_how_long_what_was_not_sent_is_tried() -> None:
    clock = VirtualClock()
    channel = Absent(clock)
    reply = await sent_until_settled(channel, clock, SendLimits(dead_after_ms=3_600_000))
    assert 3_600_000 <= channel.tried_at[-1] - channel.tried_at[0] < 3_600_000 + 300_300
    assert reply.detail == "nobody is there; given up after 1 h"


class Changing(Absent):
    """A channel that is not there for two hours, and then never says whether a reply arrived."""

    async def send(self, reply: StoredReply) -> SendResult:
        await super().send(reply)
        is_away = self.tried_at[-1] - self.tried_at[0] < 7_200_000
        return SendResult(Delivered.RETRY, "away") if is_away else SendResult(Delivered.DOUBT, "no answer")

    @property
    def doubts(self) -> int:
        """How many tries may have arrived."""
        return sum(at - self.tried_at[0] >= 7_200_000 for at in self.tried_at)


async def test_tries_that_sent_nothing_do_not_count_toward_the_twenty_that_may_have_arrived() -> None:
    clock = VirtualClock()
    channel = Changing(clock)
    reply = await sent_until_settled(channel, clock)
    assert (reply.state, channel.doubts, len(channel.tried_at) > 40) == ("dead", 20, True)
    assert reply.detail == "no answer; given up: it may have arrived 20 times"


async def test_a_dead_reply_that_a_person_sends_again_has_as_long_again() -> None:
    road, clock = StoreDriver(InMemoryOperations()), VirtualClock()
    channel = Absent(clock)
    await road.queue(said(), clock.now_ms())
    claimed = await road.claim_one(clock.now_ms())
    await road.answer(claimed, at=clock.now_ms())
    limits = SendLimits(dead_after_ms=3_600_000)
    post = OutboxSender(road.store, {CHANNEL: channel}, clock, "one", asyncio.Event(), limits)
    for _ in range(2):
        began = len(channel.tried_at)
        while (due := await post.deliver()) is not None:
            await post.stop(5)
            await clock.advance(max(1, due - clock.due_ms()))
        assert channel.tried_at[-1] - channel.tried_at[began] >= limits.dead_after_ms
        turn = await road.store.turn(claimed.turn_id)
        assert turn is not None
        [reply] = turn.replies
        assert reply.state == "dead"
        assert await road.store.apply(Decide(reply.id, again=True, at=clock.due_ms()))


class Outage(Absent):
    """A channel whose provider is down for two days, in doubt whether a try arrived."""

    async def send(self, _reply: StoredReply) -> SendResult:
        self.tried_at.append(self._clock.now_ms())
        if self.tried_at[-1] - self.tried_at[0] < 2 * 86_400_000:
            return SendResult(Delivered.DOUBT if len(self.tried_at) % 2 else Delivered.RETRY, "down", outage=True)
        return SendResult(Delivered.CONFIRMED)


async def test_an_outage_ends_no_reply() -> None:
    clock = VirtualClock()
    channel = Outage(clock)
    reply = await sent_until_settled(channel, clock)
    assert (reply.state, len(channel.tried_at) > 200) == ("sent", True)


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


async def test_a_push_channel_posts_no_body_once_others_may_have_sent_it() -> None:
    """The process was stopped between the head of the request and its body: that is nowhere taken for a post."""
    async with ReplyReceiver() as receiver:
        channel = PushChannel("http", [receiver.host])
        draft = ReplyDraft(1, "It hangs in the boathouse.", url=receiver.url)
        reply = StoredReply(1, Lane("http", "default", "http:chat:42", "root:http:chat:42"), None, "sending", draft)
        asked = iter((True, False))
        MAY_SEND.set(lambda: next(asked))
        assert ((await channel.send(reply)).outcome, receiver.accepted) == (Delivered.DOUBT, [])
        assert next(asked, None) is None
        await channel.close()
