"""Leases of the library: kept while a consumer works, given back when it stops, and seen to be lost."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.unit.library_cast import Change, outside
from tests.waits import HANG_S

from keepsaid import LeaseLost, Message
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.interfaces.sdk.inbox import Inbox
from keepsaid.pipeline.leasing import Leases, LeaseTerms
from keepsaid.ports import runtime


@pytest.fixture
async def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Instance]:
    for name in [name for name in os.environ if name.upper().startswith("KEEPSAID_")]:
        monkeypatch.delenv(name)
    home = Home.at(tmp_path)
    config, _ = load(home.config_file, {"models": {"chat": "none"}, "buffer": {"window_ms": 0}})
    async with opened(home, config) as running:
        await running.start(answering=False)
        yield running


@pytest.fixture
def sql(tmp_path: Path) -> Change:
    return outside(tmp_path)


@pytest.fixture
def disarmed() -> Iterator[None]:
    """Leave no point armed."""
    yield
    runtime.arm(None)


def with_terms(instance: Instance, terms: LeaseTerms) -> None:
    """Lease on other terms."""
    instance.leases = Leases(instance.operations, instance.clock, instance.ids, instance.owner, terms)


async def routed(instance: Instance, sql: Change, *conversations: str) -> Inbox:
    """An inbox in which a batch of each conversation waits."""
    inbox = Inbox(instance)
    for conversation in conversations:
        await inbox.put(Message("hello", "ann", conversation))
    async with asyncio.timeout(HANG_S):
        while await asyncio.to_thread(sql, "SELECT count(*) FROM ready") != [(len(conversations),)]:
            pass
    return inbox


def make_loner(sql: Change, conversation: str) -> None:
    """A batch that was in flight at two crashes in a row."""
    lane = "(SELECT id FROM lane WHERE conversation = ?)"
    sql(f"UPDATE batch SET crashes = 2 WHERE lane_id = {lane}", conversation)
    sql(f"UPDATE ready SET suspect = 2 WHERE lane_id = {lane}", conversation)


@pytest.mark.usefixtures("disarmed")
async def test_a_claim_that_nobody_waits_for_any_more_is_given_back(instance: Instance, sql: Change) -> None:
    inbox = await routed(instance, sql, "room")
    loop, claimed, cancelled = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def hold(name: str) -> None:
        if name == "commit.ClaimBatches.after":
            loop.call_soon_threadsafe(claimed.set)
            assert cancelled.wait(HANG_S)

    runtime.arm(hold)
    waiting = asyncio.create_task(anext(inbox.batches("test")))
    async with asyncio.timeout(HANG_S):
        await claimed.wait()
    assert sql("SELECT state FROM batch") == [("leased",)]
    waiting.cancel()
    runtime.arm(None)
    cancelled.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert sql("SELECT state, attempts FROM batch") == [("queued", 0)]


async def test_a_consumer_sees_that_its_batch_has_another_owner(instance: Instance, sql: Change) -> None:
    with_terms(instance, LeaseTerms(renew_ms=10))
    inbox = await routed(instance, sql, "room")
    async with asyncio.timeout(HANG_S), aclosing(inbox.batches("test")) as batches:
        batch = await anext(batches)
        assert not batch.lost.is_set()
        sql("UPDATE batch SET fence = fence + 1")
        await batch.lost.wait()
        with pytest.raises(LeaseLost):
            await batch.done("too late")


async def test_a_batch_that_runs_alone_may_not_take_for_ever(instance: Instance, sql: Change) -> None:
    with_terms(instance, LeaseTerms(alone_ms=50))
    inbox = await routed(instance, sql, "room", "other")
    make_loner(sql, "room")
    async with asyncio.timeout(HANG_S), aclosing(inbox.batches("test")) as batches:
        batch = await anext(batches)
        assert batch.conversation == "room"
        await batch.lost.wait()
        with pytest.raises(LeaseLost):
            await batch.done("too late")
        assert (await anext(batches)).conversation == "other"
    ((state, attempts, error),) = sql("SELECT state, attempts, error FROM batch ORDER BY id LIMIT 1")
    assert (state, attempts) == ("queued", 0)
    assert error.startswith("the program ran")


@pytest.mark.usefixtures("disarmed")
async def test_what_is_ready_and_not_given_is_waited_for_without_haste(instance: Instance, sql: Change) -> None:
    inbox = await routed(instance, sql, "room", "other")
    make_loner(sql, "room")
    claims, claimed, loop = [], asyncio.Event(), asyncio.get_running_loop()

    def count(name: str) -> None:
        if name == "commit.ClaimBatches.before":
            claims.append(name)
            loop.call_soon_threadsafe(claimed.set)

    async with aclosing(inbox.batches("first")) as first:
        alone = await anext(first)
        assert alone.conversation == "room"
        runtime.arm(count)
        began = loop.time()
        waiting = asyncio.ensure_future(anext(inbox.batches("second")))
        await claimed.wait()
        await asyncio.wait([waiting], timeout=0.3)
        assert not waiting.done()
        assert len(claims) <= 3 + (loop.time() - began), "once at first, then once a second"
        waiting.cancel()
        await asyncio.wait([waiting])
        await alone.done()
