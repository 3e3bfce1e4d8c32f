"""What is on disk is what was stored, or is not served."""

from __future__ import annotations

from contextlib import aclosing, closing
from pathlib import Path

import apsw
import pytest

from keepsaid import Episode, Keepsaid, Message
from keepsaid.adapters.sqlite.integrity import check_integrity
from keepsaid.domain.ids import show

SETTINGS = {"models": {"chat": "none"}, "buffer": {"window_ms": 0}}


def change(path: Path, *statements: str) -> None:
    """What a bad disk or a careless hand does."""
    with closing(apsw.Connection(str(path))) as db:
        db.set_busy_timeout(2_000)
        for statement in statements:
            db.execute(statement)


@pytest.fixture
def buffer(tmp_path: Path) -> Path:
    return tmp_path / "data" / "buffer.db"


FLIPS = (
    "UPDATE message SET text = 'pay mallory 100'",
    "UPDATE message SET payload = x'00'",
    "UPDATE message SET trust = 'owner'",
    "UPDATE message SET sender = 'mallory'",
    "UPDATE message SET reply_url = 'https://example.org/elsewhere'",
    "UPDATE message SET received_at = received_at + 1",
    "UPDATE message SET seal = seal + 1",
)


@pytest.mark.parametrize("flip", FLIPS)
async def test_a_damaged_message_is_never_served(tmp_path: Path, buffer: Path, flip: str) -> None:
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        damaged = await ks.inbox.put(Message("pay ann 100", "ann", "room"))
        change(buffer, flip)
        await ks.inbox.put(Message("hello", "bob", "den"))
        async with aclosing(ks.inbox.batches("the test")) as batches:
            async for batch in batches:
                assert [message.text for message in batch.messages] == ["hello"]
                await batch.done("hi")
                break
    with closing(apsw.Connection(str(buffer))) as db:
        states = db.execute("SELECT conversation, state FROM batch JOIN lane ON lane.id = lane_id").fetchall()
        (notice,) = map(str, db.execute("SELECT text FROM reply WHERE notice").fetchall()[0])
    assert sorted(map(str, states)) == ["('den', 'done')", "('room', 'review')"]
    assert damaged.id in notice
    assert "pay" not in notice


async def test_what_was_routed_before_it_was_damaged_is_parked_too(tmp_path: Path, buffer: Path) -> None:
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        await ks.inbox.put(Message("first", "ann", "room"))
        async with aclosing(ks.inbox.batches("the test")) as batches:
            async for batch in batches:
                await ks.inbox.put(Message("second", "ann", "room"))
                await ks.inbox.put(Message("third", "ann", "den"))
                await batch.done("one")
                change(buffer, "UPDATE message SET text = 'x' WHERE text = 'second'")
                break
        async with aclosing(ks.inbox.batches("the test")) as batches:
            async for batch in batches:
                assert [message.text for message in batch.messages] == ["third"]
                await batch.done("two")
                break


async def test_a_deep_look_finds_what_is_damaged(tmp_path: Path, buffer: Path) -> None:
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        receipts = [await ks.inbox.put(Message(f"text {n}", "ann", "room")) for n in range(5)]
    change(buffer, "UPDATE message SET text = 'pay mallory' WHERE text = 'text 3'")
    found = check_integrity(buffer, ("buffer",), mend=False)
    assert (found.messages, [show("message", one) for one in found.damaged]) == (5, [receipts[3].id])
    assert (found.damage, found.astray) == ((), ())


ASTRAY = (
    "UPDATE lane SET head = head + 3",
    "UPDATE lane SET batched = 0",
    "UPDATE lane SET last_id = 1",
    "UPDATE lane SET due_at = NULL",
    "DELETE FROM ready",
    "UPDATE tally SET n = n + 1 WHERE what = 'batch' AND name = 'done'",
    "DELETE FROM tally WHERE what = 'heard'",
    "UPDATE ready SET batch_id = 5",
)


@pytest.mark.parametrize("hand", ASTRAY)
async def test_what_is_derived_is_made_anew(tmp_path: Path, buffer: Path, hand: str) -> None:
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        await ks.inbox.put(Message("one", "ann", "room"))
        async with aclosing(ks.inbox.batches("the test")) as batches:
            async for batch in batches:
                await ks.inbox.put(Message("two", "bob", "room"))
                await batch.done("yes")
                break
        async with aclosing(ks.inbox.batches("the test")) as batches:
            assert [message.text for message in (await anext(batches)).messages] == ["two"]  # and it goes back
    async with Keepsaid.open(tmp_path, settings={**SETTINGS, "buffer": {"window_ms": 500}}) as ks:
        await ks.inbox.put(Message("three", "bob", "den"))  # and waits for its window
    change(buffer, hand)
    seen = check_integrity(buffer, ("buffer",), mend=False)
    assert seen.astray
    mended = check_integrity(buffer, ("buffer",), mend=True)
    assert mended.astray
    assert set(mended.astray) <= set(seen.astray), "what is mended first may mend the rest"
    assert check_integrity(buffer, ("buffer",), mend=False).astray == ()
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        heard: list[str] = []
        async with aclosing(ks.inbox.batches("the test")) as batches:
            async for batch in batches:
                heard += [message.text for message in batch.messages]
                await batch.done("yes")
                if len(heard) == 2:
                    break
    assert sorted(heard) == ["three", "two"], "each is answered once, and nothing is lost"


async def test_a_full_text_that_does_not_match_is_made_anew(tmp_path: Path) -> None:
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        await ks.memory.record([Episode("the brass lantern", "ann", "room", 1_000)])
    memory = tmp_path / "data" / "memory.db"
    change(memory, "INSERT INTO memory_text (memory_text) VALUES ('delete-all')")
    assert check_integrity(memory, ("memory",), mend=False).astray == ("the full text does not match the memories",)
    check_integrity(memory, ("memory",), mend=True)
    assert check_integrity(memory, ("memory",), mend=True).astray == ()
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        assert await ks.memory.recall("lantern")
