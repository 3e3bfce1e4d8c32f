"""The contract of a channel that sends: what it does with a provider that fails, repeats, refuses and goes away.

Subclass `SendingContract` with a fixture `sending`: the channel beside a scripted provider. Source: spec channels,
section 2.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol

import pytest

from keepsaid.domain.reply import Delivered, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import ChannelError
from keepsaid.ports.channel import MAY_SEND, Channel, PartedChannel
from keepsaid.testing.providers.mischief import Mischief

_UNHEARD = (Mischief.FAIL_AFTER, Mischief.RESET_AFTER, Mischief.GARBLE)
"""What is done, though the one who asked cannot know it."""

_TRIES = 5

HOSTILE_TEXTS = {
    "100,000 characters": "word " * 20_000,
    "100,000 characters without a space": "x" * 100_000,
    "one cluster of emoji": "\U0001f468\u200d\U0001f469\u200d\U0001f467" * 3_000,
    "combining marks alone": "\u0301" * 5_000,
    "bidi overrides": "\u202eevil\u202d and \u2066isolated\u2069",
    "HTML": "<b>bold</b> & <script>alert(1)</script> &amp; <!channel> @everyone",
    "an open fence": "```python\n" + "x = 1\n" * 3_000,
    "marks": "*_~`|[](){}<>#+-.!\\" * 500,
    "white space": " \n\t \n",
}
"""Texts that a model may write, and that no channel may lose, or hang on."""


class SendingCast(Protocol):
    """A channel that sends, and its provider."""

    @property
    def channel(self) -> Channel:
        """The channel."""

    @property
    def acts(self) -> Collection[Mischief]:
        """What its provider may do with a message, beside accepting it."""

    @property
    def secrets(self) -> Collection[str]:
        """What nobody may read: tokens, keys, passwords."""

    def reply(self, text: str, number: int = 1) -> StoredReply:
        """A reply to a conversation that exists."""

    def script(self, *acts: Mischief) -> None:
        """What happens to the next messages; those after them are accepted."""

    def sent(self) -> Sequence[str]:
        """The texts that arrived, in order, as people read them: without marks of style."""

    def close_place(self) -> None:
        """Nobody can write to the conversation of the replies any more."""

    def cut_off(self) -> AbstractAsyncContextManager[Channel]:
        """The channel as it is while its provider cannot be reached at all."""


async def tried(
    channel: Channel, reply: StoredReply, *, again: bool = False, bodies: Sequence[str] = ()
) -> list[SendResult]:
    """Send a reply as the runtime does: part by part, until one does not arrive; marked if `again`.

    `bodies` are those of its parts, which are made once; without them they are made here.
    """
    if not isinstance(channel, PartedChannel):
        return [await channel.send(replace(reply, possible_duplicate=again))]
    results: list[SendResult] = []
    try:
        bodies = bodies or await channel.split(reply)
    except ChannelError as error:
        return [SendResult(Delivered.RETRY, error.what, outage=True)]
    for n, body in enumerate(bodies):
        results.append(await channel.send_part(reply, ReplyPart(reply.id, n, body, possible_duplicate=again)))
        if results[-1].outcome is not Delivered.CONFIRMED:
            break
    return results


def leaked(secrets: Collection[str], told: object, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The secrets that stand in a text, or in what the runtime logged; its libraries log nothing there."""
    logged = "\n".join(str(one.getMessage()) for one in caplog.records if one.name.startswith("keepsaid"))
    return [secret for secret in secrets if secret in f"{told} {logged}"]


