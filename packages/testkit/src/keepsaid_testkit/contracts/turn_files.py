"""The contract of files that turns make: kept under the fence of their turn, sent with its reply, gone with it."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import EpisodesKept, MarkReplyShown, Prune
from keepsaid.domain.files import handle_of
from keepsaid.domain.forgetting import ForgetTargets, MoveForgetting, PutBack, RequestForgetting, ScrubForgotten
from keepsaid.domain.making import KeepTurnFile, KeepTurnPiece
from keepsaid.domain.retention import Stale
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.domain.turn_files import TurnFile, turn_file_handle
from keepsaid.testing.builders import lane_of, said
from keepsaid_testkit.contracts.files import PHOTO, fetch
from keepsaid_testkit.contracts.files import take as take_files
from keepsaid_testkit.contracts.outbox import take
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver


async def make(
    store: ContractStore, claimed: ClaimedBatch, *pieces: bytes, number: int = 17, fence: int | None = None
) -> bool:
    """Keep a file that a turn attached; whether all of it was taken."""
    fence = claimed.batch.fence if fence is None else fence
    kept = [
        await store.apply(KeepTurnPiece(claimed.turn_id, fence, number, n, piece)) for n, piece in enumerate(pieces)
    ]
    file = TurnFile(claimed.turn_id, number, "notes.md", "text/plain", sum(map(len, pieces)), attached=True)
    return all([*kept, await store.apply(KeepTurnFile(fence, file, len(pieces)))])


async def answered(road: StoreDriver) -> tuple[ClaimedBatch, int]:
    """A turn with a file of two pieces, which was answered, and its reply."""
    await road.queue(said("write it down, zebra"))
    claimed = await road.claim_one()
    assert await make(road.store, claimed, b"milk, ", b"\x00bread\xff")
    return claimed, await road.answer(claimed)


class TurnFileContract:
    """How the files of turns are kept and sent."""

    async def test_it_goes_with_the_reply(self, store: ContractStore) -> None:
        """With that of its turn alone; what was not attached is kept, and not sent."""
        road = StoreDriver(store)
        await road.settle(said("another room", room="den"))
        await road.queue(said())
        claimed = await road.claim_one()
        assert await make(store, claimed, b"milk, ", b"\x00bread\xff")
        beside = TurnFile(claimed.turn_id, 18, "drawing.png", "image/png", 3)
        assert await store.apply(KeepTurnPiece(claimed.turn_id, claimed.batch.fence, 18, 0, b"png"))
        assert await store.apply(KeepTurnFile(claimed.batch.fence, beside, 1))
        await road.answer(claimed)
        other, reply = await take(store)
        attached = TurnFile(claimed.turn_id, 17, "notes.md", "text/plain", 13, attached=True)
        assert (other.files, reply.files) == ((), (attached,))
        assert await store.files.attached((claimed.turn_id,)) == (attached,)
        assert await store.files.turn_content(claimed.turn_id, 17) == b"milk, \x00bread\xff"
        placed = await store.files.turn_file(claimed.turn_id, 18)
        assert placed is not None
        assert (placed.file, placed.lane) == (beside, lane_of())
        assert await store.files.turn_file(claimed.turn_id, 19) is None
        assert await store.files.turn_content(claimed.turn_id, 19) is None

    async def test_a_step_that_is_made_again_replaces_it(self, store: ContractStore) -> None:
        """All of it, though it is shorter now."""
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        assert await make(store, claimed, b"milk, ", b"bread", b"and more")
        assert await make(store, claimed, b"water")
        assert await store.files.turn_content(claimed.turn_id, 17) == b"water"
        [file] = await store.files.attached((claimed.turn_id,))
        assert file.size == 5

    async def test_who_has_lost_the_turn_keeps_nothing(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        await road.queue(said())
        claimed = await road.claim_one()
        assert not await make(store, claimed, b"late", fence=claimed.batch.fence - 1)
        await road.answer(claimed)
        assert not await make(store, claimed, b"after the answer")
        assert await store.files.turn_file(claimed.turn_id, 17) is None

    async def test_one_with_a_source_has_its_bytes_from_there(self, store: ContractStore) -> None:
        """Those of a message, or of an earlier turn; none once they are gone."""
        road = StoreDriver(store)
        await road.settle(replace(said("look at this"), files=(PHOTO,)))
        [job] = await take_files(store)
        before, _ = await answered(road)
        await road.queue(said("send both"))
        claimed = await road.claim_one()
        sources = (handle_of(job.lease.message_id, 1), turn_file_handle(before.turn_id, 17))
        for number, source in enumerate(sources, start=1):
            file = TurnFile(claimed.turn_id, number, "it", "image/png", 9, attached=True, source=source)
            assert await store.apply(KeepTurnFile(claimed.batch.fence, file))
        assert await store.files.turn_content(claimed.turn_id, 1) is None, "it is not fetched yet"
        assert await fetch(store, job, b"pixels")
        assert await store.files.turn_content(claimed.turn_id, 1) == b"pixels"
        assert await store.files.turn_content(claimed.turn_id, 2) == b"milk, \x00bread\xff"
        await road.answer(claimed)
        await _forget(store, ForgetTargets(turns=(before.turn_id,)))
        assert await store.files.turn_content(claimed.turn_id, 2) is None

    async def test_it_goes_when_its_turn_is_forgotten_and_comes_back(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        claimed, _ = await answered(road)
        before = await store.files.turn_file(claimed.turn_id, 17)
        await _forget(store, ForgetTargets(turns=(claimed.turn_id,)), undo_until=900)
        assert await store.files.turn_file(claimed.turn_id, 17) is None
        assert await store.files.attached((claimed.turn_id,)) == ()
        for verb in ("hide", "erase", "scrub", "checkpoint", "finish", "undo"):
            assert await store.apply(MoveForgetting(900, verb, 70))
        assert await store.apply(PutBack(900, 81))
        assert await store.files.turn_file(claimed.turn_id, 17) == before
        assert await store.files.turn_content(claimed.turn_id, 17) == b"milk, \x00bread\xff"

    async def test_it_goes_when_its_turn_is_pruned(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        claimed, reply_id = await answered(road)
        await store.apply(MarkReplyShown(reply_id, 1))
        await store.apply(EpisodesKept((claimed.batch.id,)))
        for stale in Stale:
            await store.apply(Prune(stale, 1_000, 1_000))
        assert await store.files.turn_file(claimed.turn_id, 17) is None
        assert await store.files.attached((claimed.turn_id,)) == ()


async def _forget(store: ContractStore, wanted: ForgetTargets, undo_until: int | None = None) -> None:
    assert await store.apply(RequestForgetting(900, "id", "owner", wanted, 50, (), undo_until))
    await store.apply(ScrubForgotten(900, 60))
