"""The contract of lanes: topic before reply before root, the rules of the configuration, and strands of a group."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from keepsaid.domain.commits import EpisodesKept, IntakeResult, MarkReplyShown, Prune, Receive, Received
from keepsaid.domain.compaction import Summarise
from keepsaid.domain.context import Made
from keepsaid.domain.ids import show
from keepsaid.domain.message import Inbound, LaneRules, Origin, ProviderMarks, Trust
from keepsaid.domain.prompt import Role
from keepsaid.domain.retention import Stale
from keepsaid.domain.strand import strand_begun_by
from keepsaid.domain.views import LaneLine, TurnStory
from keepsaid.testing.builders import ACCOUNT, AT_ONCE, CHANNEL, arrival, lane_of, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

LITERAL = LaneRules(join=False)
INFER = LaneRules(infer=True)
MINUTE = 60_000


def speaks(name: str, text: str, marks: ProviderMarks | None = None, *, direct: bool = False) -> Inbound:
    """Somebody in a group says something."""
    origin = Origin(CHANNEL, ACCOUNT, "room", name.lower(), name, direct, Trust.KNOWN)
    return replace(said(text, marks=marks), origin=origin)


class Group:
    """A conversation that goes on, a minute between its messages."""

    def __init__(self, store: ContractStore, rules: LaneRules = INFER) -> None:
        self.road = StoreDriver(store)
        self.rules = rules
        self.at = 0

    async def hear(self, inbound: Inbound) -> Received:
        """The next message."""
        self.at += MINUTE
        number = arrival(self.road.new_id(), inbound, self.at)
        return await self.road.store.apply(Receive(number, AT_ONCE, self.rules))

    async def talk(self, *lines: str) -> list[str]:
        """Lines `Name: words`, each its own message; returns the keys of their lanes."""
        parts = [line.split(": ", 1) for line in lines]
        return [(await self.hear(speaks(name, text))).lane.key for name, text in parts]

    async def answer(self, received: Received, text: str) -> int:
        """The agent answers what waits in a message's lane; returns the reply's id."""
        await self.road.route(received.lane, self.at)
        return await self.road.answer(await self.road.claim_one(self.at), text, self.at)


async def turn_of(store: ContractStore, received: Received) -> TurnStory:
    """The turn that answered a message."""
    story = await store.story(received.id)
    assert story is not None
    assert story.turn_id is not None
    turn = await store.turn(story.turn_id)
    assert turn is not None
    return turn


class LaneRulesContract:
    """What a medium says of a message decides, in the order of seed 003; the rules say what a reply does."""

    async def test_a_topic_goes_before_a_reply(self, store: ContractStore) -> None:
        """A message that names its topic stays in it, whatever it answers."""
        road = StoreDriver(store)
        await road.receive(said(marks=ProviderMarks(provider_id="p1")))
        in_topic = replace(said(marks=ProviderMarks(reply_to="p1")), topic="t1")
        assert (await road.receive(in_topic)).lane.key == "topic:room:t1"

    async def test_literally_a_reply_has_its_own_lane(self, store: ContractStore) -> None:
        """Also where its target is known; topic and root are as ever."""
        group = Group(store, LITERAL)
        await group.hear(said(marks=ProviderMarks(provider_id="p1")))
        received = [await group.hear(said(marks=ProviderMarks(reply_to="p1"))), await group.hear(said())]
        received.append(await group.hear(replace(said(marks=ProviderMarks(reply_to="p1")), topic="t1")))
        assert [one.lane.key for one in received] == ["reply:room:p1", "root:room", "topic:room:t1"]

    async def test_both_sides_of_a_lane_stand_in_its_transcript(self, store: ContractStore) -> None:
        """What was answered and what answers, in the lane of the reply's target, and nowhere else."""
        road = StoreDriver(store)
        topic = replace(said("in the topic", marks=ProviderMarks(provider_id="p1")), topic="t1")
        await road.settle(topic, "so it is")
        await road.settle(said("and this?", marks=ProviderMarks(reply_to="p1")), "that too")
        shown = [(one.role, one.text) for one in (await store.context(topic.lane, 9)).recent.records]
        assert shown == [
            (Role.USER, "in the topic"),
            (Role.ASSISTANT, "so it is"),
            (Role.USER, "and this?"),
            (Role.ASSISTANT, "that too"),
        ]
        assert (await store.context(lane_of(), 9)).recent.records == ()

    async def test_a_reply_to_what_was_pulled_joins_its_lane(self, store: ContractStore) -> None:
        """Whoever shows a reply may say under which name."""
        road = StoreDriver(store)
        topic = replace(said(), topic="t1")
        reply_id = await road.settle(topic)
        assert await store.apply(MarkReplyShown(reply_id, 1, "ours-1"))
        assert (await road.receive(said(marks=ProviderMarks(reply_to="ours-1")))).lane == topic.lane
        assert not await store.apply(MarkReplyShown(reply_id, 1, "ours-2"))
        assert (await road.receive(said(marks=ProviderMarks(reply_to="ours-2")))).lane.key == "reply:room:ours-2"


