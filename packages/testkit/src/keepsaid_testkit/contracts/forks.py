"""The contract of forks: a lane that leaves another begins with what was said before, and no word is kept twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from keepsaid.domain.commits import IntakeResult, TurnCommit
from keepsaid.domain.compaction import CutContext, CutReason, Summarise
from keepsaid.domain.context import Made
from keepsaid.domain.forgetting import ForgetTargets, RequestForgetting, ScrubForgotten
from keepsaid.domain.message import Inbound, Lane, ProviderMarks
from keepsaid.domain.process import Note
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.regeneration import REGENERATE
from keepsaid.domain.session import MarkUnprocessed
from keepsaid.domain.turn import Outcome, Usage
from keepsaid.testing.builders import ROOM, lane_of, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver


def placed(text: str, place: str, *, fork: str = "", after: int | None = None, room: str = ROOM) -> Inbound:
    """A message of a client, with its place in the history."""
    inbound = replace(said(text, room), marks=ProviderMarks(f"chain:{place}", place), forks_after=after)
    return replace(inbound, topic=fork or None)


def fork_lane(fork: str) -> Lane:
    """The lane of a fork."""
    return placed("", "", fork=fork).lane


async def settled(road: StoreDriver, inbound: Inbound, answer: str) -> int:
    """A message with its answer; returns its id."""
    received = await road.receive(inbound)
    await road.route(received.lane)
    await road.answer(await road.claim_one(), answer)
    return received.id


async def chat(road: StoreDriver, *texts: str) -> list[int]:
    """A conversation in which each text was answered; returns the ids of its messages."""
    return [await settled(road, placed(text, f"place {text}"), f"answer to {text}") for text in texts]


async def shown(store: ContractStore, lane: Lane) -> Sequence[tuple[Role, str]]:
    """What the context of a lane has."""
    return [(one.role, one.text) for one in (await store.context(lane, 100)).recent.records]


class ForkContract:
    """How a lane begins that leaves another."""

    async def test_it_begins_with_what_was_said_up_to_the_message_and_its_answer(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        one, *_ = await chat(road, "one", "two", "three")
        await road.receive(placed("two, edited", "other", fork="f", after=one))
        assert await shown(store, fork_lane("f")) == [(Role.USER, "one"), (Role.ASSISTANT, "answer to one")]
        await road.route(fork_lane("f"))
        await road.answer(await road.claim_one(), "answer to the edit")
        assert [text for _, text in await shown(store, fork_lane("f"))][2:] == [
            "two, edited",
            "answer to the edit",
        ]
        assert len(await shown(store, lane_of())) == 6

    async def test_it_is_opened_once_and_a_fork_may_be_left_again(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        one, *_ = await chat(road, "one", "two")
        first = placed("a", "a", fork="f", after=one)
        left = await settled(road, first, "answer to a")
        assert (await road.receive(first)).intake is IntakeResult.DUPLICATE
        await settled(road, placed("b", "b", fork="f", after=one), "answer to b")
        assert [text for _, text in await shown(store, fork_lane("f"))][2:] == ["a", "answer to a", "b", "answer to b"]
        await road.receive(placed("c", "c", fork="g", after=left))
        said_before = [text for _, text in await shown(store, fork_lane("g"))]
        assert said_before == ["one", "answer to one", "a", "answer to a"]

    async def test_a_message_that_nobody_answered_yet_is_no_part_of_it(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        await chat(road, "one")
        waits = await road.receive(placed("two", "two"))
        await road.receive(placed("other", "other", fork="f", after=waits.id))
        assert [text for _, text in await shown(store, fork_lane("f"))] == ["one", "answer to one"]

    async def test_of_what_was_summarised_it_has_the_summary_of_that_time(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        _, two, three = await chat(road, "one", "two", "three")
        assert await store.apply(Summarise(lane_of(), 0, 2, "one was said", Made.MODEL, "test/model", 9))
        assert await store.apply(Summarise(lane_of(), 1, 6, "all was said", Made.MODEL, "test/model", 9))
        await road.receive(placed("a", "a", fork="early", after=two))
        tail = await store.context(fork_lane("early"), 9)
        assert (tail.summary and tail.summary.text, tail.left_out) == ("one was said", 0)
        assert [one.text for one in tail.recent.records] == ["two", "answer to two"]
        await road.receive(placed("b", "b", fork="late", after=three))
        tail = await store.context(fork_lane("late"), 9)
        assert (tail.summary and tail.summary.text, tail.recent.records) == ("all was said", ())
        later = Summarise(fork_lane("early"), tail.version, 2, "two as well", Made.MODEL, "test/model", 9)
        assert await store.apply(later)
        tail = await store.context(fork_lane("early"), 9)
        assert (tail.summary and tail.summary.text, tail.recent.records) == ("two as well", ())

    async def test_a_reset_before_the_message_holds_there_too(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        await chat(road, "one")
        assert await store.apply(CutContext(lane_of(), 0, 2, CutReason.RESET, 9))
        [two] = await chat(road, "two")
        await road.receive(placed("a", "a", fork="f", after=two))
        assert [text for _, text in await shown(store, fork_lane("f"))] == ["two", "answer to two"]

    async def test_nothing_is_said_twice_for_memory_or_collection(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        one, two = await chat(road, "one", "two")
        before = len(await store.episode_work(99))
        await settled(road, placed("a", "a", fork="f", after=one), "answer to a")
        assert len(await store.episode_work(99)) == before + 1
        await store.apply(MarkUnprocessed(99))
        [session] = await store.sessions(fork_lane("f"), 9)
        assert (session.first, session.last) == (3, 4)
        assert two > one

    async def test_what_is_forgotten_is_forgotten_there_too(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        one, two = await chat(road, "one", "two")
        await settled(road, placed("a", "a", fork="f", after=two), "answer to a")
        wanted = ForgetTargets(messages=(one,))
        assert await store.apply(RequestForgetting(900, "id", "owner", wanted, 50))
        await store.apply(ScrubForgotten(900, 60))
        for lane in (lane_of(), fork_lane("f")):
            assert "one" not in [text for _, text in await shown(store, lane)]
        assert "two" in [text for _, text in await shown(store, fork_lane("f"))]

    async def test_what_a_tool_of_the_client_returned_is_forgotten_with_its_message(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        one, two = await chat(road, "one", "two")
        names = [f"client-call:{one}", f"client-result:{one}:call_1", f"client-result:{two}:call_1"]
        for name in names:
            await store.apply(Note(name, "the code is 4711", 99_000, 1))
        wanted = ForgetTargets(messages=(one,))
        assert await store.apply(RequestForgetting(900, "id", "owner", wanted, 50))
        await store.apply(ScrubForgotten(900, 60))
        assert [await store.note(name, 70) for name in names] == ["", "", "the code is 4711"]

    async def test_no_lane_begins_with_what_another_conversation_said(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        other = await settled(road, placed("one", "one", room="elsewhere"), "answer")
        await road.receive(placed("a", "a", fork="f", after=other))
        await road.receive(placed("b", "b", fork="g", after=12_345))
        assert (await shown(store, fork_lane("f")), await shown(store, fork_lane("g"))) == ([], [])

    async def test_of_a_place_that_many_chats_share_the_newest_message_is_found(self, store: ContractStore) -> None:
        """Chats without a name that begin alike hide nothing of one that went on before them."""
        road = StoreDriver(store)
        first = replace(placed("hi", "hi"), marks=ProviderMarks("chain:first", "hi"))
        await road.receive(first)
        went_on = (await road.receive(placed("and now?", "hi and now"))).id
        rooms = [f"room {n}" for n in range(450)]
        later = [replace(placed("hi", "hi", room=room), marks=ProviderMarks(f"chain:{room}", "hi")) for room in rooms]
        ids = [(await road.receive(one)).id for one in later]
        here = _here(first)
        found = await store.histories.chained((*here[:2], ""), ["hi", "hi and now"])
        assert [one.id for one in found] == [ids[-1], went_on]

    async def test_request_for_another_answer_shows_the_message_and_can_be_left(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        one, two = await chat(road, "one", "two")
        asked = placed("", "place two", fork="f", after=one)
        asked = replace(
            asked, content=replace(asked.content, event=REGENERATE), marks=ProviderMarks("again", "place two")
        )
        notes = ((0, "it asks for another answer"), (two, "replaced"), (two, "and edited"))
        received = await road.receive(replace(asked, placing=notes))
        await road.route(received.lane)
        claimed = await road.claim_one()
        record = Record(Role.USER, "two", speaker="ann", ref=f"message:{two}")
        outcome = Outcome("another answer", (Record(Role.ASSISTANT, "another answer"),), Usage(), "scripted")
        outcome = replace(outcome, repeats=((received.id, record),))
        settled_by = TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, outcome, None, 0)
        assert await store.apply(settled_by)
        in_fork = ["one", "answer to one", "two", "another answer"]
        assert [text for _, text in await shown(store, fork_lane("f"))] == in_fork
        await settled(road, placed("three", "place three", fork="f"), "answer to three")
        await road.receive(placed("x", "place x", fork="g", after=received.id))
        assert [text for _, text in await shown(store, fork_lane("g"))] == in_fork
        versions = await store.histories.versions(_here(asked), "place two")
        assert [one.id for one in versions] == [received.id, two]
        stories = [await store.story(one) for one in (received.id, two)]
        assert [one.placed for one in stories if one is not None] == [
            "it asks for another answer",
            "replaced; and edited",
        ]

    async def test_messages_are_found_by_their_places_in_their_account(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        one, two = await chat(road, "one", "two")
        elsewhere = (await road.receive(placed("x", "place x", room="elsewhere"))).id
        here = _here(placed("", ""))
        found = await store.histories.chained(here, ["place one", "place two", "place x", "unknown"])
        assert [(at.id, at.place, at.number, at.is_last) for at in found] == [
            (two, "place two", 2, True),
            (one, "place one", 1, False),
        ]
        anywhere = await store.histories.chained((*here[:2], ""), ["place x", "place one"])
        assert [at.id for at in anywhere] == [elsewhere, one]
        assert await store.histories.chained(("other", *here[1:]), ["place one"]) == []
        assert await store.histories.chained(here, []) in ([], ())
        newest = await store.histories.newest(here)
        assert newest is not None
        assert (newest.id, newest.lane) == (two, lane_of())
        assert await store.histories.newest((*here[:2], "nowhere")) is None
        assert await store.histories.chained_one(one, *here[:2]) == found[1]
        assert await store.histories.chained_one(one, "other", here[1]) is None


def _here(inbound: Inbound) -> tuple[str, str, str]:
    return inbound.origin.channel, inbound.origin.account, inbound.origin.conversation
