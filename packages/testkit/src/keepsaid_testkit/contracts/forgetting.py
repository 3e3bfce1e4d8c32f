"""The contract of forgetting in the operational store: what goes is gone, what stays is as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from keepsaid.domain.commits import ClaimBatches, Receive, Received, Settle, StepEnd, StepStart, TakeReplies, TurnCommit
from keepsaid.domain.compaction import Summarise
from keepsaid.domain.context import Made
from keepsaid.domain.effects import KeepTime, MakeTask, MemoryAction, StageMemory
from keepsaid.domain.forgetting import (
    DropUndo,
    ForgetSelector,
    ForgetTargets,
    HoldingTurns,
    MoveForgetting,
    PutBack,
    RequestForgetting,
    Scrubbed,
    ScrubForgotten,
    Work,
    name_digest,
)
from keepsaid.domain.message import Inbound, ProviderMarks
from keepsaid.domain.reply import Delivered, ReplyDraft
from keepsaid.domain.schedule import Fire, NewSchedule, Target, What
from keepsaid.domain.scheduling import EndRun, FireSchedules, RunKey
from keepsaid.domain.timing import Once
from keepsaid.domain.turn import Usage
from keepsaid.testing.builders import AT_ONCE, CHANNEL, arrival, lane_of, outcome, said, step
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

_REQUEST = 500
_STEPS = ("hide", "erase", "scrub", "checkpoint", "finish")


async def complete_turn(
    road: StoreDriver, text: str, answer: str = "noted", room: str = "room", name: str | None = None
) -> int:
    """Process a message to the end of its turn, with one model call; returns the message's id."""
    queued = await road.queue(said(text, room=room, marks=ProviderMarks(external_id=name)))
    claimed = await road.claim_one()
    fence, turn_id = claimed.batch.fence, claimed.turn_id
    assert await road.store.apply(StepStart(turn_id, fence, step(), 1, {"memory": {"candidates": []}, "said": text}))
    assert await road.store.apply(StepEnd(turn_id, fence, 1, {"text": answer}, Usage(), 2))
    await road.answer(claimed, answer)
    return queued.first.id


async def request(
    store: ContractStore,
    *messages: int,
    number: int = _REQUEST,
    turns: Sequence[int] = (),
    undo_until: int | None = None,
) -> Scrubbed:
    """Ask for messages and the turns that answered them to be forgotten, and scrub one piece."""
    found = tuple(turns) or await store.reach.answering(messages)
    digests = tuple(name_digest(f"message:{one}") for one in messages)
    wanted = ForgetTargets(messages=messages, turns=found, words=frozenset({"zebra"}), digests=digests)
    assert await store.apply(RequestForgetting(number, "id", "owner", wanted, 50, (), undo_until))
    return await store.apply(ScrubForgotten(number, 60))


async def redeliver(store: ContractStore, inbound: Inbound, number: int) -> Received:
    """Receive the same delivery once more."""
    return await store.apply(Receive(arrival(number, inbound, 99), AT_ONCE))


