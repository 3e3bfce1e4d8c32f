"""What the outbox does with a reply that may have arrived, and with one that never arrives."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import LIFE_MS
from keepsaid.domain.commits import TakeReplies
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.errors import ProcessFenced
from keepsaid.pipeline.outbox import OutboxSender
from keepsaid.testing.builders import CHANNEL, said
from keepsaid.testing.clock import VirtualClock
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


class TakenForDead(InMemoryOperations):
    """A store whose process is frozen once it took a reply, until others took it over."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__()
        self._clock, self._is_dead = clock, False

    async def apply(self, commit: Any) -> Any:
        if self._is_dead:
            raise ProcessFenced("others took over its work")
        result = await super().apply(commit)
        if isinstance(commit, TakeReplies):
            await self._clock.advance(LIFE_MS + 1)
            self._is_dead = True
        return result


async def test_who_was_frozen_with_a_reply_that_it_took_does_not_send_it() -> None:
    clock, channel = VirtualClock(), Doubtful()
    road = StoreDriver(TakenForDead(clock))
    await road.queue(said(), clock.now_ms())
    await road.answer(await road.claim_one(clock.now_ms()), at=clock.now_ms())
    post = OutboxSender(road.store, {CHANNEL: channel}, clock, "one", asyncio.Event())
    with pytest.raises(ProcessFenced):
        await post.deliver()
    await post.stop(5)
    assert channel.sent == []
