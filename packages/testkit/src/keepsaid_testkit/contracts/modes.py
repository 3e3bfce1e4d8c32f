"""The contracts of paused conversations, whose messages wait, and of incognito, of which nothing reaches memory."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.command import ExecutedCommand
from keepsaid.domain.commits import Dispatch, TurnCommit
from keepsaid.domain.compaction import Summarise
from keepsaid.domain.context import Made
from keepsaid.domain.effects import MemoryAction, SetIncognito, SetPaused, StageMemory
from keepsaid.domain.message import Lane
from keepsaid.domain.prompt import Role
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.route import COMMAND_RULE
from keepsaid.domain.session import MarkUnprocessed
from keepsaid.domain.turn import NO_MODEL, ClaimedBatch, Outcome, Usage
from keepsaid.domain.views import PausedConversation, Story
from keepsaid.testing.builders import AT_ONCE, lane_of, outcome, routed, said, verdict
from keepsaid_testkit.contracts.forks import fork_lane, placed, settled, shown
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

COMMAND = verdict(rule=COMMAND_RULE)


async def settle(road: StoreDriver, claimed: ClaimedBatch, end: Outcome) -> Story:
    """Settle a turn with an outcome; returns the story of its first message."""
    reply, batch = ReplyDraft(road.new_id(), end.reply), claimed.batch
    assert await road.store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, reply, 5))
    return await road.story(claimed.messages[0].id)


async def settle_mode(road: StoreDriver, effect: SetPaused | SetIncognito) -> None:
    """Set a mode by a command that is said in the lane."""
    queued = await road.queue(said("/pause"), 1, COMMAND)
    executed = (ExecutedCommand(queued.first.id, "pause", "done", 0),)
    end = Outcome("done", (), Usage(), NO_MODEL, effects=(effect,), executed=executed)
    await settle(road, await road.claim_one(1), end)


async def set_paused(road: StoreDriver, *, paused: bool) -> None:
    """Pause a conversation or resume it."""
    await settle_mode(road, SetPaused(paused))


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
        await settle(road, claimed, replace(outcome("done"), effects=(SetPaused(True),)))
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


async def is_in_incognito(store: ContractStore, lane: Lane) -> bool:
    """Whether what is said in a lane now is said in incognito."""
    line = await store.line(lane)
    return line is not None and line.incognito


class IncognitoContract:
    """What is said in incognito stays in its lane, also when it is answered after the end of incognito."""

    async def test_a_fork_of_a_message_in_incognito_is_in_incognito_and_has_what_was_said(
        self, store: ContractStore
    ) -> None:
        road = StoreDriver(store)
        one = await settled(road, replace(placed("one", "place one"), incognito=True), "answer to one")
        assert await is_in_incognito(store, placed("", "").lane)
        await road.receive(placed("two", "place two", fork="f", after=one))
        assert await is_in_incognito(store, fork_lane("f"))
        assert await shown(store, fork_lane("f")) == [(Role.USER, "one"), (Role.ASSISTANT, "answer to one")]

    async def test_nothing_of_it_is_work_of_memory(self, store: ContractStore) -> None:
        """No episodes, no staged requests, no mark of its session, no copy of a summary."""
        road = StoreDriver(store)
        await road.settle(said("before"))
        await settle_mode(road, SetIncognito(True))
        assert [line.incognito for line in await store.lanes(9)] == [True]
        await road.queue(said("secret"))
        claimed = await road.claim_one()
        assert claimed.around.incognito
        save = StageMemory(0, MemoryAction.SAVE, text="a secret")
        story = await settle(road, claimed, replace(outcome("a secret"), effects=(save,)))
        assert not story.staged
        tail = await store.context(lane_of(), 9)
        commit = Summarise(lane_of(), tail.version, tail.head, "a secret", Made.MODEL, "test/model", 9)
        assert await store.apply(commit)
        assert (await store.summaries_due(9), await store.summaries_of(lane_of(), 0)) == ([], [])
        await settle_mode(road, SetIncognito(False))
        assert [line.incognito for line in await store.lanes(9)] == [False]
        tail = await store.context(lane_of(), 9)
        assert (tail.recent.records, tail.summary) == ((), None)
        await road.settle(said("after"))
        work = await store.episode_work(9)
        assert [[message.text for message in batch.messages] for batch in work] == [["before"], ["after"]]
        await store.apply(MarkUnprocessed(99))
        marked = [line.session_id for line in await store.collections(("marked",), 9)]
        newest, incognito, first = await store.sessions(lane_of(), 9)
        assert sorted(marked) == [first.id, newest.id]
        assert (incognito.first, incognito.last, incognito.invalidated_at) == (3, 4, None)

    async def test_a_message_that_waited_is_answered_in_incognito(self, store: ContractStore) -> None:
        """Its number counts, not the time of its turn; and the lane shows nothing of it afterwards."""
        road = StoreDriver(store)
        await settle_mode(road, SetIncognito(True))
        await set_paused(road, paused=True)
        await road.queue(said("secret"))
        await road.queue(said("/incognito off"), 0, COMMAND)
        claimed = await road.claim_one()
        await settle(road, claimed, replace(outcome("off"), effects=(SetIncognito(False),)))
        await set_paused(road, paused=False)
        claimed = await road.claim_one()
        assert (claimed.messages[0].text, claimed.around.incognito) == ("secret", True)
        await road.answer(claimed)
        assert (await store.context(lane_of(), 9)).recent.records == ()
        assert not [one for one in await store.episode_work(9) if one.messages[0].text == "secret"]
