"""The contract of what people may write to a channel: any text, to anything, by any clock; and none of it is lost.

Subclass `ReadingContract` with a fixture `listening`: the channel beside a scripted provider. Source: spec channels,
section 2, C2.
"""

from __future__ import annotations

import unicodedata
from typing import Protocol

import pytest

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import Window
from keepsaid.domain.line import LineState
from keepsaid.domain.message import EDITED
from keepsaid.pipeline.intake import IntakeLimits, MessageIntake
from keepsaid.ports.channel import Channel, Incoming, abilities_of
from keepsaid.testing.abilities_contract import inbound_of
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid.testing.listening_contract import ListeningCast, attending

_HOUR_MS = 3_600_000
_MAY_CHANGE = "\0?\ufffd\u034f"
"""NUL, and what replaces a surrogate, which UTF-8 cannot hold. Stores divide long runs of combining marks by U+034F."""

INCOMING_TEXTS = {
    "100,000 characters": "word " * 19_999 + "words",
    "100,000 characters without a space": "x" * 100_000,
    "one cluster of emoji": "\u200d".join(["\U0001f468"] * 400),
    "combining marks alone": "\u0301" * 5_000,
    "bidi overrides": "\u202eevil\u202d and \u2066isolated\u2069",
    "HTML": "<b>bold</b> & <script>alert(1)</script> &amp; <!channel> @everyone",
    "control characters": "a\x01\x1b[31mb\x7f",
    "NUL": "before\0after",
    "a lone surrogate": "before\ud83dafter",
    "an open fence": "```python\n" + "x = 1\n" * 300,
}
"""Texts that a person may write, and that come as they were written."""


class ReadingCast(ListeningCast, Protocol):
    """A channel that listens, and people who know no limits. `ahead_ms` is by how much the clock of the provider, and
    of the programs of people, is ahead.
    """

    ahead_ms: int

    @property
    def channel(self) -> Channel:
        """The channel as it sends."""

    def answer_unknown(self, text: str) -> None:
        """The person answers a message, directly, that nobody has."""

    def edit_unknown(self, text: str) -> None:
        """The person edits a direct message of theirs that never came; not called where the medium has no edits."""


class ReadingContract:
    """What every channel does with whatever people write."""

    async def begin(self, cast: ReadingCast) -> None:
        """Listen for the first time, until a message has come."""
        async with attending(cast) as line:
            await line.wait_for(LineState.UP)
            cast.say("first")
            await cast.inbox.wait_for(lambda: "first" in cast.inbox.texts)

    @pytest.mark.parametrize("name", INCOMING_TEXTS)
    async def test_any_text_comes_as_it_was_written(self, listening: ReadingCast, name: str) -> None:
        """It is stored, with the words of its writer, and holds up nothing (C2)."""
        text = INCOMING_TEXTS[name]
        if listening.provider.chars_max:
            text = text[: listening.provider.chars_max]
        await self.begin(listening)
        async with attending(listening) as line:
            await line.wait_for(LineState.UP)
            listening.say(text)
            listening.say("after it")
            await listening.inbox.wait_for(lambda: len(listening.inbox.kept) == 3)
        [kept] = [one for one in listening.inbox.kept.values() if one.text not in ("first", "after it")]
        assert _shown(await stored_text(listening, kept)) == _shown(text)

    async def test_white_space_alone_holds_up_nothing(self, listening: ReadingCast) -> None:
        """It may be no message at all."""
        await self.begin(listening)
        async with attending(listening) as line:
            await line.wait_for(LineState.UP)
            listening.say(" \n\t \n")
            listening.say("after it")
            await listening.inbox.wait_for(lambda: "after it" in listening.inbox.texts)

    async def test_an_answer_to_what_is_not_known_is_a_message(self, listening: ReadingCast) -> None:
        """With its words, in the conversation of its writer."""
        await self.begin(listening)
        async with attending(listening) as line:
            await line.wait_for(LineState.UP)
            listening.answer_unknown("to what?")
            await listening.inbox.wait_for(lambda: "to what?" in listening.inbox.texts)
        first, answer = listening.inbox.kept.values()
        assert (answer.conversation, answer.sender, answer.event) == (first.conversation, first.sender, "")
        assert await stored_text(listening, answer) == "to what?"

    async def test_an_edit_of_what_is_not_known_holds_up_nothing(self, listening: ReadingCast) -> None:
        """Where it is kept, it is kept as an edit: what it changed may have been read before (C15)."""
        if not abilities_of(listening.channel).edits:
            return
        await self.begin(listening)
        async with attending(listening) as line:
            await line.wait_for(LineState.UP)
            listening.edit_unknown("changed")
            listening.say("after it")
            await listening.inbox.wait_for(lambda: "after it" in listening.inbox.texts)
        edits = [one for one in listening.inbox.kept.values() if one.text not in ("first", "after it")]
        assert [(one.text, one.event) for one in edits] in ([], [("changed", EDITED)])
        assert [await stored_text(listening, one) for one in edits] == [one.text for one in edits]

    async def test_a_clock_in_the_future_costs_no_message(self, listening: ReadingCast) -> None:
        """What was said by it comes, and also what is said once it is right again, even while nobody listens."""
        await self.begin(listening)
        listening.ahead_ms = min(_HOUR_MS, listening.provider.ahead_ms_max)
        async with attending(listening) as line:
            await line.wait_for(LineState.UP)
            listening.say("from the future")
            await listening.inbox.wait_for(lambda: "from the future" in listening.inbox.texts)
        listening.ahead_ms = 0
        for number in range(3):
            listening.drop()
            listening.say(f"now {number}")
            async with attending(listening):
                await listening.inbox.wait_for(lambda n=number: f"now {n}" in listening.inbox.texts)  # type: ignore[misc]
        assert listening.inbox.texts == ["first", "from the future", "now 0", "now 1", "now 2"]


async def stored_text(cast: ReadingCast, one: Incoming) -> str:
    """The text of a message once it is stored. Raises InputError where it cannot be."""
    store, name = InMemoryOperations(), cast.channel.name
    intake = MessageIntake(store, VirtualClock(), CountingIds(), {name: Window(0)}, IntakeLimits())
    received = await intake.receive(inbound_of(name, one))
    story = await store.story(received.id)
    assert story is not None
    return story.message.text


def _shown(text: str) -> str:
    """A text without what may change on its way."""
    kept = (letter for letter in text if letter not in _MAY_CHANGE and not "\ud800" <= letter <= "\udfff")
    return unicodedata.normalize("NFC", "".join(kept)).replace("\r\n", "\n").strip()
