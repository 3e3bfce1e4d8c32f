"""The contract of what a turn finds around it and leaves behind: questions, and what messages answer."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import Fail, Failure, Settle, StepEnd, TakeReplies, TurnCommit
from keepsaid.domain.compaction import CutContext, CutReason
from keepsaid.domain.effects import ClearSlot, Effect, FillSlot, OpenSlot
from keepsaid.domain.message import EDITED, Inbound, ProviderMarks, Trust, conversation_note
from keepsaid.domain.process import ENDLESSLY, Note
from keepsaid.domain.reply import Delivered, ReplyDraft
from keepsaid.domain.slot import TAKEN_OVER, Expected, Question, Slot, SlotState
from keepsaid.domain.turn import ClaimedBatch, ReplyTarget, TurnInputs, Usage
from keepsaid.testing.builders import ACCOUNT, CHANNEL, lane_of, outcome, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

WHICH = Question("Which day?", Expected.DATE_TIME)
COLOUR = Question("Which colour?", Expected.SELECTION, ("red", "green"))


def leaving(claimed: ClaimedBatch, *effects: Effect, at: int = 0) -> TurnCommit:
    """The end of a turn that leaves these effects."""
    end = replace(outcome(), effects=effects)
    return TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, at)


async def turn(road: StoreDriver, *effects: Effect, at: int = 0, heard: Inbound | None = None) -> ClaimedBatch:
    """A whole turn that leaves these effects."""
    await road.queue(heard or said(), at)
    claimed = await road.claim_one(at)
    assert await road.store.apply(leaving(claimed, *effects, at=at))
    return claimed


def opened(claimed: ClaimedBatch, question: Question, at: int = 0, lasts_ms: int = 600_000) -> Slot:
    """The slot that a turn opened for Ann."""
    return Slot(claimed.turn_id, "ann", question, f"reply:{claimed.turn_id}", at, at + lasts_ms)


class SlotContract:
    """Questions open, are answered and end in the commit of a turn."""

    async def test_a_question_opens_with_its_turn(self, store: ContractStore) -> None:
        """In its lane, and for as long as it says."""
        road = StoreDriver(store)
        asked = await turn(road, OpenSlot("ann", COLOUR, 50), at=7)
        assert list(await store.slots(lane_of(), 9)) == [opened(asked, COLOUR, 7, 50)]
        assert list(await store.slots(lane_of("den"), 9)) == []
        await road.queue(said(), 8)
        assert (await road.claim_one(8)).around.slots == (opened(asked, COLOUR, 7, 50),)

    async def test_a_refused_turn_opens_none(self, store: ContractStore) -> None:
        """All of a turn is kept, or nothing: an old fence, and an end that does not fit."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        asking = leaving(claimed, OpenSlot("ann", WHICH))
        assert await store.apply(replace(asking, fence=asking.fence + 1)) is False
        missing = StepEnd(claimed.turn_id, claimed.batch.fence, 5, "never started", Usage(), 0)
        assert await store.apply(replace(asking, ending=missing)) is False
        assert list(await store.slots(lane_of(), 9)) == []
        assert await store.apply(asking)
        assert await store.apply(asking) is False
        assert len(await store.slots(lane_of(), 9)) == 1

    async def test_an_abandoned_turn_opens_none(self, store: ContractStore) -> None:
        """Nothing was asked."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        await store.apply(Fail(claimed.batch.id, claimed.batch.fence, Failure.BURY, "broken", 0))
        assert await store.apply(leaving(claimed, OpenSlot("ann", WHICH))) is False
        assert list(await store.slots(lane_of(), 9)) == []

    async def test_a_newer_question_to_the_same_person_takes_over(self, store: ContractStore) -> None:
        """Others keep theirs, and so do other lanes."""
        road = StoreDriver(store)
        first = await turn(road, OpenSlot("ann", WHICH), at=1)
        other = await turn(road, OpenSlot("bob", WHICH), at=2)
        aside = await turn(road, OpenSlot("ann", WHICH), at=3, heard=said(room="den"))
        second = await turn(road, OpenSlot("ann", COLOUR), at=4)
        taken = replace(opened(first, WHICH, 1), state=SlotState.CLEARED, reason=TAKEN_OVER, ended_at=4)
        kept = replace(opened(other, WHICH, 2), person="bob")
        assert list(await store.slots(lane_of(), 9)) == [opened(second, COLOUR, 4), kept, taken]
        assert list(await store.slots(lane_of(), 1)) == [opened(second, COLOUR, 4)]
        assert list(await store.slots(lane_of("den"), 9)) == [opened(aside, WHICH, 3)]

    async def test_it_is_filled_once(self, store: ContractStore) -> None:
        """By the first answer; it waits for nothing after that."""
        road = StoreDriver(store)
        asked = await turn(road, OpenSlot("ann", WHICH))
        await turn(road, FillSlot(asked.turn_id, "2026-11-24", 41), at=5)
        filled = replace(opened(asked, WHICH), state=SlotState.FILLED, filled_by="message:41", value="2026-11-24")
        filled = replace(filled, ended_at=5)
        assert list(await store.slots(lane_of(), 9)) == [filled]
        await turn(road, FillSlot(asked.turn_id, "2027-01-01", 42), ClearSlot(asked.turn_id, "late"), at=6)
        assert list(await store.slots(lane_of(), 9)) == [filled]
        await road.queue(said(), 8)
        assert (await road.claim_one(8)).around == TurnInputs()

    async def test_it_ends_without_an_answer(self, store: ContractStore) -> None:
        """Cleared or expired, with the reason."""
        road = StoreDriver(store)
        for verb, state in (("clear", SlotState.CLEARED), ("expire", SlotState.EXPIRED)):
            asked = await turn(road, OpenSlot("ann", WHICH))
            await turn(road, ClearSlot(asked.turn_id, "because", verb), at=5)
            [ended] = await store.slots(lane_of(), 1)
            assert ended == replace(opened(asked, WHICH), state=state, reason="because", ended_at=5)

    async def test_no_turn_of_another_lane_touches_it(self, store: ContractStore) -> None:
        """Whatever it says."""
        road = StoreDriver(store)
        asked = await turn(road, OpenSlot("ann", WHICH))
        elsewhere = said(room="den")
        await turn(road, FillSlot(asked.turn_id, "x", 1), ClearSlot(asked.turn_id, "x"), heard=elsewhere)
        await turn(road, FillSlot(4_711, "x", 1), heard=elsewhere)
        assert list(await store.slots(lane_of(), 9)) == [opened(asked, WHICH)]

    async def test_a_reset_ends_them_and_the_session(self, store: ContractStore) -> None:
        """A guard's cut does not."""
        road = StoreDriver(store)
        asked = await turn(road, OpenSlot("ann", WHICH))
        await turn(road)
        assert await store.apply(CutContext(lane_of(), 0, 2, CutReason.GUARD, 5))
        assert list(await store.slots(lane_of(), 9)) == [opened(asked, WHICH)]
        assert [one.state for one in await store.sessions(lane_of(), 9)] == ["active"]
        assert await store.apply(CutContext(lane_of(), 1, 4, CutReason.RESET, 6))
        [ended] = await store.slots(lane_of(), 9)
        assert (ended.state, ended.reason, ended.ended_at) == ("cleared", "the lane was reset", 6)
        [session] = await store.sessions(lane_of(), 9)
        assert (session.state, session.ended_reason, session.last) == ("ended", "reset", 4)


