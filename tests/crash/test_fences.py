"""Fences: whoever lost a lease writes nothing any more, a thousand times over, and after a sleep of its process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.program import ROOT
from tests.crash.rows import Rows, asked, rows_of
from tests.crash.suspended import SETTINGS
from tests.waits import HANG_S

from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.app.instance import Outside
from keepsaid.app.opening import opened
from keepsaid.config import Home
from keepsaid.domain import busy, commits
from keepsaid.domain.busy import Steer
from keepsaid.domain.commits import Commit, ExpireLeases, Fail, Failure, Settle, TakeReplies
from keepsaid.domain.reply import Delivered, ReplyDraft, StoredReply
from keepsaid.domain.turn import ClaimedBatch, ModelAnswer
from keepsaid.engine.workers import TAKEN
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid.testing.builders import AT_ONCE, CHANNEL, said
from keepsaid_testkit.contracts.failures import fenced
from keepsaid_testkit.contracts.store_driver import LEASE_MS, ContractStore, StoreDriver

_LANES = 25
_HOLDERS = 5
"""A lease is had by so many, one after another: four of them have an old fence."""

_REFUSED_MIN = 1_000
_NOTHING: tuple[object, ...] = (False, (), "leased")
"""What a refused commit returns: no, no batch, or the state somebody else's batch is in."""


@dataclass(frozen=True)
class Place:
    """A store with its file."""

    store: ContractStore
    file: Path

    def rows(self) -> Rows:
        """Everything that is in it."""
        return rows_of(self.file)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    """A store on a disk."""
    operations = await open_operations(tmp_path / "buffer.db")
    yield Place(operations, tmp_path / "buffer.db")
    await operations.close()


def with_fence() -> set[type]:
    """Every kind of commit that carries a fence."""
    kinds = [one for module in (busy, commits) for one in vars(module).values() if isinstance(one, type)]
    kinds = [one for one in kinds if issubclass(one, Commit) and one is not Commit]
    return {one for one in kinds if any(field.name == "fence" for field in fields(one))}


def writes(claimed: ClaimedBatch) -> list[Commit[Any]]:
    """All that the holder of a batch may write."""
    batch = claimed.batch
    notice = ReplyDraft(10_000 + claimed.turn_id, "late", notice=True)
    failures = [Fail(batch.id, batch.fence, how, "late", 0, notice=notice) for how in Failure]
    return [*fenced(claimed), *failures, Steer(claimed.turn_id, batch.id, batch.fence, 1, AT_ONCE)]


async def replies_taken(road: StoreDriver) -> list[tuple[StoredReply, ...]]:
    """The replies of all lanes, as each of their senders had them."""
    for n in range(_LANES):
        await road.settle(said(room=f"room {n}"))
    taken: list[tuple[StoredReply, ...]] = []
    for n in range(_HOLDERS):
        given_back = [Settle(one.id, one.fence, Delivered.RETRY, n) for one in (taken[-1] if taken else ())]
        assert all([await road.store.apply(one) for one in given_back])
        taken.append(await road.store.apply(TakeReplies((CHANNEL,), f"sender {n}", _LANES, n)))
        assert len(taken[-1]) == _LANES
    return taken


async def batches_held(road: StoreDriver) -> list[tuple[ClaimedBatch, ...]]:
    """A batch of every lane, with the next waiting behind it, as each of its holders had it."""
    for n in range(_LANES):
        await road.queue(said("work on this", room=f"room {n}"))
    held: list[tuple[ClaimedBatch, ...]] = []
    for n in range(_HOLDERS):
        await road.store.apply(ExpireLeases(n * LEASE_MS))
        held.append(await road.claim(n * LEASE_MS, _LANES, f"holder {n}"))
        assert len(held[-1]) == _LANES
    for n in range(_LANES):
        await road.queue(said("meanwhile", room=f"room {n}"))
    return held


async def test_a_thousand_old_fences_are_refused(place: Place) -> None:
    road = StoreDriver(place.store)
    taken, held = await replies_taken(road), await batches_held(road)
    old = [write for holders in held[:-1] for claimed in holders for write in writes(claimed)]
    old += [Settle(one.id, one.fence, how, 9) for sent in taken[:-1] for one in sent for how in Delivered]
    assert len(old) >= _REFUSED_MIN
    assert {type(write) for write in old} == with_fence()
    before = place.rows()
    refused = await asyncio.gather(*map(place.store.apply, old))
    assert [write for write, result in zip(old, refused, strict=True) if result not in _NOTHING] == []
    assert place.rows() == before


async def test_the_same_with_the_fence_of_the_holder_is_not(place: Place) -> None:
    road = StoreDriver(place.store)
    taken, held = await replies_taken(road), await batches_held(road)
    for n, claimed in enumerate(held[-1][: len(writes(held[-1][0]))]):
        write = writes(claimed)[n]
        if isinstance(write, commits.StepEnd):
            assert await place.store.apply(writes(claimed)[n - 1]), "what ends has begun"
            write = replace(write, n=9)
        before = place.rows()
        await place.store.apply(write)
        assert place.rows() != before, write
    for reply in taken[-1]:
        assert await place.store.apply(Settle(reply.id, reply.fence, Delivered.CONFIRMED, 9))


class Quick:
    """A model that answers at once."""

    name = "quick"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        return ModelAnswer("the answer of the one who took over", model=self.name)


class Forgetful:
    """The lock of a disk that forgets the locks of those who sleep."""

    def acquire(self) -> None:
        """Succeed, whoever holds it."""

    def check(self) -> None:
        """Find nothing wrong."""

    def release(self) -> None:
        """Give back nothing."""


async def taken_over(home: Home) -> None:
    """Another runtime answers what the first one had in hand, and remembers it."""
    async with opened(home, SETTINGS, Quick(), Outside(lock=Forgetful())) as instance:
        [(message_id,)] = asked(home.store("buffer.db"), "SELECT id FROM message")
        with instance.hub.listening(message_id) as heard:
            await instance.start()
            async with asyncio.timeout(HANG_S):
                while (await heard.get()).kind != "settled":
                    pass
        await instance.recorder.catch_up(10)


def told(process: subprocess.Popen[str]) -> dict[str, object]:
    """The next line of a process."""
    assert process.stdout is not None
    line: dict[str, object] = json.loads(process.stdout.readline())
    return line


def test_an_owner_that_slept_while_another_took_over_writes_nothing(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    sleeper = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.suspended", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with sleeper:
        try:
            assert told(sleeper) == {"asked": True}
            sleeper.send_signal(signal.SIGSTOP)
            asyncio.run(taken_over(home))
            before = [rows_of(home.store(name)) for name in ("buffer.db", "memory.db")]
            sleeper.send_signal(signal.SIGCONT)
            assert sleeper.stdin is not None
            sleeper.stdin.write("\n")
            sleeper.stdin.flush()
            assert told(sleeper) == {"ended": "waiting", "why": TAKEN}
            assert sleeper.wait(HANG_S) == 0
        finally:
            sleeper.kill()
    assert [rows_of(home.store(name)) for name in ("buffer.db", "memory.db")] == before
    assert asked(home.store("buffer.db"), "SELECT text FROM reply") == [("the answer of the one who took over",)]
