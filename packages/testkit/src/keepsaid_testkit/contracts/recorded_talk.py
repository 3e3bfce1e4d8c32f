"""The contract of recorded talk: stored, routed and settled in one commit, each message once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from keepsaid.domain.commits import ClaimBatches, EpisodesKept, IntakeResult, Received
from keepsaid.domain.forgetting import ForgetTargets, RequestForgetting, ScrubForgotten
from keepsaid.domain.message import ANSWERED, RECORDED, Content, Inbound, Lane, ProviderMarks
from keepsaid.domain.prompt import Role
from keepsaid.domain.recorded_talk import RecordTalk, recorded_key
from keepsaid.testing.builders import ROOM, arrival, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver


def talk(text: str, *, answer: bool = False, key: str | None = None, room: str = ROOM) -> Inbound:
    """What somebody said to another agent, or what that answered."""
    content = Content(text.encode(), text, ANSWERED if answer else RECORDED)
    return replace(said(room=room), content=content, marks=ProviderMarks(key), key=recorded_key(room))


def lane_of_talk(room: str = ROOM) -> Lane:
    """The lane of what is recorded of a room."""
    return talk("", room=room).lane


async def record(road: StoreDriver, *inbound: Inbound, at: int = 0) -> tuple[Received, ...]:
    """Record messages in one commit."""
    arrivals = tuple(arrival(road.new_id(), one, at) for one in inbound)
    commit = RecordTalk(arrivals, road.new_id(), road.new_id(), "one", at, at)
    return await road.store.apply(commit)


async def _texts(store: ContractStore, lane: Lane) -> Sequence[tuple[Role, str]]:
    return [(one.role, one.text) for one in (await store.span(lane, 0, 100)).records]


class RecordedTalkContract:
    """How talk is recorded."""

    async def test_it_is_settled_at_once_and_nobody_answers_it(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        first, second = await record(road, talk("is the sea warm?"), talk("It is.", answer=True))
        assert (first.intake, first.number, second.number) == (IntakeResult.STORED, 1, 2)
        story = await road.story(first.id)
        assert (story.state, story.replies) == ("done", ())
        assert await _texts(store, lane_of_talk()) == [(Role.USER, "is the sea warm?"), (Role.ASSISTANT, "It is.")]
        assert await store.due(1_000_000, 10) == ()
        assert await store.apply(ClaimBatches("one", 5, (901, 902, 903, 904, 905), 0, 60_000)) == ()
        [work] = await store.episode_work(10)
        assert [one.text for one in work.messages] == ["is the sea warm?", "It is."]
        await store.apply(EpisodesKept((work.batch_id,)))
        assert not await store.episode_work(10)

    async def test_the_same_again_changes_nothing(self, store: ContractStore) -> None:
        """Alone, or before something new: a client that did not hear the answer sends all again."""
        road = StoreDriver(store)
        [one] = await record(road, talk("one", key="1"))
        [again] = await record(road, talk("one", key="1"))
        assert (again.intake, again.id) == (IntakeResult.DUPLICATE, one.id)
        old, new = await record(road, talk("one", key="1"), talk("two", key="2"))
        assert (old.intake, new.intake, new.number) == (IntakeResult.DUPLICATE, IntakeResult.STORED, 2)
        twice = await record(road, talk("three", key="3"), talk("three", key="3"))
        assert [one.intake for one in twice] == [IntakeResult.STORED, IntakeResult.DUPLICATE]
        assert [text for _, text in await _texts(store, lane_of_talk())] == ["one", "two", "three"]

    async def test_other_words_under_a_key_are_a_conflict(self, store: ContractStore) -> None:
        """The first stay as they are, and what comes beside them is stored."""
        road = StoreDriver(store)
        await record(road, talk("one", key="1"))
        other, beside = await record(road, talk("uno", key="1"), talk("two", key="2"))
        assert (other.intake, beside.intake) == (IntakeResult.CONFLICT, IntakeResult.STORED)
        assert [text for _, text in await _texts(store, lane_of_talk())] == ["one", "two"]

    async def test_it_waits_for_nothing_that_the_conversation_waits_for(self, store: ContractStore) -> None:
        """A message for our own agent, and a claimed batch, are in another lane; they are answered as before."""
        road = StoreDriver(store)
        queued = await road.queue(said("for our agent"))
        claimed = await road.claim_one()
        await road.receive(said("and this"))
        [recorded] = await record(road, talk("for another agent"))
        assert (await road.story(recorded.id)).state == "done"
        assert (await road.batch(queued)).state == "leased"
        await road.answer(claimed)
        assert [text for _, text in await _texts(store, lane_of_talk())] == ["for another agent"]

    async def test_conversations_of_one_name_are_apart(self, store: ContractStore) -> None:
        """Those of two accounts, as two keys have them."""
        road = StoreDriver(store)
        mine = talk("mine")
        theirs = replace(mine, origin=replace(mine.origin, account="other"))
        await record(road, mine)
        await record(road, theirs)
        assert await _texts(store, mine.lane) == [(Role.USER, "mine")]
        assert await _texts(store, theirs.lane) == [(Role.USER, "mine")]

    async def test_it_can_be_forgotten(self, store: ContractStore) -> None:
        """An answer too, although it is the agent's word; what stands beside it stays."""
        road = StoreDriver(store)
        await record(road, talk("I ate a zebra"))
        [answer] = await record(road, talk("A zebra, you say.", answer=True))
        [after] = await record(road, talk("and then I slept"))
        wanted = ForgetTargets(messages=(answer.id,))
        assert await store.apply(RequestForgetting(900, "id", "owner", wanted, 50))
        await store.apply(ScrubForgotten(900, 60))
        texts = [text for _, text in await _texts(store, lane_of_talk())]
        assert texts == ["I ate a zebra", "and then I slept"]
        assert (await road.story(answer.id)).message.text == ""
        assert (await road.story(after.id)).state == "done"