class TargetContract:
    """A turn finds what its messages reply to, in whatever lane of the conversation it was said."""

    async def test_a_message_in_another_lane(self, store: ContractStore) -> None:
        """With its speaker; the first of that name."""
        road = StoreDriver(store)
        topic = replace(said("lunch at noon?", marks=ProviderMarks(None, "m1")), topic="food")
        first = await road.receive(topic)
        await road.receive(replace(said("again", marks=ProviderMarks(None, "m1")), topic="food"))
        answer = replace(said("yes", marks=ProviderMarks(None, None, "m1")), topic="work")
        received = await road.receive(answer)
        assert received.lane != first.lane
        await road.route(received.lane)
        claimed = await road.claim_one()
        assert claimed.around.said == (ReplyTarget("m1", f"message:{first.id}", "lunch at noon?", "Ann"),)

    async def test_an_edit_finds_the_version_before_it(self, store: ContractStore) -> None:
        """By the same sender, in this conversation, and not its own words."""
        road, found = StoreDriver(store), list[tuple[tuple[int, ReplyTarget], ...]]()
        ids: list[int] = []
        for text in ("dinner at 7?", "dinner at 8?", "dinner at 9?"):
            one = said(text, marks=ProviderMarks(None, "m1"))
            one = replace(one, content=replace(one.content, event=EDITED if ids else ""))
            ids.append((await road.queue(one)).first.id)
            claimed = await road.claim_one()
            found.append(claimed.around.edits)
            await road.answer(claimed)
        targets = [ReplyTarget("m1", f"message:{ids[n]}", f"dinner at {n + 7}?", "Ann") for n in range(2)]
        assert found == [(), ((ids[1], targets[0]),), ((ids[2], targets[1]),)]
        other = said("no", marks=ProviderMarks(None, "m1"))
        by_bob = replace(other.origin, sender="bob")
        await road.queue(replace(other, origin=by_bob, content=replace(other.content, event=EDITED)))
        assert (await road.claim_one()).around.edits == ()

    async def test_the_title_of_the_conversation(self, store: ContractStore) -> None:
        """As it is noted now, for every lane of the conversation and for no other."""
        road = StoreDriver(store)
        for title in ("Harbour", "Harbour crew"):
            await store.apply(Note(conversation_note(lane_of()), title, ENDLESSLY, 0))
        await road.queue(replace(said(), topic="food"))
        await road.queue(said(room="other"))
        found = {claimed.batch.lane.conversation: claimed.around.conversation_name for claimed in await road.claim()}
        assert found == {lane_of().conversation: "Harbour crew", "other": ""}

    async def test_what_an_outsider_wrote_in_another_lane_is_known_without_its_words(
        self, store: ContractStore
    ) -> None:
        """They are shown in their own lane alone."""
        road = StoreDriver(store)
        topic = replace(said("obey", marks=ProviderMarks(None, "m1")), topic="food")
        first = await road.receive(replace(topic, origin=replace(topic.origin, trust=Trust.EXTERNAL)))
        received = await road.receive(replace(said("yes", marks=ProviderMarks(None, None, "m1")), topic="work"))
        await road.route(received.lane)
        assert (await road.claim_one()).around.said == (ReplyTarget("m1", f"message:{first.id}", ""),)

    async def test_a_reply_of_ours(self, store: ContractStore) -> None:
        """By the name its receipt gave it."""
        road = StoreDriver(store)
        await road.queue(said())
        asked = await road.claim_one()
        draft = ReplyDraft(road.new_id(), "which day?")
        end = outcome("which day?")
        assert await store.apply(TurnCommit(asked.turn_id, asked.batch.id, asked.batch.fence, end, draft, 0))
        [taken] = await store.apply(TakeReplies((CHANNEL,), "one", 9, 0))
        assert await store.apply(Settle(taken.id, taken.fence, Delivered.CONFIRMED, 1, provider_id="r1"))
        await road.queue(said("tuesday", marks=ProviderMarks(None, None, "r1")))
        claimed = await road.claim_one()
        assert claimed.batch.lane == asked.batch.lane
        assert claimed.around.said == (ReplyTarget("r1", f"reply:{asked.turn_id}", "which day?"),)

    async def test_nothing_of_another_conversation(self, store: ContractStore) -> None:
        """Nor of another channel; what is not known is not there."""
        road = StoreDriver(store)
        for n, (room, channel) in enumerate((("den", CHANNEL), ("room", "other"))):
            await road.receive(said(f"secret {n}", room, marks=ProviderMarks(None, "m1"), channel=channel))
        received = await road.receive(said("yes", marks=ProviderMarks(None, None, "m1")))
        await road.route(received.lane)
        assert received.lane[:3] == (CHANNEL, ACCOUNT, "room")
        assert (await road.claim_one()).around == TurnInputs()
