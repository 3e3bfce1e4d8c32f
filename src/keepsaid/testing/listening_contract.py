"""The contract of a channel that listens: nothing is lost or comes twice, whatever its provider and the disk do.

Subclass `ListeningContract` with a fixture `listening`: the channel beside a scripted provider. Source: spec channels,
section 2.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import NamedTuple, Protocol

import pytest

from keepsaid.domain.line import LineState
from keepsaid.domain.message import AUTOMATIC
from keepsaid.ports.extension import ListeningProvider
from keepsaid.testing.listening import LineLog, MemoryInbox, never, times
from keepsaid.testing.sending_contract import leaked


class ProviderTraits(NamedTuple):
    """What a provider is like.

    `ordered`: it hands over what was said in its order, also again. `keeps`: it keeps for the agent what was said
    before it listened for the first time. `groups`: people can write where others are; without, `say_in_group` is not
    called. `chars_max`: what a person can write in one message, 0 for any length. `ahead_ms_max`: by how much the clock
    of a sender may be ahead, milliseconds; what is further ahead is forged.
    """

    ordered: bool = True
    keeps: bool = False
    groups: bool = True
    chars_max: int = 0
    ahead_ms_max: int = 86_400_000


class ListeningCast(Protocol):
    """A channel that listens, and its provider. `say` may be used before `listener` and while it listens."""

    @property
    def inbox(self) -> MemoryInbox:
        """Where it hands over what was said."""

    @property
    def secrets(self) -> Collection[str]:
        """What nobody may read: tokens, keys, passwords."""

    @property
    def provider(self) -> ProviderTraits:
        """What the provider is like."""

    def listener(self, line: LineLog) -> AbstractAsyncContextManager[ListeningProvider]:
        """The channel as a new process has it; it ends with the block, and nothing of it is left."""

    def say(self, text: str) -> None:
        """A person writes to the agent, directly."""

    def say_in_group(self, text: str, *, addressed: bool) -> None:
        """A person writes where others are, and names the agent or does not."""

    def say_itself(self, text: str) -> None:
        """What the agent wrote comes back to it, as its provider shows it to everybody."""

    def garble(self) -> None:
        """Something comes that cannot be read."""

    def drop(self) -> None:
        """Every connection is lost."""

    def trouble(self, seed: int) -> None:
        """From now on requests and connections fail, by chance; 0 ends that."""

    def refuse(self, *, token: bool) -> None:
        """Whether the provider accepts the token no longer."""


@asynccontextmanager
async def attending(cast: ListeningCast, line: LineLog | None = None) -> AsyncIterator[LineLog]:
    """The channel listens while the block runs."""
    line = line or LineLog()
    async with cast.listener(line) as listener:
        task = asyncio.create_task(listener.listen(cast.inbox))
        try:
            yield line
            assert not task.done(), "a listener goes on, whatever happens"
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def in_order(cast: ListeningCast, texts: Sequence[str]) -> list[str]:
    """Texts as they are compared: where the provider has no order, in that of the alphabet."""
    return list(texts) if cast.provider.ordered else sorted(texts)


class ListeningContract:
    """What every channel does with the messages of people."""

    async def begin(self, cast: ListeningCast) -> None:
        """Listen for the first time, until a message has come: from then on none may be missed."""
        async with attending(cast) as line:
            await line.wait_for(LineState.UP)
            cast.say("first")
            await cast.inbox.wait_for(lambda: "first" in cast.inbox.texts)

    async def test_what_is_said_is_kept_once_and_in_order(self, listening: ListeningCast) -> None:
        """Thirty messages, with their sender, and a key each (C1, C7)."""
        await self.begin(listening)
        async with attending(listening):
            for number in range(30):
                listening.say(f"message {number}")
            await listening.inbox.wait_for(lambda: len(listening.inbox.kept) == 31)
        assert in_order(listening, listening.inbox.texts[1:]) == in_order(
            listening, [f"message {n}" for n in range(30)]
        )
        for one in listening.inbox.kept.values():
            assert (one.direct, bool(one.sender), bool(one.payload)) == (True, True, True)
        assert len({(one.account, one.conversation) for one in listening.inbox.kept.values()}) == 1

    async def test_what_was_said_before_the_first_start(self, listening: ListeningCast) -> None:
        """Nothing of a history is taken, but what the provider has kept for the agent (C19)."""
        listening.say("before")
        await self.begin(listening)
        assert ("before" in listening.inbox.texts) == listening.provider.keeps

    async def test_what_is_said_while_nobody_listens_comes_later(self, listening: ListeningCast) -> None:
        """Once and in order, after however many restarts (C1, C19)."""
        await self.begin(listening)
        for number in range(5):
            listening.say(f"message {number}")
        for _ in range(2):
            async with attending(listening) as line:
                await line.wait_for(LineState.UP)
                await listening.inbox.wait_for(lambda: len(listening.inbox.kept) >= 6)
        assert in_order(listening, listening.inbox.texts[1:]) == [f"message {number}" for number in range(5)]

    async def test_what_was_not_on_disk_comes_again(self, listening: ListeningCast) -> None:
        """A process that ends between hearing and keeping has told its provider nothing (C1)."""
        await self.begin(listening)
        async with attending(listening) as line:
            await line.wait_for(LineState.UP)
            listening.inbox.held = asyncio.Event()
            listening.inbox.entered.clear()
            listening.say("again")
            async with asyncio.timeout(30):
                await listening.inbox.entered.wait()
        listening.inbox.held = None
        assert "again" not in listening.inbox.texts
        async with attending(listening):
            await listening.inbox.wait_for(lambda: "again" in listening.inbox.texts)

    async def test_what_the_disk_refuses_comes_again(self, listening: ListeningCast) -> None:
        """Refused whole, or kept without its cursor: it is kept once (C1)."""
        await self.begin(listening)
        async with attending(listening) as line:
            await line.wait_for(LineState.UP)
            listening.inbox.refuses, listening.inbox.half_refuses = times(2), times(1)
            listening.say("again")
            await listening.inbox.wait_for(lambda: "again" in listening.inbox.texts)
            listening.say("and on")
            await listening.inbox.wait_for(lambda: "and on" in listening.inbox.texts)
        assert listening.inbox.texts == ["first", "again", "and on"]

    async def test_it_does_not_hear_itself(self, listening: ListeningCast) -> None:
        """What the agent said is not a message to it; at most it is kept as what is not to be answered (C11)."""
        await self.begin(listening)
        async with attending(listening):
            listening.say_itself("my own words")
            listening.say("yours")
            await listening.inbox.wait_for(lambda: "yours" in listening.inbox.texts)
        kept = [one.text for one in listening.inbox.kept.values() if one.event != AUTOMATIC]
        assert kept == ["first", "yours"]

    async def test_what_cannot_be_read_holds_up_nobody(self, listening: ListeningCast) -> None:
        """It is kept as it came, or nothing at all, and what follows comes in (C2)."""
        await self.begin(listening)
        async with attending(listening):
            listening.garble()
            listening.say("after it")
            await listening.inbox.wait_for(lambda: "after it" in listening.inbox.texts)
        assert all(one.payload for one in listening.inbox.kept.values() if not one.text)

    async def test_who_is_meant_in_a_group(self, listening: ListeningCast) -> None:
        """A mention that the provider marks addresses the agent, and nothing else does (C10)."""
        if not listening.provider.groups:
            return
        await self.begin(listening)
        async with attending(listening) as line:
            await line.wait_for(LineState.UP)
            listening.say_in_group("to the others", addressed=False)
            listening.say_in_group("to you", addressed=True)
            await listening.inbox.wait_for(lambda: len(listening.inbox.kept) == 3)
        _, others, you = listening.inbox.kept.values()
        assert [(one.direct, one.addressed) for one in (others, you)] == [(False, False), (False, True)]
        assert others.conversation == you.conversation

    async def test_a_lost_connection_loses_nothing(self, listening: ListeningCast) -> None:
        """It is made again, by itself (C18)."""
        await self.begin(listening)
        async with attending(listening) as line:
            await line.wait_for(LineState.UP)
            for number in range(3):
                listening.drop()
                listening.say(f"message {number}")
                await listening.inbox.wait_for(lambda n=number: f"message {n}" in listening.inbox.texts)  # type: ignore[misc]
        assert listening.inbox.texts == ["first", "message 0", "message 1", "message 2"]

    async def test_a_refused_token_is_shown_and_tried_again(
        self, listening: ListeningCast, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The line says so, without the token, and is up again once the token is accepted (C20, C21)."""
        await self.begin(listening)
        listening.refuse(token=True)
        with caplog.at_level(logging.DEBUG):
            async with attending(listening) as line:
                _, reason, _ = await line.wait_for(LineState.REFUSED)
                listening.say("meanwhile")
                listening.refuse(token=False)
                await listening.inbox.wait_for(lambda: "meanwhile" in listening.inbox.texts)
        assert reason
        assert leaked(listening.secrets, line.shown, caplog) == []

    @pytest.mark.parametrize("seed", [1, 2, 3])
    async def test_nothing_is_lost_or_comes_twice_whatever_goes_wrong(
        self, listening: ListeningCast, seed: int
    ) -> None:
        """Requests fail, connections end, the disk refuses and the process restarts, by chance (floors, section 11)."""
        await self.begin(listening)
        chance, inbox = random.Random(f"listening:{seed}"), listening.inbox  # noqa: S311 - repeatable, not secret
        listening.trouble(seed)
        inbox.refuses = lambda: chance.random() < 0.2
        inbox.half_refuses = lambda: chance.random() < 0.1
        for start in range(0, 24, 6):
            async with attending(listening):
                for number in range(start, start + 6):
                    listening.say(f"message {number}")
                    if chance.random() < 0.2:
                        listening.drop()
                if chance.random() < 0.5:
                    await inbox.wait_for(lambda n=start: f"message {n}" in inbox.texts)  # type: ignore[misc]
        listening.trouble(0)
        inbox.refuses = inbox.half_refuses = never
        async with attending(listening):
            await inbox.wait_for(lambda: len(inbox.kept) >= 25)
        assert in_order(listening, inbox.texts[1:]) == in_order(listening, [f"message {n}" for n in range(24)])
