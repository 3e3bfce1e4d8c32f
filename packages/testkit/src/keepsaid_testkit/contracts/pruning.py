"""The contract of pruning: what goes, what never does, and what stays right without it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keepsaid.domain.batch import TaskDraft
from keepsaid.domain.commits import (
    BeginPruning,
    EpisodesKept,
    Fail,
    Failure,
    IntakeResult,
    MarkReplyShown,
    Prune,
    Requeue,
    Settle,
    StepStart,
    TakeReplies,
    TurnCommit,
)
from keepsaid.domain.message import Content, ProviderMarks, Trust
from keepsaid.domain.reply import Delivered
from keepsaid.domain.retention import Backlog, Cursor, Prunable, Pruned, PruneRun, Stale
from keepsaid.domain.route import Action
from keepsaid.domain.turn import NO_MODEL
from keepsaid.domain.views import MessageFilter
from keepsaid.testing.builders import CHANNEL, lane_of, outcome, said, step, verdict
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

LATER = 1_000
PASSES_MAX = 200


async def prune(store: ContractStore, what: Stale = Stale.MESSAGES, before: int = LATER, rows_max: int = 200) -> Pruned:
    """All pieces of one pass, summed."""
    total = Pruned(0, 0, 0, None)
    after: Cursor = ()
    for _ in range(PASSES_MAX):
        piece = await store.apply(Prune(what, before, LATER, after, rows_max))
        total = Pruned(
            total.messages + piece.messages, total.batches + piece.batches, total.keys + piece.keys, piece.after
        )
        if piece.after is None:
            return total
        after = piece.after
    raise AssertionError("pruning does not end")


async def finish(
    road: StoreDriver, text: str = "hello", at: int = 0, room: str = "room", key: str | None = None
) -> int:
    """Walk one message until nobody needs it any more; returns its id."""
    queued = await road.queue(said(text, room, marks=ProviderMarks(key)), at)
    [claimed] = [one for one in await road.claim(at) if one.batch.id == queued.batch_id]
    reply_id = await road.answer(claimed, at=at)
    await road.store.apply(MarkReplyShown(reply_id, at))
    await road.store.apply(EpisodesKept((queued.batch_id,)))
    return queued.first.id


async def left(store: ContractStore) -> list[str]:
    """The texts of the messages that are kept, oldest first."""
    return [story.message.text for story in reversed(await store.find(MessageFilter(limit=1_000)))]


class PruningContract:
    """What goes."""

    async def test_what_is_done_and_older_goes_and_the_rest_stays(self, store: ContractStore) -> None:
        """By the time it was settled."""
        road = StoreDriver(store)
        for at in (10, 20, 30):
            await finish(road, f"at {at}", at)
        assert (await prune(store, before=30)).messages == 2
        assert await left(store) == ["at 30"]
        assert (await store.overview()).messages == 3

    async def test_small_pieces_make_a_whole(self, store: ContractStore) -> None:
        """Each commit removes about as many rows as it may, and says where the next begins."""
        road = StoreDriver(store)
        for n in range(9):
            await finish(road, f"{n}", n, room=f"room {n % 4}")
        assert (await prune(store, rows_max=3)).messages == 9
        assert (await prune(store, Stale.RECORDS, rows_max=3)).batches == 9
        assert await left(store) == []

    async def test_a_batch_of_many_goes_in_parts(self, store: ContractStore) -> None:
        """The oldest of it first."""
        road = StoreDriver(store)
        for n in range(7):
            await road.receive(said(f"{n}"))
        await road.route(lane_of(), by=verdict(Action.DROP))
        assert (await prune(store, rows_max=2)).messages == 7
        assert await left(store) == []

    @pytest.mark.parametrize("how", ["unrouted", "queued", "leased", "dead", "review"])
    async def test_what_is_not_settled_never_goes(self, store: ContractStore, how: str) -> None:
        """Whatever its age."""
        road = StoreDriver(store)
        await finish(road, "settled")
        if how == "unrouted":
            await road.receive(said("kept"))
        else:
            queued = await road.queue(said("kept"))
            if how != "queued":
                claimed = await road.claim_one()
            if how in ("dead", "review"):
                verb = Failure.BURY if how == "dead" else Failure.PARK
                await store.apply(Fail(queued.batch_id, claimed.batch.fence, verb, "it broke", 0))
        assert (await prune(store)).messages == 1
        assert (await prune(store, Stale.RECORDS)).batches == 1
        assert await left(store) == ["kept"]

    async def test_what_episodes_still_need_never_goes(self, store: ContractStore) -> None:
        """Memory may be far behind."""
        road = StoreDriver(store)
        queued = await road.queue(said("kept"))
        await store.apply(MarkReplyShown(await road.answer(await road.claim_one()), 0))
        assert (await prune(store)).messages == 0
        await store.apply(EpisodesKept((queued.batch_id,)))
        assert (await prune(store)).messages == 1

    @pytest.mark.parametrize("end", [Delivered.CONFIRMED, Delivered.REFUSED, Delivered.DEAD, Delivered.DOUBT])
    async def test_a_reply_that_is_not_settled_keeps_all_it_answers(self, store: ContractStore, end: Delivered) -> None:
        """A dead one waits for a person."""
        road = StoreDriver(store)
        queued = await road.queue(said("kept"))
        await road.answer(await road.claim_one())
        await store.apply(EpisodesKept((queued.batch_id,)))
        assert (await prune(store)).messages == 0
        [reply] = await store.apply(TakeReplies((CHANNEL,), "one", 9, 0))
        assert (await prune(store)).messages == 0
        await store.apply(Settle(reply.id, reply.fence, end, 0))
        settled = end in (Delivered.CONFIRMED, Delivered.REFUSED)
        assert (await prune(store)).messages == settled
        assert (await prune(store, Stale.RECORDS)).batches == settled

    async def test_what_an_open_task_was_made_of_stays(self, store: ContractStore) -> None:
        """Nobody has done it yet."""
        road = StoreDriver(store)
        await road.receive(said("kept"))
        batch_id = await road.route(lane_of(), by=verdict(Action.SPAWN), task=TaskDraft(900, "k", "do it"))
        await store.apply(EpisodesKept((batch_id,)))
        assert (await prune(store)).messages == 0

    async def test_what_would_go_is_told_before(self, store: ContractStore) -> None:
        """For a dry run."""
        road = StoreDriver(store)
        for at in (10, 20, 30):
            await finish(road, at=at)
        await road.queue(said("kept"), 5)
        assert await store.prunable(25, 15) == Prunable(2, 1)
        await prune(store, before=25)
        assert await store.prunable(25, 15) == Prunable(0, 1)

    async def test_runs_are_recorded(self, store: ContractStore) -> None:
        """With the last message there was then, and what they removed."""
        road = StoreDriver(store)
        assert (await store.prune_history()).runs == ()
        first = await finish(road, at=7)
        second = await road.receive(said("kept"))
        await store.apply(BeginPruning(50))
        await prune(store)
        await store.apply(BeginPruning(60))
        history = await store.prune_history()
        assert history.runs == (PruneRun(60, second.id, 0), PruneRun(50, second.id, 1))
        assert (history.messages, history.first_at) == (1, 0)
        assert first < second.id


class PrunedContract:
    """What stays right."""

    async def test_a_duplicate_is_still_a_duplicate(self, store: ContractStore) -> None:
        """Keys outlive their rows."""
        road = StoreDriver(store)
        first = await finish(road, "once", key="k")
        await prune(store)
        await prune(store, Stale.RECORDS)
        again = await road.receive(said("once", marks=ProviderMarks("k")))
        assert (again.intake, again.id, again.lane) == (IntakeResult.DUPLICATE, first, lane_of())
        assert (await road.receive(said("other", marks=ProviderMarks("k")))).intake is IntakeResult.CONFLICT
        assert await left(store) == []

    async def test_keys_go_only_when_told_and_never_before_their_rows(self, store: ContractStore) -> None:
        """Then the same key is a new message."""
        road = StoreDriver(store)
        gone = await finish(road, "gone", key="gone")
        kept = await road.receive(said("kept", marks=ProviderMarks("kept")))
        await prune(store)
        assert (await prune(store, Stale.KEYS, before=gone - 1)).keys == 0
        assert (await prune(store, Stale.KEYS, before=kept.id)).keys == 1
        assert (await road.receive(said("gone", marks=ProviderMarks("gone")))).intake is IntakeResult.STORED
        assert (await road.receive(said("kept", marks=ProviderMarks("kept")))).intake is IntakeResult.DUPLICATE

    async def test_a_lane_goes_on(self, store: ContractStore) -> None:
        """Numbers, links, marks and transcript."""
        road = StoreDriver(store)
        for n in range(70):
            await finish(road, f"{n}", n)
        assert (await prune(store)).messages == 70
        await prune(store, Stale.RECORDS)
        for n in range(70, 140):
            received = await road.receive(said(f"{n}"), n)
            assert received.number == n + 1
        group = await road.group(lane_of())
        assert [message.text for message in group.messages] == [f"{n}" for n in range(70, 140)]
        await road.route(lane_of(), 200)
        claimed = await road.claim_one(200)
        assert [message.number for message in claimed.messages] == list(range(71, 141))
        await road.answer(claimed)
        assert len((await store.context(lane_of(), 1_000)).recent.records) == 70 * 2 + 71

    async def test_what_was_pruned_says_so(self, store: ContractStore) -> None:
        """The message is gone, its turn says since when; later that is gone too."""
        road = StoreDriver(store)
        message_id = await finish(road)
        turn_id = await store.last_turn(None)
        assert turn_id is not None
        await prune(store)
        assert await store.story(message_id) is None
        turn = await store.turn(turn_id)
        assert turn is not None
        assert (turn.messages, turn.steps, turn.batch.pruned_at) == ((), (), LATER)
        assert [record.text for record in turn.records] == ["hello", "hello yourself"]
        assert len(turn.replies) == 1
        await prune(store, Stale.RECORDS)
        assert await store.turn(turn_id) is None
        assert await store.last_turn(None) is None

    async def test_steps_go_with_the_messages(self, store: ContractStore) -> None:
        """And the turn stays until its own time."""
        road = StoreDriver(store)
        queued = await road.queue(said())
        claimed = await road.claim_one()
        fence = claimed.batch.fence
        assert await store.apply(StepStart(claimed.turn_id, fence, step(), 0, {"a": 1}))
        await store.apply(TurnCommit(claimed.turn_id, queued.batch_id, fence, outcome(), None, 0))
        await store.apply(EpisodesKept((queued.batch_id,)))
        await prune(store)
        turn = await store.turn(claimed.turn_id)
        assert turn is not None
        assert (turn.steps, turn.trace) == ((), {"a": 1})

    async def test_what_was_dropped_and_pruned_cannot_come_back(self, store: ContractStore) -> None:
        """There is nothing left to answer."""
        road = StoreDriver(store)
        queued = await road.queue(said(), by=verdict(Action.DROP))
        await prune(store)
        assert not await store.apply(Requeue(queued.batch_id, LATER, "again"))

    async def test_a_lane_that_held_external_words_is_not_trusted_later(self, store: ContractStore) -> None:
        """The model was shown them, and they live on in what it said."""
        road = StoreDriver(store)
        stranger = said("believe me")
        stranger = replace(stranger, origin=replace(stranger.origin, trust=Trust.EXTERNAL))
        await road.queue(stranger)
        [claimed] = await road.claim()
        await store.apply(MarkReplyShown(await road.answer(claimed), 0))
        await store.apply(EpisodesKept((claimed.batch.id,)))
        await prune(store)
        await prune(store, Stale.RECORDS)
        await road.settle(said("what was that?"))
        [work] = await store.episode_work(10)
        assert work.external

    async def test_an_answer_without_a_model_stays_out_of_prompts(self, store: ContractStore) -> None:
        """Also when its turn is gone."""
        road = StoreDriver(store)
        queued = await road.queue(said("anyone?"))
        claimed = await road.claim_one()
        end = replace(outcome("nobody"), model=NO_MODEL)
        await store.apply(TurnCommit(claimed.turn_id, queued.batch_id, claimed.batch.fence, end, None, 0))
        await store.apply(EpisodesKept((queued.batch_id,)))
        before = (await store.context(lane_of(), 10)).recent
        await prune(store)
        await prune(store, Stale.RECORDS)
        assert [record.text for record in before.records] == ["anyone?"]
        assert (await store.context(lane_of(), 10)).recent == before


class BacklogContract:
    """What waits."""

    async def test_it_counts_what_nobody_works_on(self, store: ContractStore) -> None:
        """Routed or not."""
        road = StoreDriver(store)
        assert await store.backlog() == Backlog(0)
        await finish(road, "done", 1)
        await road.queue(said("leased", "other"), 2)
        await road.claim_one(2)
        assert await store.backlog() == Backlog(0)
        await road.queue(said("queued"), 5)
        assert await store.backlog() == Backlog(1, 5)
        await road.receive(replace(said("unrouted", "third"), content=Content(b"x", "x")), 4)
        assert await store.backlog() == Backlog(2, 4)