class ForgettingContract:
    """What was said goes with all that was made of it; who asks for it again learns that it is known."""

    async def test_what_goes_leaves_no_word_and_its_neighbours_stay(self, store: ContractStore) -> None:
        """Message, reply, transcript, steps and trace; nothing is damaged by it."""
        road = StoreDriver(store)
        kept, gone = (
            await complete_turn(road, "the train leaves at nine"),
            await complete_turn(road, "the zebra is called Rex", "a zebra"),
        )
        assert await request(store, gone) == Scrubbed(0, 0)
        story, beside = await road.story(gone), await road.story(kept)
        assert (story.message.text, story.message.inbound.content.payload, story.message.damaged) == ("", b"", False)
        assert [reply.draft.text for reply in story.replies] == [""]
        assert (beside.message.text, [reply.draft.text for reply in beside.replies]) == (
            "the train leaves at nine",
            ["noted"],
        )
        tail = await store.context(lane_of(), 10)
        assert [record.text for record in tail.recent.records] == ["the train leaves at nine", "noted"]
        assert story.turn_id is not None
        turn = await store.turn(story.turn_id)
        assert turn is not None
        assert (turn.steps, turn.trace, [record.text for record in turn.records]) == ((), None, ["", ""])

    async def test_what_its_turn_asked_memory_to_do_is_not_done(self, store: ContractStore) -> None:
        """What another turn staged is still there."""
        road, turns = StoreDriver(store), []
        for text in ("the zebra is called Rex", "the train leaves at nine"):
            await road.queue(said(text))
            claimed = await road.claim_one()
            end = replace(outcome(), effects=(StageMemory(0, MemoryAction.SAVE, text=text),))
            batch = claimed.batch
            assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 7))
            turns.append((claimed.messages[0].id, claimed.turn_id))
        counts = await store.reach.count(ForgetTargets(messages=turns[0][:1], turns=turns[0][1:]))
        assert await request(store, turns[0][0], turns=(turns[0][1],)) == Scrubbed(0, 0)
        staged = {one.turn_id: [deed.text for deed in one.staged] for one in await store.episode_work(9)}
        assert staged.get(turns[0][1], []) == []
        assert staged[turns[1][1]] == ["the train leaves at nine"]
        found = await store.forgettings.one(_REQUEST)
        assert found is not None
        assert (found.counts, dict(counts)["staged"]) == (counts, 1)

    async def test_what_its_turn_set_about_is_not_done(self, store: ContractStore) -> None:
        """Its tasks and schedules are cancelled, and say nothing any more; undone they are as they were."""
        road = StoreDriver(store)
        await road.queue(said("remind me of the zebra"))
        claimed = await road.claim_one()
        at_noon = NewSchedule(70, "agent", "", Once(90_000), What.SAY, "the zebra", Target(lane_of()))
        effects = (MakeTask(71, "look for the zebra"), KeepTime(at_noon, 90_000))
        batch, end = claimed.batch, replace(outcome(), effects=effects)
        assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 7))
        before = await store.schedules.schedule(70), await store.tasks.task(71)
        gone = claimed.messages[0].id
        counts = await store.reach.count(ForgetTargets(messages=(gone,), turns=(claimed.turn_id,)))
        assert await request(store, gone, turns=(claimed.turn_id,), undo_until=900) == Scrubbed(0, 0)
        schedule, story = await store.schedules.schedule(70), await store.tasks.task(71)
        assert schedule is not None
        assert story is not None
        assert (schedule.new.text, schedule.state) == ("", "cancelled")
        assert (story.task.description, story.task.state) == ("", "cancelled")
        found = await store.forgettings.one(_REQUEST)
        assert found is not None
        assert {name: n for name, n in found.counts if name in ("tasks", "schedules")} == {"tasks": 1, "schedules": 1}
        assert found.counts == counts
        assert await store.apply(PutBack(_REQUEST, 81))
        assert (await store.schedules.schedule(70), await store.tasks.task(71)) == before

    async def test_what_its_schedule_has_said_goes_with_it(self, store: ContractStore) -> None:
        """Out of the outbox, and out of what the lane is shown."""
        road = StoreDriver(store)
        await road.queue(said("remind me of the zebra"))
        claimed = await road.claim_one()
        at_noon = NewSchedule(70, "agent", "", Once(90), What.SAY, "the zebra", Target(lane_of()))
        end = replace(outcome(), effects=(KeepTime(at_noon, 90),))
        assert await store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, 7))
        assert await store.apply(FireSchedules((Fire(70, 90, None, 90),), 90)) == 1
        await store.apply(EndRun(RunKey(70, 90), "execute", 91, reply=ReplyDraft(72, "the zebra")))
        assert [one.text for one in (await store.context(lane_of(), 10)).posts] == ["the zebra"]
        [taken] = await store.apply(TakeReplies((CHANNEL,), "one", 9, 95))
        assert await store.apply(Settle(taken.id, taken.fence, Delivered.CONFIRMED, 96))
        await request(store, claimed.messages[0].id, turns=(claimed.turn_id,))
        assert (await store.context(lane_of(), 10)).posts == ()

    async def test_what_can_be_undone_is_as_it_was(self, store: ContractStore) -> None:
        """With its place in the prompt and without a tombstone; what was said meanwhile stays."""
        road = StoreDriver(store)
        kept, gone = (
            await complete_turn(road, "the train leaves at nine"),
            await complete_turn(road, "the zebra is called Rex", "a zebra"),
        )
        before, tail = await road.story(gone), await store.context(lane_of(), 10)
        assert before.turn_id is not None
        turn = await store.turn(before.turn_id)
        await request(store, gone, undo_until=900)
        assert (await road.story(gone)).message.text == ""
        [found] = await store.forgettings.undoable()
        assert (found.id, found.undo_until) == (_REQUEST, 900)
        for verb in _STEPS:
            assert await store.apply(MoveForgetting(_REQUEST, verb, 70))
        assert await store.forgettings.tombstones()
        later = await complete_turn(road, "something else")
        assert await store.apply(MoveForgetting(_REQUEST, "undo", 80))
        assert [one.state for one in await store.forgettings.unfinished()] == ["restoring"]
        assert await store.apply(PutBack(_REQUEST, 81))
        assert not await store.apply(PutBack(_REQUEST, 82)), "again it does nothing"
        assert await store.apply(MoveForgetting(_REQUEST, "restore", 83))
        assert (await road.story(gone)).message == before.message
        assert (await road.story(kept)).message.text == "the train leaves at nine"
        assert (await road.story(later)).message.text == "something else"
        again = await store.context(lane_of(), 10)
        assert again.recent.records[: len(tail.recent.records)] == tail.recent.records
        returned = await store.turn(before.turn_id)
        assert turn is not None
        assert returned is not None
        assert (returned.steps, returned.trace, returned.records) == (turn.steps, turn.trace, turn.records)
        assert await store.forgettings.tombstones() == ()
        assert await store.forgettings.undoable() == await store.forgettings.unfinished() == []

    async def test_what_is_kept_aside_can_be_dropped(self, store: ContractStore) -> None:
        """Then it is gone like what was not kept."""
        gone = await complete_turn(StoreDriver(store), "the zebra is called Rex")
        await request(store, gone, undo_until=900)
        assert await store.apply(DropUndo(_REQUEST))
        assert not await store.apply(DropUndo(_REQUEST))
        assert [one.id for one in await store.forgettings.undoable()] == [_REQUEST]
        assert not await store.apply(DropUndo(_REQUEST, emptied=True))
        assert await store.forgettings.undoable() == []
        assert not await store.apply(PutBack(_REQUEST, 81))
        assert (await StoreDriver(store).story(gone)).message.text == ""

    async def test_a_redelivery_of_it_is_a_duplicate(self, store: ContractStore) -> None:
        """The hashes of its name and of its content outlive it."""
        road = StoreDriver(store)
        gone = await complete_turn(road, "the zebra is called Rex", name="zebra-1")
        await request(store, gone)
        inbound = said("the zebra is called Rex", marks=ProviderMarks(external_id="zebra-1"))
        received = await redeliver(store, inbound, road.new_id())
        assert (received.intake, received.id) == ("duplicate", gone)
        assert (await road.story(gone)).message.text == ""

    async def test_a_reply_that_waits_is_not_delivered(self, store: ContractStore) -> None:
        """No delivery follows."""
        road = StoreDriver(store)
        gone = await complete_turn(road, "the zebra is called Rex")
        assert await store.unseen("test", "room")
        await request(store, gone)
        assert list(await store.unseen("test", "room")) == []
        assert [reply.state for reply in (await road.story(gone)).replies] == ["not_deliverable"]

    async def test_what_waits_is_dropped_and_what_runs_is_waited_for(self, store: ContractStore) -> None:
        """A turn that is open keeps its steps, so that it can go on; its message is empty at once."""
        road = StoreDriver(store)
        queued = await road.queue(said("the zebra is called Rex"))
        assert await request(store, queued.first.id) == Scrubbed(0, 0)
        assert (await road.story(queued.first.id)).state == "dropped"
        running = await road.queue(said("another zebra"))
        claimed = await road.claim_one()
        assert await request(store, running.first.id, number=501, turns=(claimed.turn_id,)) == Scrubbed(0, 2)
        assert (await road.story(running.first.id)).message.text == ""
        assert await store.reach.at_work(50, (lane_of(),)) == 1
        await road.answer(claimed, "a zebra")
        assert await store.apply(ScrubForgotten(501, 70)) == Scrubbed(0, 0)
        assert [reply.draft.text for reply in (await road.story(running.first.id)).replies] == [""]
        assert await store.reach.at_work(50, (lane_of(),)) == 0

    async def test_a_summary_made_of_it_goes_and_one_in_the_making_is_refused(self, store: ContractStore) -> None:
        """The lane is summarised again, from the records before it on."""
        road = StoreDriver(store)
        for text in ("one", "two"):
            await complete_turn(road, text)
        gone = await complete_turn(road, "the zebra is called Rex")
        assert await store.apply(Summarise(lane_of(), 0, 2, "one was said", Made.MODEL, "m", 10))
        assert await store.apply(Summarise(lane_of(), 1, 6, "a zebra was named", Made.MODEL, "m", 11))
        assert await store.reach.summarised((gone,), ()) == (lane_of(),)
        seen = (await store.context(lane_of(), 1)).version
        await request(store, gone)
        tail = await store.context(lane_of(), 10)
        assert tail.summary is not None
        assert (tail.summary.text, tail.covered) == ("one was said", 2)
        assert [record.text for record in tail.recent.records] == ["two", "noted"]
        assert not await store.apply(Summarise(lane_of(), seen, 6, "a zebra", Made.MODEL, "m", 12))
        assert [one.summary.text for one in await store.summaries_due(9)] == ["one was said"]
        assert await store.reach.summarised((gone,), ()) == ()

    async def test_targets_are_counted_as_scrubbing_counts_them(self, store: ContractStore) -> None:
        """What is gone already is counted by neither, although it is named again."""
        road = StoreDriver(store)
        gone = await complete_turn(road, "the zebra is called Rex", "a zebra")
        assert await store.apply(Summarise(lane_of(), 0, 2, "a zebra was named", Made.MODEL, "m", 10))
        targets = ForgetTargets(messages=(gone,), turns=await store.reach.answering([gone]))
        counts = await store.reach.count(targets)
        assert dict(counts) == {"messages": 1, "records": 2, "replies": 1, "steps": 1, "summaries": 1, "traces": 1}
        for number, expected in ((_REQUEST, counts), (_REQUEST + 1, ())):
            assert await store.reach.count(targets) == expected
            await request(store, gone, number=number)
            found = await store.forgettings.one(number)
            assert found is not None
            assert found.counts == expected

    async def test_it_goes_on_step_by_step_and_keeps_nothing_of_it_at_the_end(self, store: ContractStore) -> None:
        """A move out of order is refused; asked twice, it is one request."""
        road = StoreDriver(store)
        gone = await complete_turn(road, "the zebra is called Rex")
        await request(store, gone)
        wanted = await store.forgettings.get_targets(_REQUEST)
        assert (wanted.messages, wanted.words) == ((gone,), frozenset({"zebra"}))
        assert not await store.apply(RequestForgetting(_REQUEST, "id", "owner", ForgetTargets(), 51))
        assert not await store.apply(MoveForgetting(_REQUEST, "scrub", 61))
        for verb in _STEPS:
            assert [one.id for one in await store.forgettings.unfinished()] == [_REQUEST]
            assert await store.apply(MoveForgetting(_REQUEST, verb, 62, (("memories", 1),)))
        assert await store.forgettings.get_targets(_REQUEST) == ForgetTargets()
        assert await store.forgettings.unfinished() == []
        found = await store.forgettings.one(_REQUEST)
        assert found is not None
        counts = dict(found.counts)
        assert (found.state, counts["memories"], counts["messages"], counts["replies"]) == ("done", 5, 1, 1)
        assert [one.id for one in await store.forgettings.newest(5)] == [_REQUEST]


