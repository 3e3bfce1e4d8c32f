"""The contract of paused conversations: messages wait, commands are claimed, and nothing is lost or answered twice."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import Dispatch, TurnCommit
from keepsaid.domain.effects import SetPaused
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.route import COMMAND_RULE
from keepsaid.domain.views import PausedConversation
from keepsaid.testing.builders import AT_ONCE, ROOM, lane_of, outcome, routed, said, verdict
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

COMMAND = verdict(rule=COMMAND_RULE)


async def set_paused(road: StoreDriver, *, paused: bool, room: str = ROOM) -> None:
    """Pause a conversation or resume it, by a command that is said there."""
    await road.queue(said("/pause" if paused else "/resume", room=room), 1, COMMAND)
    [claimed] = await road.claim(1)
    end, batch = replace(outcome("done"), effects=(SetPaused(paused),)), claimed.batch
    reply = ReplyDraft(road.new_id(), "done")
    assert await road.store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, reply, 5))


async def texts(road: StoreDriver) -> list[list[str]]:
    """The messages of each batch that can be claimed now; all are answered."""
    found = await road.claim(9)
    for claimed in found:
        await road.answer(claimed)
    return [[message.text for message in claimed.messages] for claimed in found]


class PauseContract:
    """While a conversation is paused its messages wait in order, in all its lanes, and only commands are claimed."""

    async def test_messages_wait_and_commands_are_claimed(self, store: ContractStore) -> None:
        """Resumed, what waited is claimed in order; a crash changes nothing; other conversations are not touched."""
        road = StoreDriver(store)
        await set_paused(road, paused=True)
        for text in ("one", "two"):
            await road.queue(said(text))
        await road.queue(said("other", room="b"))
        assert await texts(road) == [["other"]]
        assert await store.next_ready() is None
        assert await road.crash(20) == ()
        assert await texts(road) == []
        here = lane_of()
        assert (await store.overview()).paused == (PausedConversation(*here[:3], since=5, waiting=2),)
        await road.queue(said("/status"), 0, COMMAND)
        assert await texts(road) == [["/status"]]
        await set_paused(road, paused=False)
        await road.queue(said("three"))
        assert [await texts(road), await texts(road)] == [[["one", "two"]], [["three"]]]
        assert (await store.overview()).paused == ()

    async def test_a_command_that_was_routed_before_the_pause_is_claimed(self, store: ContractStore) -> None:
        """So that a `/resume` right after `/pause` is read."""
        road = StoreDriver(store)
        await road.queue(said("/pause"))
        claimed = await road.claim_one()
        await road.queue(said("one"))
        await road.queue(said("/resume"), 0, verdict(rule="vip"))
        end, batch = replace(outcome("done"), effects=(SetPaused(True),)), claimed.batch
        reply = ReplyDraft(road.new_id(), "done")
        assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, reply, 5))
        assert await texts(road) == [["/resume"]]
        assert await texts(road) == []

    async def test_a_dispatch_of_before_the_pause_is_refused(self, store: ContractStore) -> None:
        """The router reads again, and gives commands a batch of their own."""
        road = StoreDriver(store)
        await set_paused(road, paused=True)
        await road.receive(said("one"))
        group = await road.group(lane_of())
        assert group.paused
        assert [one.paused for one in await store.due(9, 9)] == [True]
        batch = routed(road.new_id(), group.messages, verdict())
        for paused in (False, True):
            commit = Dispatch(lane_of(), group.numbered_after, (batch,), AT_ONCE, 9, paused)
            assert await store.apply(commit) is paused

    async def test_every_lane_of_the_conversation_waits(self, store: ContractStore) -> None:
        """Also one that was not there when it was paused."""
        road = StoreDriver(store)
        await set_paused(road, paused=True)
        topic = replace(said("in a topic"), topic="9")
        await road.queue(topic)
        assert await texts(road) == []
        lines = await store.lanes(9)
        assert [(one.lane.key, one.waiting, one.paused) for one in lines if one.waiting] == [(topic.lane.key, 1, True)]
