"""The road of a message over a store, in short words for contracts and properties."""

from __future__ import annotations

from itertools import count
from typing import Protocol

from keepsaid.domain.batch import StoredBatch, TaskDraft, WaitingGroup, Window
from keepsaid.domain.commits import ClaimBatches, Dispatch, Receive, Received, TurnCommit
from keepsaid.domain.message import Inbound, Lane
from keepsaid.domain.process import VoidLeases
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.route import Verdict
from keepsaid.domain.turn import ClaimedBatch, Lease
from keepsaid.domain.views import Story
from keepsaid.ports import store
from keepsaid.ports.runtime import MarksView
from keepsaid.testing.builders import AT_ONCE, arrival, outcome, routed, verdict
from keepsaid.values import frozen

LEASE_MS = 1_000
"""How long the leases of `Road.claim` last."""

LONG_MS = 3_600_000
"""A process that has lived so long may try whatever waits for a trial."""


class ContractStore(store.Store, MarksView, Protocol):
    """The operational store with all its reads, those of marks as well."""


@frozen
class Queued:
    """A batch that was routed, and the receipt of its first message."""

    batch_id: int
    first: Received

    @property
    def lane(self) -> Lane:
        """The lane it belongs to."""
        return self.first.lane


async def read(store: ContractStore, lease: Lease) -> ClaimedBatch:
    """What a lease is for, while it is held."""
    claimed = await store.claimed(lease)
    assert claimed is not None
    return claimed


class StoreDriver:
    """Driver that moves messages through a store step by step, with ids that only grow."""

    def __init__(self, store: ContractStore, first_id: int = 1) -> None:
        self.store = store
        self.lived_ms = LONG_MS
        self._ids = count(first_id)

    def new_id(self) -> int:
        """A number larger than any before."""
        return next(self._ids)

    async def receive(self, inbound: Inbound, at: int = 0, window: Window = AT_ONCE) -> Received:
        """Receive a message."""
        return await self.store.apply(Receive(arrival(self.new_id(), inbound, at), window))

    async def group(self, lane: Lane) -> WaitingGroup:
        """What waits in a lane."""
        [group] = await self.store.waiting([lane])
        return group

    async def route(
        self,
        lane: Lane,
        at: int = 0,
        by: Verdict | None = None,
        *,
        task: TaskDraft | None = None,
        window: Window = AT_ONCE,
    ) -> int:
        """Dispatch all that waits in a lane as one batch; returns the id it was given."""
        group = await self.group(lane)
        batch = routed(self.new_id(), group.messages, by or verdict(), task)
        assert await self.store.apply(Dispatch(lane, group.numbered_after, (batch,), window, at, group.paused))
        return batch.id

    async def queue(self, inbound: Inbound, at: int = 0, by: Verdict | None = None) -> Queued:
        """Receive one message and route it."""
        received = await self.receive(inbound, at)
        return Queued(await self.route(received.lane, at, by), received)

    async def claim(self, at: int = 0, limit: int = 10, owner: str = "one") -> tuple[ClaimedBatch, ...]:
        """Claim what is ready, and read it."""
        turn_ids = tuple(self.new_id() for _ in range(limit))
        leases = await self.store.apply(ClaimBatches(owner, limit, turn_ids, at, at + LEASE_MS, lived_ms=self.lived_ms))
        return tuple([await read(self.store, lease) for lease in leases])

    async def claim_one(self, at: int = 0, owner: str = "one") -> ClaimedBatch:
        """Claim the one batch that is ready."""
        [claimed] = await self.claim(at, owner=owner)
        return claimed

    async def answer(self, claimed: ClaimedBatch, text: str = "hello yourself", at: int = 0) -> int:
        """Commit a turn with a reply; returns the reply's id."""
        draft = ReplyDraft(self.new_id(), text)
        batch = claimed.batch
        assert await self.store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, outcome(text), draft, at))
        return draft.id

    async def settle(self, inbound: Inbound, text: str = "hello yourself", at: int = 0) -> int:
        """Walk one message to the end of its turn; returns the reply's id."""
        await self.queue(inbound, at)
        return await self.answer(await self.claim_one(at), text, at)

    async def crash(self, at: int = 0, owner: str = "next", reply_ids: tuple[int, ...] = ()) -> tuple[int, ...]:
        """The process died and `owner` starts; returns the batches that are dead now."""
        split_id = self.new_id()
        return await self.store.apply(
            VoidLeases(owner, at, "it could not be answered", reply_ids, split_id=split_id, notice_parked="parked")
        )

    async def story(self, message_id: int) -> Story:
        """The outcome of a message."""
        story = await self.store.story(message_id)
        assert story is not None
        return story

    async def batch(self, queued: Queued) -> StoredBatch:
        """The batch as it is now."""
        batch = (await self.story(queued.first.id)).batch
        assert batch is not None
        return batch
