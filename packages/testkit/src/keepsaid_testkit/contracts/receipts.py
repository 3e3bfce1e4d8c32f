"""The contract of receipts: in which turns memories came up, what people said of that, and what follows."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import MarkReplyShown, RecordFeedback, StepStart, TurnCommit
from keepsaid.domain.prompt import Json
from keepsaid.domain.receipt import Feedback, FeedbackState, JudgeMemory, MemoryUse, Reminded
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.reply_parts import ConfirmPart, KeepParts
from keepsaid.domain.turn import Step, StepKind
from keepsaid.testing.builders import lane_of, outcome, said
from keepsaid_testkit.contracts.outbox import take
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

HERE = lane_of()
_CAT, _DOG, _COW, _OWL = 11, 12, 13, 14


def candidate(memory_id: int, *, chosen: bool) -> Json:
    """A memory as a trace names it."""
    return {"id": memory_id, "chosen": chosen, "reason": "as it was"}


async def answer(road: StoreDriver, reply: ReplyDraft, *shown: int, opened: int = _COW, room: str = "room") -> int:
    """A turn of a room with a reply that is shown memories and opens one; its id."""
    await road.queue(said(room=room))
    claimed = await road.claim_one()
    end = replace(outcome(), chosen=shown, opened=(opened,))
    assert await road.store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, reply, 0))
    return claimed.turn_id


async def remind(road: StoreDriver, *shown: int, opened: tuple[int, ...] = (), room: str = "room", at: int = 0) -> int:
    """A turn of a room that is shown memories, leaves the dog out and ranks the owl behind; its id."""
    await road.queue(said(room=room), at)
    claimed = await road.claim_one(at)
    batch = claimed.batch
    candidates: list[Json] = [candidate(one, chosen=True) for one in shown]
    if _DOG not in shown:
        candidates.append(candidate(_DOG, chosen=False))
    trace: Json = {"memory": {"candidates": candidates, "beyond": [{"id": _OWL, "rank": 30}]}}
    step = Step(1, StepKind.MODEL, "model", b"hash")
    await road.store.apply(StepStart(claimed.turn_id, batch.fence, step, at, trace))
    end = replace(outcome(), chosen=shown, opened=opened)
    assert await road.store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, at))
    return claimed.turn_id


async def find_flagged(road: StoreDriver, room: str = "room") -> frozenset[int]:
    """The ids of the memories that are flagged as wrong for the next turn of a room."""
    await road.queue(said(room=room))
    claimed = await road.claim_one()
    batch = claimed.batch
    await road.store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, outcome(), None, 0))
    return claimed.around.flagged


class FeedbackContract:
    """A person's word on a memory stands until it is withdrawn, in the lane of its turn."""

    async def test_what_was_wrong_is_found_by_the_next_turns_of_its_lane_alone(self, store: ContractStore) -> None:
        """And said again it changes nothing."""
        road = StoreDriver(store)
        turn_id = await remind(road, _CAT, _DOG)
        word = RecordFeedback(JudgeMemory(turn_id, _CAT, "ann"), 5)
        assert await store.apply(word)
        assert await store.apply(replace(word, at=9))
        assert await find_flagged(road) == await find_flagged(road) == {_CAT}
        assert await find_flagged(road, "den") == frozenset()
        told = Feedback(turn_id, _CAT, FeedbackState.WRONG, "ann", 5)
        assert list(await store.feedback(_CAT)) == list(await store.list_active_feedback(HERE)) == [told]
        assert list(await store.list_active_feedback(lane_of("den"))) == []
        story = await store.turn(turn_id)
        assert story is not None
        assert story.feedback == (told,)

    async def test_it_can_be_withdrawn_and_said_again(self, store: ContractStore) -> None:
        """The row stays, and says who had the last word."""
        road = StoreDriver(store)
        turn_id = await remind(road, _CAT)
        word = JudgeMemory(turn_id, _CAT, "ann")
        assert not await store.apply(RecordFeedback(replace(word, verb="withdraw"), 4))
        assert await store.apply(RecordFeedback(word, 5))
        assert await store.apply(RecordFeedback(replace(word, verb="withdraw", by="bob"), 6))
        assert await find_flagged(road) == frozenset()
        assert list(await store.list_active_feedback(HERE)) == []
        assert list(await store.feedback(_CAT)) == [Feedback(turn_id, _CAT, FeedbackState.WITHDRAWN, "bob", 6)]
        assert await store.apply(RecordFeedback(word, 7))
        assert await find_flagged(road) == {_CAT}

    async def test_only_what_a_turn_was_shown_can_be_wrong_for_it(self, store: ContractStore) -> None:
        """Injected or opened; nothing else, and no turn that is not there."""
        road = StoreDriver(store)
        turn_id = await remind(road, _CAT, opened=(_COW,))
        assert not await store.apply(RecordFeedback(JudgeMemory(turn_id, _DOG, "ann"), 5))
        assert not await store.apply(RecordFeedback(JudgeMemory(turn_id + 1, _CAT, "ann"), 5))
        assert await store.apply(RecordFeedback(JudgeMemory(turn_id, _COW, "ann"), 5))
        assert await find_flagged(road) == {_COW}

    async def test_with_a_name_it_is_recorded_once(self, store: ContractStore) -> None:
        """Also if it was withdrawn meanwhile; another name is another word."""
        road = StoreDriver(store)
        turn_id = await remind(road, _CAT)
        word = RecordFeedback(JudgeMemory(turn_id, _CAT, "ann"), 5, "feedback:1")
        assert await store.apply(word)
        assert not await store.apply(word)
        assert await find_flagged(road) == {_CAT}
        assert await store.apply(RecordFeedback(replace(word.word, verb="withdraw"), 6))
        assert not await store.apply(replace(word, at=1 << 50))
        assert await find_flagged(road) == frozenset()
        assert await store.apply(replace(word, once="feedback:2"))
        assert await find_flagged(road) == {_CAT}

    async def test_said_in_a_turn_it_is_committed_with_it(self, store: ContractStore) -> None:
        """Or not at all."""
        road = StoreDriver(store)
        turn_id = await remind(road, _CAT)
        await road.queue(said("/wrong"))
        claimed = await road.claim_one()
        batch = claimed.batch
        end = replace(outcome(), effects=(JudgeMemory(turn_id, _CAT, "ann"),))
        assert not await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence + 1, end, None, 7))
        assert list(await store.feedback(_CAT)) == []
        assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 7))
        assert list(await store.feedback(_CAT)) == [Feedback(turn_id, _CAT, FeedbackState.WRONG, "ann", 7)]


