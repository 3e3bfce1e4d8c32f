"""Fetching on a virtual clock: how long what is not routed and what fails is waited for, and when it is given up."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.files import FileState
from keepsaid.domain.message import Attachment
from keepsaid.domain.reply import Sending, SendResult, StoredReply
from keepsaid.errors import ChannelError, FileUnavailable, KeepsaidError
from keepsaid.pipeline.fetching import FetchDeps, FetchTerms, FileFetcher
from keepsaid.testing.builders import CHANNEL, lane_of, said
from keepsaid.testing.clock import VirtualClock
from keepsaid_testkit.contracts.store_driver import StoreDriver


class Failing:
    """A channel that does not hand out files, for a reason; None hands them out."""

    name, sending = CHANNEL, Sending.PUSH

    def __init__(self, error: KeepsaidError | None = None) -> None:
        self.error = error
        self.asked = 0

    async def send(self, reply: StoredReply) -> SendResult:
        raise NotImplementedError(reply)

    async def close(self) -> None:
        """Nothing is open."""

    async def fetch(self, account: str, file: Attachment) -> AsyncGenerator[bytes, None]:
        self.asked += 1
        if self.error is not None:
            raise self.error
        yield f"{account} {file.ref}".encode()


class Stage:
    """A fetcher beside its store and clock."""

    def __init__(self, channel: Failing, *, is_full: bool = False) -> None:
        self.clock, self.store = VirtualClock(), InMemoryOperations()
        self.road, self.channel = StoreDriver(self.store), channel
        deps = FetchDeps(self.store, self.clock, asyncio.Event(), lambda: is_full)
        self.fetcher = FileFetcher(deps, {CHANNEL: channel}, FetchTerms())

    async def receive(self) -> int:
        """A message that brought a file; its id."""
        return (await self.road.receive(replace(said(), files=(Attachment("a.txt", "text/plain", "ref"),)))).id

    async def look(self) -> int | None:
        """Work, let what it began end, and return in how many milliseconds it looks again; None if nothing waits."""
        await self.fetcher.work()
        if begun := [task for task in asyncio.all_tasks() if task.get_name().startswith("fetch-")]:
            await asyncio.wait(begun)
        due = await self.fetcher.work()
        return None if due is None else due - self.clock.due_ms()


async def test_what_is_not_routed_is_looked_at_less_and_less_often() -> None:
    """Its conversation may be paused for days; once it is routed it is fetched."""
    stage = Stage(Failing())
    number = await stage.receive()
    waits = []
    for _ in range(10):
        waits.append((await stage.fetcher.work() or 0) - stage.clock.due_ms())
        await stage.clock.advance(waits[-1])
    assert waits == [20, 40, 80, 160, 320, 640, 1_280, 2_560, 5_000, 5_000]
    await stage.road.route(lane_of())
    assert await stage.look() is None
    assert await stage.store.files.content(number, 1) == b"me ref"


@pytest.mark.parametrize("error", [FileUnavailable("it is away"), ChannelError("it is \ud800 away")])
async def test_what_fails_is_tried_six_times_and_then_left(error: KeepsaidError) -> None:
    stage = Stage(Failing(error))
    number = await stage.receive()
    await stage.road.route(lane_of())
    waits = []
    while (wait := await stage.look()) is not None:
        waits.append(wait)
        await stage.clock.advance(wait)
    assert waits == [1_000, 4_000, 16_000, 64_000, 256_000]
    assert stage.channel.asked == 6
    [file] = await stage.store.files.of_messages((number,))
    assert file.state is FileState.LEFT
    assert file.reason.startswith("it could not be fetched: it is ")


async def test_a_provider_that_asks_to_wait_is_waited_for() -> None:
    stage = Stage(Failing(FileUnavailable("slowly", 900.0)))
    await stage.receive()
    await stage.road.route(lane_of())
    assert await stage.look() == 900_000
    stage.channel.error = None
    await stage.clock.advance(900_000)
    assert await stage.look() is None


async def test_on_a_full_disk_nothing_is_fetched() -> None:
    stage = Stage(Failing(), is_full=True)
    await stage.receive()
    await stage.road.route(lane_of())
    assert await stage.look() == 60_000
    assert stage.channel.asked == 0
