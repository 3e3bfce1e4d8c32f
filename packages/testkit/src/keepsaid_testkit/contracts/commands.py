"""The contract of commands in a chat: what the commit of their turn does, and what it leaves out."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.command import ExecutedCommand
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.turn import NO_MODEL, ClaimedBatch, Outcome, Usage
from keepsaid.testing.builders import lane_of, outcome, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver


async def settle_commands(road: StoreDriver, claimed: ClaimedBatch, end: Outcome, *commands: int) -> bool:
    """Settle a turn that ran the commands in the messages with these ids, with the outcome `end`."""
    obeyed = tuple(ExecutedCommand(message_id, "reset", "done", 0) for message_id in commands)
    reply, batch = ReplyDraft(road.new_id(), end.reply or "done"), claimed.batch
    settled = TurnCommit(claimed.turn_id, batch.id, batch.fence, replace(end, executed=obeyed), reply, 5)
    return await road.store.apply(settled)


NOTHING = Outcome("reset", (), Usage(), NO_MODEL)


class CommandContract:
    """A command is answered like a message, and is not part of the transcript."""

    async def test_a_command_is_settled_and_leaves_no_record(self, store: ContractStore) -> None:
        """Its message and reply stay, its lane goes on; the transcript and its session do not know of it."""
        road = StoreDriver(store)
        await road.settle(said("one"))
        before, session = await store.context(lane_of(), 9), await store.sessions(lane_of(), 9)
        queued = await road.queue(said("/context"))
        assert await settle_commands(road, await road.claim_one(), NOTHING, queued.first.id)
        story = await store.story(queued.first.id)
        assert story is not None
        assert (story.state, [reply.draft.text for reply in story.replies]) == ("done", ["reset"])
        assert await store.context(lane_of(), 9) == before
        assert await store.sessions(lane_of(), 9) == session
        await road.settle(said("two"))
        assert [one.text for one in (await store.context(lane_of(), 9)).recent.records][-2] == "two"

    async def test_a_lane_that_begins_anew_shows_nothing_of_before(self, store: ContractStore) -> None:
        """Its session ends; what was said stays in the transcript."""
        road = StoreDriver(store)
        await road.settle(said("one"))
        queued = await road.queue(said("/reset"))
        assert await settle_commands(road, await road.claim_one(), replace(NOTHING, begins_anew=True), queued.first.id)
        tail = await store.context(lane_of(), 9)
        assert (tail.recent.records, tail.floor, tail.head) == ((), 2, 2)
        [ended] = await store.sessions(lane_of(), 9)
        assert (ended.state, ended.ended_reason) == ("ended", "reset")
        assert [one.text for one in (await store.span(lane_of(), 0, 9)).records] == ["one", "hello yourself"]

    async def test_what_was_said_beside_a_command_comes_after_it(self, store: ContractStore) -> None:
        """It is the first of what is shown."""
        road = StoreDriver(store)
        await road.settle(said("one"))
        first = await road.receive(said("/reset"))
        await road.receive(said("two"))
        await road.route(first.lane)
        assert await settle_commands(road, await road.claim_one(), replace(outcome("2"), begins_anew=True), first.id)
        tail = await store.context(lane_of(), 9)
        assert [one.text for one in tail.recent.records] == ["two", "2"]
        newest, _ = await store.sessions(lane_of(), 9)
        assert (newest.state, newest.started_reason) == ("active", "reset")

    async def test_with_an_old_fence_nothing_happens(self, store: ContractStore) -> None:
        """Neither an answer nor a beginning."""
        road = StoreDriver(store)
        await road.settle(said("one"))
        queued = await road.queue(said("/reset"))
        claimed = await road.claim_one()
        late = replace(claimed, batch=replace(claimed.batch, fence=claimed.batch.fence - 1))
        assert not await settle_commands(road, late, replace(NOTHING, begins_anew=True), queued.first.id)
        assert (await store.context(lane_of(), 9)).floor == 0