class StrandContract:
    """With `infer`, strands of a group have lanes of their own; what is known goes before what is inferred."""

    async def test_without_it_a_group_has_one_root(self, store: ContractStore) -> None:
        """The default."""
        keys = await Group(store, LaneRules()).talk("Ann: where is the key?", "Bob: hello, is anybody hungry?")
        assert keys == ["root:room"] * 2

    async def test_one_person_stays_in_the_root(self, store: ContractStore) -> None:
        """However many questions: there is nobody to confuse them with."""
        keys = await Group(store).talk("Ann: hello", "Ann: where is the key?", "Ann: and does the printer work?")
        assert keys == ["root:room"] * 3

    async def test_two_questions_are_two_strands(self, store: ContractStore) -> None:
        """Who answers one by name joins it."""
        group = Group(store)
        keys = await group.talk(
            "Ann: where is the key of the red cupboard?",
            "Bob: hello everybody, does the printer on the second floor work again? it ate all my paper yesterday",
            "Cat: Ann: in the drawer",
            "Dan: Bob: which printer?",
            "Bob: Dan: the one on the second floor",
        )
        assert keys[0] == keys[2] == "root:room"
        assert keys[1] == keys[3] == keys[4] == f"strand:room:{show('message', 2)}"

    async def test_what_answers_the_agent_stays_with_it(self, store: ContractStore) -> None:
        """The agent's answers are part of the talk."""
        group = Group(store)
        await group.talk("Ann: where is the key of the red cupboard?")
        other = await group.hear(speaks("Bob", "hello everybody, does the printer on the second floor work again?"))
        await group.answer(other, "Which of the two printers do you mean?")
        assert await group.talk("Bob: the left printer") == [other.lane.key]
        assert other.lane.key != "root:room"

    async def test_a_known_target_goes_before_inference(self, store: ContractStore) -> None:
        """A reply joins its target's lane, and a topic is a lane, whatever the words say."""
        group = Group(store)
        await group.hear(speaks("Ann", "where is the key?", ProviderMarks(provider_id="p1")))
        strand = await group.hear(
            speaks("Bob", "hello everybody, does the printer work?", ProviderMarks(provider_id="p2"))
        )
        reply = await group.hear(speaks("Cat", "Ann: in the drawer", ProviderMarks(reply_to="p2")))
        topic = await group.hear(replace(speaks("Cat", "Ann: in the drawer"), topic="t1"))
        assert reply.lane == strand.lane
        assert topic.lane.key == "topic:room:t1"

    async def test_an_edit_stays_where_the_message_is(self, store: ContractStore) -> None:
        """It has the provider id of what it edits."""
        group = Group(store)
        await group.talk("Ann: where is the key?")
        first = await group.hear(speaks("Bob", "hello all, does the printer work?", ProviderMarks("new", "p1")))
        edit = await group.hear(speaks("Bob", "Ann: does the printer work?", ProviderMarks("edit", "p1")))
        assert edit.lane == first.lane

    async def test_direct_conversations_and_events_are_left_alone(self, store: ContractStore) -> None:
        """Nothing is inferred where two talk, nor of what nobody said."""
        group = Group(store)
        await group.talk("Ann: where is the key?")
        direct = await group.hear(speaks("Bob", "hello all, does the printer work?", direct=True))
        event = speaks("Bob", "hello all, does the printer work?")
        event = replace(event, content=replace(event.content, event="joined"))
        assert [direct.lane.key, (await group.hear(event)).lane.key] == ["root:room"] * 2

    async def test_a_copy_is_told_the_lane_of_the_first(self, store: ContractStore) -> None:
        """The strand was decided once, when the message was stored."""
        group = Group(store)
        await group.talk("Ann: where is the key?")
        question = speaks("Bob", "hello all, does the printer work?", ProviderMarks("x"))
        first = await group.hear(question)
        await group.talk("Ann: Bob: no")
        assert await group.hear(question) == first._replace(intake=IntakeResult.DUPLICATE)

    async def test_messages_that_come_together_see_one_another(self, store: ContractStore) -> None:
        """As if each had come alone, in their order."""
        group = Group(store)
        together = await asyncio.gather(
            group.hear(speaks("Ann", "where is the key?")),
            group.hear(speaks("Bob", "hello all, does the printer work?")),
            group.hear(speaks("Cat", "Bob: no, it is jammed")),
        )
        assert together[2].lane == together[1].lane != together[0].lane

    async def test_why_it_is_that_lane_is_kept_with_the_message(self, store: ContractStore) -> None:
        """For its story and its turn, until it is pruned; of what was not inferred there is nothing to say."""
        group = Group(store)
        first = await group.hear(
            speaks("Ann", "where is the key of the red cupboard?", ProviderMarks(provider_id="p1"))
        )
        begins = await group.hear(speaks("Bob", "hello everybody, does the printer on the second floor work again?"))
        answers = await group.hear(speaks("Cat", "Ann: in the drawer"))
        replies = await group.hear(speaks("Dan", "which drawer?", ProviderMarks(reply_to="p1")))
        found = [await store.story(one.id) for one in (first, begins, answers, replies)]
        why = ["" if one is None else one.placed for one in found]
        assert why[0] == "one person alone has spoken"
        assert why[1] == "it answers nothing that was said before, and begins a strand"
        assert why[2].startswith(f"it answers {show('message', first.id)}: it turns to the speaker by name")
        assert why[3] == ""
        await group.answer(begins, "yes")
        turn = await turn_of(store, begins)
        assert turn.placed == {begins.id: why[1]}
        assert strand_begun_by(begins.lane) == begins.id
        assert strand_begun_by(first.lane) is None
        await store.apply(EpisodesKept(tuple(one.batch_id for one in await store.episode_work(9))))
        reply_id = turn.replies[0].id
        await store.apply(MarkReplyShown(reply_id, group.at))
        assert (await store.apply(Prune(Stale.MESSAGES, group.at + 1, group.at + 1))).messages == 1
        emptied = await store.turn(turn.turn_id)
        assert emptied is not None
        assert emptied.placed == {}

    async def test_what_was_pruned_is_not_looked_back_on(self, store: ContractStore) -> None:
        """What is gone is gone, whoever remembers it."""
        group = Group(store)
        asked = await group.hear(speaks("Ann", "where is the key of the red cupboard?"))
        reply_id = await group.answer(asked, "in the drawer")
        await store.apply(MarkReplyShown(reply_id, group.at))
        await store.apply(EpisodesKept(tuple(one.batch_id for one in await store.episode_work(9))))
        pruned = await store.apply(Prune(Stale.MESSAGES, group.at + 1, group.at + 1))
        assert pruned.messages == 1
        assert await group.talk("Bob: hello all, does the printer on the second floor work?") == ["root:room"]