class NamesContract:
    """Names go with what they name: of senders, of deliveries, of tasks and schedules."""

    async def test_who_said_it_and_how_its_provider_names_it_is_forgotten_with_it(self, store: ContractStore) -> None:
        """A redelivery is still known; a reply to it opens a lane of its own."""
        road = StoreDriver(store)
        marks = ProviderMarks(external_id="zebra-1", provider_id="zebra-post-1", reply_to="zebra-post-0")
        inbound = replace(said("the zebra is called Rex", marks=marks), topic="zebras", reply_url="http://zebra.test/")
        queued = await road.queue(inbound)
        await road.answer(await road.claim_one(), "a zebra")
        assert await request(store, queued.first.id) == Scrubbed(0, 0)
        stored = (await road.story(queued.first.id)).message.inbound
        assert (stored.origin.sender, stored.origin.name, stored.marks) == ("forgotten", "", ProviderMarks())
        assert (stored.topic, stored.reply_url) == (None, None)
        [reply] = (await road.story(queued.first.id)).replies
        assert (reply.draft.url, reply.draft.reply_to) == (None, None)
        received = await redeliver(store, inbound, road.new_id())
        assert (received.intake, received.id) == ("duplicate", queued.first.id)

    async def test_the_names_of_its_tasks_and_schedules_are_forgotten_with_it(self, store: ContractStore) -> None:
        """A model chose them."""
        road = StoreDriver(store)
        await road.queue(said("remind me of the zebra"))
        claimed = await road.claim_one()
        at_noon = NewSchedule(70, "agent", "zebra", Once(90_000), What.SAY, "the zebra", Target(lane_of()))
        effects = (MakeTask(71, "look for the zebra", key="zebra"), KeepTime(at_noon, 90_000))
        batch, end = claimed.batch, replace(outcome(), effects=effects)
        assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 7))
        assert await request(store, claimed.messages[0].id, turns=(claimed.turn_id,)) == Scrubbed(0, 0)
        schedule, story = await store.schedules.schedule(70), await store.tasks.task(71)
        assert schedule is not None
        assert story is not None
        assert (schedule.new.name, schedule.reason, story.task.key) == ("", "", "")


