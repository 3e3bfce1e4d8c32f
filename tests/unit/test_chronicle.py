"""A chronicle tells every stage with its time: what waits says for what, what was tried says how often."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import pytest

from keepsaid.adapters.sql.operations.chronicle import SqlChronicles
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.adapters.sqlite.connection import Readers
from keepsaid.adapters.sqlite.stores import SqliteOperations, open_operations
from keepsaid.domain.batch import Window
from keepsaid.domain.commits import Fail, Failure, Release, Requeue, Settle, StepEnd, StepStart, TakeReplies
from keepsaid.domain.ids import show
from keepsaid.domain.message import ProviderMarks
from keepsaid.domain.reply import Delivered
from keepsaid.domain.turn import Usage
from keepsaid.domain.views import Chronicle, Redelivery
from keepsaid.interfaces.cli.chronicle import chronicle_lines, chronicle_shape, waits_for
from keepsaid.testing.builders import CHANNEL, said, step
from keepsaid_testkit.contracts.bodies import deliver, signed
from keepsaid_testkit.contracts.busy import busy
from keepsaid_testkit.contracts.store_driver import Queued, StoreDriver


@dataclass
class Told:
    """A store, the road to it, and its chronicles."""

    store: SqliteOperations
    road: StoreDriver
    views: SqlChronicles

    async def of(self, queued: Queued) -> Chronicle:
        """The chronicle of a batch."""
        chronicle = await self.views.chronicle_of_batch(queued.batch_id)
        assert chronicle is not None
        return chronicle

    async def waits(self, queued: Queued) -> str | None:
        """What a batch waits for."""
        return waits_for(await self.of(queued))


@pytest.fixture
async def at(tmp_path: Path) -> AsyncIterator[Told]:
    """A new, empty store."""
    async with AsyncExitStack() as stack:
        store = await open_operations(tmp_path / "buffer.db")
        stack.push_async_callback(store.close)
        readers = Readers(tmp_path / "buffer.db", 1)
        stack.push_async_callback(readers.close)
        yield Told(store, StoreDriver(store), SqlChronicles(readers, TombstoneKeyring(None)))


async def test_every_stage_of_an_answered_message_has_its_time(at: Told) -> None:
    queued = await at.road.queue(said(marks=ProviderMarks("evt-7")), 1_000)
    claimed = await at.road.claim_one(2_000)
    fence = claimed.batch.fence
    for n in (1, 1):
        await at.store.apply(StepStart(claimed.turn_id, fence, step(n), 2_100))
    await at.store.apply(StepEnd(claimed.turn_id, fence, 1, "hi", Usage(7, 3), 2_400))
    await at.road.answer(claimed, at=3_000)
    chronicle = await at.of(queued)
    assert chronicle == await at.views.chronicle_of_message(queued.first.id)
    assert chronicle == await at.views.chronicle_of_turn(claimed.turn_id)
    shape = chronicle_shape(chronicle)
    (message,), (turn,), (reply,) = shape["messages"], shape["turns"], shape["replies"]
    assert (message["external_id"], message["received_at"]) == ("evt-7", "1970-01-01T00:00:01.000Z")
    batch = shape["batch"]
    assert (batch["window_closed_at"], batch["ended_at"]) == ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:03.000Z")
    assert (batch["state"], batch["rule"], batch["crashes"], shape["waits_for"]) == ("done", "default", 0, None)
    (called,) = turn["steps"]
    assert (called["tries"], called["took_ms"], called["tokens"]) == (2, 300, [7, 3])
    assert (turn["started_at"], turn["took_ms"]) == ("1970-01-01T00:00:02.000Z", 1_000)
    assert (reply["state"], reply["created_at"], reply["moves"]) == ("pending", "1970-01-01T00:00:03.000Z", [])
    text = "\n".join(chronicle_lines(chronicle))
    for words in ("key evt-7", "closed after 0 ms", "because default says so", "started 2 times", "in 300 ms"):
        assert words in text


async def test_every_try_to_send_a_reply_is_told(at: Told) -> None:
    reply_id = await at.road.settle(said())
    for n, (how, detail) in enumerate([(Delivered.RETRY, "HTTP 503"), (Delivered.CONFIRMED, "HTTP 200")]):
        (reply,) = await at.store.apply(TakeReplies((CHANNEL,), "one", 1, 100 + n))
        assert reply.id == reply_id
        assert await at.store.apply(Settle(reply_id, reply.fence, how, 110 + n, detail, "p-1" if n else None, 101))
    chronicle = await at.views.chronicle_of_batch(2)
    assert chronicle is not None
    (life,) = chronicle.replies
    moves = [(one.verb, one.at, one.detail) for one in life.moves]
    assert moves == [("take", 100, ""), ("retry", 110, "HTTP 503"), ("take", 101, ""), ("confirm", 111, "HTTP 200")]
    assert (life.ended_at, life.provider_id) == (111, "p-1")
    text = "\n".join(chronicle_lines(chronicle))
    assert "not sent, to be tried again (HTTP 503)" in text
    assert "sent after 2 tries, the provider's id is p-1" in text


async def test_a_message_that_is_not_batched_says_when_its_window_closes(at: Told) -> None:
    received = await at.road.receive(said(), 1_000, Window(window_ms=500))
    chronicle = await at.views.chronicle_of_message(received.id)
    assert chronicle is not None
    assert waits_for(chronicle) == "for its window to close at 1970-01-01T00:00:01.500Z"
    assert chronicle_shape(chronicle)["window_closes_at"] == "1970-01-01T00:00:01.500Z"
    assert next(chronicle_lines(chronicle)).endswith("is received: root:room   test")


async def test_what_waits_says_for_what(at: Told) -> None:
    first = await at.road.queue(said("first"))
    assert await at.waits(first) == "for a place"
    claimed = await at.road.claim_one(0, owner="me")
    assert await at.waits(first) == "for its turn to end: leased by me until 1970-01-01T00:00:01.000Z, fence 1"
    second = await at.road.queue(said("second"))
    assert await at.waits(second) == f"for {show('batch', first.batch_id)} of the same lane, which is leased"
    await at.store.apply(Release(first.batch_id, claimed.batch.fence, 9_000, True, "the model is away"))
    assert await at.waits(first) == "until 1970-01-01T00:00:09.000Z: the model is away"
    alone = "until the program has run 10 s without it and everything else has ended: the program was stopped 2 times"
    for crashes, words in ((1, "for other suspects to end"), (2, alone)):
        await at.road.claim_one(10_000 * crashes)
        await at.road.crash(10_000 * crashes + 1)
        assert words in str(await at.waits(first))


async def test_turns_that_were_given_up_are_told_too(at: Told) -> None:
    queued = await at.road.queue(said())
    claimed = await at.road.claim_one()
    await at.store.apply(Fail(queued.batch_id, claimed.batch.fence, Failure.BURY, "it broke", 5))
    assert await at.waits(queued) == "for a person: it was given up"
    await at.store.apply(Requeue(queued.batch_id, 6, "once more"))
    await at.road.answer(await at.road.claim_one(7))
    states = [(turn.state, turn.reason) for turn in (await at.of(queued)).turns]
    assert states == [("abandoned", "it broke"), ("committed", "")]


async def test_an_unknown_id_has_no_chronicle(at: Told) -> None:
    for found_of in (at.views.chronicle_of_message, at.views.chronicle_of_batch, at.views.chronicle_of_turn):
        found: Any = await found_of(4_711)
        assert found is None


async def test_of_a_large_batch_the_first_are_shown(at: Told) -> None:
    for n in range(12):
        received = await at.road.receive(said(f"number {n}"))
    batch_id = await at.road.route(received.lane)
    chronicle = await at.views.chronicle_of_batch(batch_id)
    assert chronicle is not None
    assert "and 2 others of the same batch" in "\n".join(chronicle_lines(chronicle))
    assert "and 11 others" in "\n".join(chronicle_lines(chronicle, received.id))
    assert "others" not in "\n".join(chronicle_lines(chronicle, everything=True))


async def test_what_joined_a_running_turn_is_told_with_that_turn(at: Told) -> None:
    lane = await busy(at.road)
    joined = await lane.more()
    await lane.finished(1)
    assert len(await lane.steer(2)) == 1
    assert await lane.commit(joined.batch_id)
    chronicle = await at.of(joined)
    assert chronicle == await at.views.chronicle_of_message(joined.first.id)
    assert [turn.id for turn in chronicle.turns] == [lane.claimed.turn_id]
    assert [life.reply.draft.text for life in chronicle.replies] == ["both"]
    shape = chronicle_shape(chronicle)
    assert (shape["batch"]["state"], shape["turns"][0]["state"]) == ("done", "committed")


async def test_a_replayed_body_is_noted_under_the_first_message(at: Told) -> None:
    """Each other delivery id once, with its event and time, and not more than a few."""
    first = await deliver(at.road, signed("guid-1"), 1_000)
    for again in range(30):
        await deliver(at.road, signed(f"guid-{again // 2 + 1}", event="push"), 1_001 + again)
    for again in range(30):
        await deliver(at.road, signed(f"other-{again}"), 1_100 + again)
    chronicle = await at.views.chronicle_of_message(first.id)
    assert chronicle is not None
    noted = [again.external_id for again in chronicle.redeliveries]
    assert noted == [*(f"guid-{n}" for n in range(2, 16)), *(f"other-{n}" for n in range(6))]
    assert len(noted) == Redelivery.NOTED_MAX
    text = "\n".join(chronicle_lines(chronicle))
    assert "also delivered as guid-2 (push) at 1970-01-01T00:00:01.003Z: treated as duplicate" in text
    shape = chronicle_shape(chronicle)["redeliveries"][0]
    assert shape == {
        "message": show("message", first.id),
        "external_id": "guid-2",
        "event": "push",
        "at": "1970-01-01T00:00:01.003Z",
    }


async def test_the_index_of_bodies_shrinks_to_those_that_count(at: Told, tmp_path: Path) -> None:
    """Each new body removes expired ones, so that the table does not grow for ever."""
    for n in range(100):
        await deliver(at.road, signed(f"guid-{n}", f"text {n}"), n)
    for n in range(20):
        await deliver(at.road, signed(f"late-{n}", f"late {n}"), 10_000 + n)
    with closing(apsw.Connection(str(tmp_path / "buffer.db"))) as db:
        assert db.execute("SELECT count(*) FROM body_key").fetchall() == [(20,)]