class SendingContract:
    """What every channel does with a reply."""

    async def test_a_reply_arrives_once(self, sending: SendingCast) -> None:
        """It is confirmed, and the provider has it as it was written (C3)."""
        results = await tried(sending.channel, sending.reply("The code is 5512."))
        assert [one.outcome for one in results] == [Delivered.CONFIRMED]
        assert [text.strip() for text in sending.sent()] == ["The code is 5512."]

    @pytest.mark.parametrize("act", [act for act in Mischief if act is not Mischief.ACCEPT])
    async def test_what_is_told_of_a_try_is_true(self, sending: SendingCast, act: Mischief) -> None:
        """Confirmed is what arrived, and sent again without a mark only what did not (C4)."""
        if act not in sending.acts:
            return
        sending.script(act)
        [result] = await tried(sending.channel, sending.reply("a word"))
        arrived = len(sending.sent())
        assert result.outcome in (Delivered.CONFIRMED, Delivered.RETRY, Delivered.DOUBT)
        assert arrived == act.does
        if result.outcome is not Delivered.DOUBT:
            assert (result.outcome is Delivered.CONFIRMED) == bool(arrived)
        assert act is not Mischief.SLOW_DOWN or (result.outcome is Delivered.RETRY and result.retry_after_ms)

    async def test_a_repeat_is_marked_or_the_provider_folds_it(self, sending: SendingCast) -> None:
        """What arrived without an answer is sent again: people see one message, or one that says it repeats (C4)."""
        for number, act in enumerate((act for act in _UNHEARD if act in sending.acts), start=1):
            before = len(sending.sent())
            sending.script(act)
            reply = sending.reply(f"word {number}", number)
            bodies = await sending.channel.split(reply) if isinstance(sending.channel, PartedChannel) else ()
            [result] = await tried(sending.channel, reply, bodies=bodies)
            doubted = result.outcome is Delivered.DOUBT
            for _ in range(_TRIES):
                if result.outcome is not Delivered.CONFIRMED:
                    [result] = await tried(sending.channel, reply, again=doubted, bodies=bodies)
                    doubted = doubted or result.outcome is Delivered.DOUBT
            assert result.outcome is Delivered.CONFIRMED
            original, *repeats = sending.sent()[before:]
            assert original.strip() == f"word {number}"
            assert all(text.strip() != original.strip() and original in text for text in repeats)

    async def test_what_cannot_be_reached_costs_no_try(self, sending: SendingCast) -> None:
        """Nothing was sent: the reply waits, however long (C4)."""
        async with sending.cut_off() as channel:
            [result] = await tried(channel, sending.reply("a word"))
            assert result.outcome is Delivered.RETRY
        assert sending.sent() == []

    async def test_a_place_that_is_gone_is_not_replaced(self, sending: SendingCast) -> None:
        """The reply is dead, says why, and goes nowhere else (C5)."""
        sending.close_place()
        [result] = await tried(sending.channel, sending.reply("a word"))
        assert result.outcome in (Delivered.DEAD, Delivered.REFUSED)
        assert (sending.sent(), bool(result.detail)) == ([], True)

    async def test_a_process_that_was_frozen_sends_nothing(self, sending: SendingCast) -> None:
        """Others may have sent the reply meanwhile, so nothing leaves when it wakes."""
        reset = MAY_SEND.set(lambda: False)
        try:
            [result] = await tried(sending.channel, sending.reply("a word"))
        finally:
            MAY_SEND.reset(reset)
        assert result.outcome is not Delivered.CONFIRMED
        assert sending.sent() == []

    async def test_a_long_text_arrives_whole_and_in_order(self, sending: SendingCast) -> None:
        """Its parts, one after the other, have its words (C22)."""
        words = [f"word{n}" for n in range(6_000)]
        lines = "\n".join(" ".join(words[start : start + 12]) for start in range(0, len(words), 12))
        results = await tried(sending.channel, sending.reply(lines))
        assert {one.outcome for one in results} == {Delivered.CONFIRMED}
        assert " ".join(sending.sent()).split() == words

    @pytest.mark.parametrize("name", HOSTILE_TEXTS)
    async def test_no_text_is_refused_or_hangs(self, sending: SendingCast, name: str) -> None:
        """Whatever a model writes arrives, in parts that the provider takes (C22)."""
        async with asyncio.timeout(60):
            results = await tried(sending.channel, sending.reply(HOSTILE_TEXTS[name]))
        assert {one.outcome for one in results} == {Delivered.CONFIRMED}
        assert len(sending.sent()) >= 1

    async def test_no_secret_is_told(self, sending: SendingCast, caplog: pytest.LogCaptureFixture) -> None:
        """Neither a result nor the log has a token in it, whatever went wrong (C21)."""
        told = []
        with caplog.at_level(logging.DEBUG):
            for number, act in enumerate(sending.acts, start=1):
                sending.script(act)
                told += await tried(sending.channel, sending.reply("a word", number))
            async with sending.cut_off() as channel:
                told += await tried(channel, sending.reply("a word", 90))
            sending.close_place()
            told += await tried(sending.channel, sending.reply("a word", 91))
        assert leaked(sending.secrets, told, caplog) == []

    async def test_closing_twice_is_closing_once(self, sending: SendingCast) -> None:
        """It gives back its connections, and takes new ones if it is used again."""
        await sending.channel.close()
        await sending.channel.close()
