"""What the outbox does with a reply that may have arrived."""

from __future__ import annotations

import asyncio

import pytest

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
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