class LaneListContract:
    """What people are shown of lanes."""

    async def test_lanes_are_listed_by_who_spoke_last(self, store: ContractStore) -> None:
        """With what waits in each, its session, its summary, and how much of it is shown."""
        road = StoreDriver(store)
        await road.settle(replace(said("in the topic"), topic="t1"), "so it is", at=1)
        await road.settle(said("first"), "re", at=2)
        await road.settle(said("second"), "re", at=3)
        await store.apply(Summarise(lane_of(), 0, 2, "what was said", Made.MODEL, "a/b", 4))
        await road.receive(replace(said("and this?"), topic="t1"), at=5)
        topic = replace(said(), topic="t1").lane
        lines = (LaneLine(topic, 5, 1, "active", 0, 2), LaneLine(lane_of(), 3, 0, "ended", 1, 2))
        assert tuple(await store.lanes(9)) == lines
        assert tuple(await store.lanes(1)) == lines[:1]
        assert await store.line(lane_of()) == lines[1]
        assert await store.line(lane_of()._replace(account="other")) is None

    async def test_every_version_of_a_summary_is_kept(self, store: ContractStore) -> None:
        """The newest first; a lane that is not known has none."""
        road = StoreDriver(store)
        for n in range(3):
            await road.settle(said(f"say {n}"), "re", at=n)
        for n in (2, 4):
            version = (await store.context(lane_of(), 1)).version
            await store.apply(Summarise(lane_of(), version, n, f"up to {n}", Made.EXTRACTIVE, "", 10 + n))
        found = await store.summaries(lane_of())
        assert [(one.version, one.first, one.last, one.text) for one in found] == [
            (2, 3, 4, "up to 4"),
            (1, 1, 2, "up to 2"),
        ]
        assert not await store.summaries(lane_of()._replace(key="root:other"))