class ReachContract:
    """A wish reaches what a person said, a conversation, a text; and whatever repeats it."""

    async def test_messages_are_found_by_person_conversation_and_text(self, store: ContractStore) -> None:
        """But not those that are forgotten already."""
        road = StoreDriver(store)
        here, there = await complete_turn(road, "a Zebra here"), await complete_turn(road, "and there", room="den")
        assert set(await store.reach.messages(ForgetSelector(person="ann"))) == {here, there}
        assert set(await store.reach.messages(ForgetSelector(person="test:me:ann"))) == {here, there}
        assert await store.reach.messages(ForgetSelector(person="test:me:bob")) == ()
        assert set(await store.reach.messages(ForgetSelector(person="test:me:bob", joined=("test:me:ann",)))) == {
            here,
            there,
        }
        assert await store.reach.messages(ForgetSelector(conversation="den")) == (there,)
        assert await store.reach.messages(ForgetSelector(text="zEBRA")) == (here,)
        assert await store.reach.list_texts((here,)) == ("a Zebra here",)
        await request(store, here, there)
        assert await store.reach.messages(ForgetSelector(text="zebra")) == ()
        assert await store.reach.messages(ForgetSelector(conversation="den")) == ()
        assert await store.forgettings.revived(await store.forgettings.tombstones()) == Work()

    async def test_turns_that_repeat_a_word_are_found_where_it_was_told(self, store: ContractStore) -> None:
        """Elsewhere only those that name a memory."""
        road = StoreDriver(store)
        told_here = await complete_turn(road, "something", "the zebra again")
        elsewhere = await complete_turn(road, "something", "a zebra of mine", room="den")
        naming = await complete_turn(road, "what?", "see mem_000000000000b", room="attic")
        turns = {one: (await store.reach.answering((one,)))[0] for one in (told_here, elsewhere, naming)}
        words = frozenset({"zebra"})
        held = await store.reach.holding((lane_of(),), words, (11,))
        assert held == HoldingTurns((turns[told_here], turns[naming]), ())
        assert await store.reach.lanes((elsewhere,), ()) == (lane_of("den"),)

    async def test_a_claim_of_what_went_shows_nothing(self, store: ContractStore) -> None:
        """A message that goes while its batch waits behind another."""
        road = StoreDriver(store)
        first = await road.receive(said("the zebra is called Rex"))
        await road.receive(said("and what else?"))
        await road.route(first.lane)
        assert (await request(store, first.id)).waiting == 1
        [lease] = await store.apply(ClaimBatches("one", 1, (road.new_id(),), 70, 99))
        claimed = await store.claimed(lease)
        assert claimed is not None
        assert [message.text for message in claimed.messages] == ["", "and what else?"]