class UseContract:
    """Every turn knows what it was shown, and every memory where it came up."""

    async def test_a_memory_knows_its_turns(self, store: ContractStore) -> None:
        """Newest first: where it was shown, opened, left out, or ranked behind."""
        road = StoreDriver(store)
        first, second = await remind(road, _DOG, at=3), await remind(road, _CAT, opened=(_COW, _CAT), at=4)
        told = [(use.turn_id, use.lane, use.how) for use in await store.uses(_DOG, 9)]
        assert told == [(second, HERE, MemoryUse.LEFT_OUT), (first, HERE, MemoryUse.INJECTED)]
        assert [(use.turn_id, use.how) for use in await store.uses(_CAT, 9)] == [(second, MemoryUse.INJECTED)]
        assert [(use.turn_id, use.how) for use in await store.uses(_COW, 9)] == [(second, MemoryUse.OPENED)]
        assert [use.how for use in await store.uses(_OWL, 9)] == [MemoryUse.BEYOND, MemoryUse.BEYOND]
        assert [use.found for use in await store.uses(_DOG, 9)] == [
            candidate(_DOG, chosen=False),
            candidate(_DOG, chosen=True),
        ]
        assert list(await store.uses(99, 9)) == []

    async def test_of_older_turns_only_those_it_was_shown_to(self, store: ContractStore) -> None:
        """As many traces are read as asked for; rows say where it was shown."""
        road = StoreDriver(store)
        shown, _, newest = await remind(road, _DOG), await remind(road, _CAT), await remind(road, _CAT)
        assert [use.turn_id for use in await store.uses(_DOG, 1)] == [newest, shown]
        assert [use.turn_id for use in await store.uses(_DOG, 0)] == [shown]

    async def test_a_lane_knows_what_it_was_last_shown(self, store: ContractStore) -> None:
        """In order, by the newest of its last turns that was shown anything."""
        road = StoreDriver(store)
        assert await store.reminded(HERE) is None
        await remind(road, _DOG)
        turn_id = await remind(road, _CAT, _DOG, opened=(_COW, _DOG))
        await remind(road)
        await remind(road, _OWL, room="den")
        assert await store.reminded(HERE) == Reminded(turn_id, (_CAT, _DOG, _COW))
        assert await store.reminded(lane_of("none")) is None

    async def test_an_answer_knows_what_its_turn_was_shown(self, store: ContractStore) -> None:
        """By its provider id or that of a part, in its conversation; notices and other messages know nothing."""
        road = StoreDriver(store)
        first = await answer(road, ReplyDraft(901, "whole"), _CAT)
        assert await store.apply(MarkReplyShown(901, 3, "w1"))
        second = await answer(road, ReplyDraft(902, "in parts"), _DOG)
        [reply] = await take(store)
        await store.apply(KeepParts(reply.id, reply.fence, ("one", "two")))
        for n in (0, 1):
            assert await store.apply(ConfirmPart(reply.id, reply.fence, n, f"p{n}"))
        await answer(road, ReplyDraft(903, "elsewhere"), _OWL, room="den")
        await answer(road, ReplyDraft(904, "look", notice=True), _OWL, room="hut")
        assert await store.apply(MarkReplyShown(903, 3, "w3"))
        assert await store.apply(MarkReplyShown(904, 3, "w4"))
        assert await store.reminded_by(HERE, "w1") == Reminded(first, (_CAT, _COW))
        assert await store.reminded_by(HERE, "p0") == Reminded(second, (_DOG, _COW))
        assert await store.reminded_by(HERE._replace(key="another"), "p1") == Reminded(second, (_DOG, _COW))
        assert await store.reminded_by(HERE, "w3") is None
        assert await store.reminded_by(lane_of("hut"), "w4") is None
        assert await store.reminded_by(HERE, "w9") is None

    async def test_episode_work_names_what_its_turn_used(self, store: ContractStore) -> None:
        """So that memory counts it in the write that follows the turn."""
        road = StoreDriver(store)
        await remind(road, _CAT, opened=(_COW,))
        await remind(road)
        assert [work.used for work in await store.episode_work(9)] == [(_CAT, _COW), ()]
