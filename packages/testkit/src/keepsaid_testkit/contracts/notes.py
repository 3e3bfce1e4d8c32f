"""The contract of notes that stay for the next process, and of requests to memory that stay with their turn."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import EpisodesKept, TurnCommit
from keepsaid.domain.effects import MemoryAction, StageMemory
from keepsaid.domain.memory import Kind
from keepsaid.domain.message import Trust
from keepsaid.domain.process import Note, NotifyOwner
from keepsaid.domain.reply import ReplyDraft
from keepsaid.testing.builders import CHANNEL, outcome, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver


class NoteContract:
    """A note is there until it is over, or another stands in its place."""

    async def test_the_last_note_of_a_name_is_read_until_it_is_over(self, store: ContractStore) -> None:
        """Each name by itself."""
        assert await store.note("code", 0) == ""
        await store.apply(Note("code", "first", 50, 1))
        await store.apply(Note("code", "secönd", 100, 2))
        await store.apply(Note("other", "{}", 10, 3))
        assert [await store.note(name, 5) for name in ("code", "other", "third")] == ["secönd", "{}", ""]
        assert [await store.note("code", at) for at in (99, 100)] == ["secönd", ""]

    async def test_what_is_over_goes_with_the_next(self, store: ContractStore) -> None:
        """So that nothing is kept for longer than it was meant to be."""
        await store.apply(Note("code", "first", 50, 1))
        await store.apply(Note("other", "text", 90, 50))
        assert [await store.note(name, 0) for name in ("code", "other")] == ["", "text"]

    async def test_the_owner_is_told_once_where_he_last_wrote_in_a_direct_chat(self, store: ContractStore) -> None:
        """And nowhere, while he has not written."""
        notice = NotifyOwner(ReplyDraft(901, "the disk is full"), "notice:1", 100, 5)
        assert not await store.apply(notice)
        road, inbound = StoreDriver(store, 100), said(room="study")
        await road.receive(replace(inbound, origin=replace(inbound.origin, trust=Trust.OWNER, direct=True)))
        await road.receive(said(room="elsewhere"))
        assert await store.apply(notice)
        assert await store.apply(replace(notice, notice=ReplyDraft(902, "the disk is full"), at=6))
        [reply] = await store.unseen(CHANNEL, "study")
        assert (reply.id, reply.draft.notice, reply.draft.text) == (901, True, "the disk is full")


SAVE = StageMemory(0, MemoryAction.SAVE, 0, Kind.GOAL, "Zoë\nruns", "Zoë", "sport", "runs", 5, 9)
CONFIRM = StageMemory(1, MemoryAction.CONFIRM, 1 << 60)


class StagingContract:
    """Committed with the turn, or not at all."""

    async def test_what_a_turn_staged_is_there_until_it_is_done(self, store: ContractStore) -> None:
        """With the episodes of its batch, in order, and gone with them; another turn has nothing of it."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        batch = claimed.batch
        end = replace(outcome(), effects=(SAVE, CONFIRM))
        assert not await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence + 1, end, None, 7))
        assert list(await store.episode_work(9)) == []
        assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 7))
        await road.settle(said("again"))
        first, second = await store.episode_work(9)
        assert (first.staged, second.staged) == ((SAVE, CONFIRM), ())
        await store.apply(EpisodesKept((second.batch_id,)))
        assert [work.staged for work in await store.episode_work(9)] == [(SAVE, CONFIRM)]
        await store.apply(EpisodesKept((first.batch_id,)))
        assert list(await store.episode_work(9)) == []
