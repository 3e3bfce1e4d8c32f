"""The contract of what a channel declares: it is asked for exactly that (`ChannelAbilities`), by replies and by people.

Subclass `AbilitiesContract` with a fixture `sending` and, for a channel that listens, `ConversationContract` with a
fixture `listening`: the channel beside a scripted provider. A channel that declares nothing is asked for little.
Source: spec channels, section 2, G8.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Protocol

import pytest

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.batch import Window
from keepsaid.domain.commits import TakeReplies
from keepsaid.domain.line import LineState
from keepsaid.domain.message import (
    EDITED,
    REACTION,
    STRANGER,
    Attachment,
    Content,
    Inbound,
    Lane,
    Origin,
    ProviderMarks,
    Trust,
    lane_key,
    topic_of,
)
from keepsaid.domain.pairing import Access, AccessRule, code_of
from keepsaid.domain.reply import Delivered, StoredReply
from keepsaid.errors import FileRefused, ToolError
from keepsaid.pipeline.admission import Admission
from keepsaid.pipeline.intake import IntakeLimits, MessageIntake
from keepsaid.pipeline.turn.commands import HELP
from keepsaid.ports.channel import (
    Channel,
    FileChannel,
    Incoming,
    PartedChannel,
    PreviewChannel,
    ReactingChannel,
    ReactionTarget,
    abilities_of,
)
from keepsaid.ports.runtime import Wakeups
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid.testing.listening_contract import ListeningCast, attending
from keepsaid.testing.providers.mischief import Mischief
from keepsaid.testing.sending_contract import HOSTILE_TEXTS, SendingCast, leaked, tried

_UNHEARD = (Mischief.FAIL_AFTER, Mischief.RESET_AFTER, Mischief.GARBLE)
_TRIES = 5
_LONG = "\n".join("a line of a long answer, in order" for _ in range(2_000))
_CHANCE = 4_711


class AbilitiesCast(SendingCast, Protocol):
    """A channel that sends, and what people see of it beside messages."""

    def typed(self) -> int:
        """How often people were shown that the agent types."""

    def typing_lane(self) -> Lane:
        """A lane in which typing can be shown, if the medium shows it anywhere, in a direct conversation."""

    def reply_in_topic(self, text: str) -> StoredReply | None:
        """A reply to a topic, thread or strand that exists; None on a medium without them."""

    def topics(self) -> Sequence[str]:
        """The topic of each message that arrived, as the provider names it, "" outside of any."""


class ConversationCast(ListeningCast, Protocol):
    """A channel that listens and sends. What is not declared is not asked for: no edits, no reactions."""

    @property
    def channel(self) -> Channel:
        """The channel as it sends."""

    def sent(self) -> Sequence[str]:
        """The texts that arrived, in order, as people read them."""

    def edit(self, text: str) -> None:
        """The person changes what they said last to the agent, directly."""

    def like(self, emoji: str) -> None:
        """The person gives their last direct message an emoji of Unicode, which may be 👍 or 🎉."""

    def agent_reactions(self) -> Sequence[str]:
        """The reactions of the agent, as the provider shows them to people, each once."""


class AbilitiesContract:
    """What every channel does with replies, as far as it declares that it can."""

    async def test_a_key_that_holds_for_ever_or_can_be_found_makes_one_message(self, sending: AbilitiesCast) -> None:
        """What arrived without an answer is sent again, and people see it once, without a mark."""
        can = abilities_of(sending.channel)
        if not (math.isinf(can.keyed_s) or can.findable):
            return
        for number, act in enumerate((act for act in _UNHEARD if act in sending.acts), start=1):
            before = len(sending.sent())
            sending.script(act)
            reply = sending.reply(f"word {number}", number)
            bodies = await sending.channel.split(reply) if isinstance(sending.channel, PartedChannel) else ()
            await tried(sending.channel, reply, bodies=bodies)
            for _ in range(_TRIES):
                [result] = await tried(sending.channel, reply, again=True, bodies=bodies)
                if result.outcome is Delivered.CONFIRMED:
                    break
            assert result.outcome is Delivered.CONFIRMED
            assert [text.strip() for text in sending.sent()[before:]] == [f"word {number}"]

    @pytest.mark.parametrize("name", HOSTILE_TEXTS)
    async def test_no_message_is_longer_than_declared(self, sending: AbilitiesCast, name: str) -> None:
        """In the unit of the medium (C22)."""
        can = abilities_of(sending.channel)
        if not can.chars_max:
            return
        results = await tried(sending.channel, sending.reply(HOSTILE_TEXTS[name]))
        assert {one.outcome for one in results} == {Delivered.CONFIRMED}
        assert max(map(can.size_of, sending.sent())) <= can.chars_max

    async def test_typing_is_shown_and_ends_with_the_answer(self, sending: AbilitiesCast) -> None:
        """Only where it is declared; nothing that follows the answer shows it (C12)."""
        can, channel = abilities_of(sending.channel), sending.channel
        await tried(channel, sending.reply("a word"))
        assert sending.typed() == 0
        if not can.typing_s:
            is_shown = isinstance(channel, PreviewChannel) and await channel.show_typing(sending.typing_lane())
            assert (is_shown, sending.typed()) == (False, 0)
            return
        assert isinstance(channel, PreviewChannel)
        assert channel.typing_ms == can.typing_s * 1_000
        assert await channel.show_typing(sending.typing_lane())
        assert sending.typed() == 1
        await tried(channel, sending.reply("another", 2))
        assert sending.typed() == 1

    async def test_an_unfinished_answer_is_shown_only_where_that_is_declared(self, sending: AbilitiesCast) -> None:
        """It never becomes a message (C13)."""
        channel = sending.channel
        shown = isinstance(channel, PreviewChannel) and await channel.show_draft(sending.typing_lane(), 7, "so far")
        assert shown == abilities_of(channel).streams
        assert sending.sent() == []

    async def test_files_are_fetched_only_where_that_is_declared(self, sending: AbilitiesCast) -> None:
        """What is not there is refused, or tried later: never an empty file."""
        channel: object = sending.channel
        assert isinstance(channel, FileChannel) == abilities_of(channel).files
        if not isinstance(channel, FileChannel):
            return
        account = sending.reply("a file?", 1).lane.account
        with pytest.raises(FileRefused):
            async with aclosing(channel.fetch(account, Attachment("nothing.bin", "", "no such file"))) as pieces:
                assert [piece async for piece in pieces] == [], "what is not there was fetched"

    async def test_a_reply_stays_in_its_topic(self, sending: AbilitiesCast) -> None:
        """With all of its parts (C8)."""
        reply = sending.reply_in_topic(_LONG)
        if reply is None:
            return
        results = await tried(sending.channel, reply)
        assert {one.outcome for one in results} == {Delivered.CONFIRMED}
        assert set(sending.topics()) == {topic_of(reply.lane)}

    async def test_help_is_the_same_words_everywhere(self, sending: AbilitiesCast) -> None:
        """No medium takes a command, or a mark in its text, for something else (C14)."""
        results = await tried(sending.channel, sending.reply(HELP))
        assert {one.outcome for one in results} == {Delivered.CONFIRMED}
        assert " ".join(sending.sent()).split() == HELP.split()


class ConversationContract:
    """What every channel does with edits, reactions and strangers, as far as it declares that it can."""

    async def begin(self, cast: ConversationCast) -> Incoming:
        """Listen, until a person has said something to the agent; returns it."""
        async with attending(cast) as line:
            await line.wait_for(LineState.UP)
            cast.say("first")
            await cast.inbox.wait_for(lambda: "first" in cast.inbox.texts)
        return cast.inbox.last

    async def test_an_edit_comes_as_one(self, listening: ConversationCast) -> None:
        """With the words of now, and the provider id of what it changes (C15)."""
        if not abilities_of(listening.channel).edits:
            return
        first = await self.begin(listening)
        async with attending(listening) as line:
            await line.wait_for(LineState.UP)
            listening.edit("not first")
            await listening.inbox.wait_for(lambda: len(listening.inbox.kept) == 2)
        edit = listening.inbox.last
        assert (edit.text, edit.event, edit.sender) == ("not first", EDITED, first.sender)
        assert (edit.provider_id, edit.conversation) == (first.provider_id, first.conversation)

    async def test_a_reaction_comes_as_one(self, listening: ConversationCast) -> None:
        """It answers the message that got it, has no provider id of its own, and is not talk (C16)."""
        if not abilities_of(listening.channel).reactions:
            return
        first = await self.begin(listening)
        async with attending(listening) as line:
            await line.wait_for(LineState.UP)
            listening.like("🎉")
            await listening.inbox.wait_for(lambda: len(listening.inbox.kept) == 2)
        like = listening.inbox.last
        assert (like.event, bool(like.text), like.sender) == (REACTION, True, first.sender)
        assert (like.reply_to, like.provider_id) == (first.provider_id, None)
        assert like.conversation == first.conversation

    async def test_a_reaction_is_given_once_however_often(self, listening: ConversationCast) -> None:
        """People see it once, and it does not come back to the agent (C11, C16)."""
        channel: object = listening.channel
        assert isinstance(channel, ReactingChannel) == abilities_of(channel).reactions
        if not isinstance(channel, ReactingChannel):
            return
        first = await self.begin(listening)
        async with attending(listening) as line:
            await line.wait_for(LineState.UP)
            for _ in range(2):
                await channel.react(_lane(listening, first), _target(first), "👍")
            listening.say("and on")
            await listening.inbox.wait_for(lambda: "and on" in listening.inbox.texts)
        assert len(listening.agent_reactions()) == 1
        assert [one.event for one in listening.inbox.kept.values()] == ["", ""]

    async def test_a_refused_reaction_is_for_the_model_to_read(
        self, listening: ConversationCast, caplog: pytest.LogCaptureFixture
    ) -> None:
        """What is not an emoji, a message that is not there, another account: a ToolError, without secrets."""
        channel: object = listening.channel
        if not isinstance(channel, ReactingChannel):
            return
        first = await self.begin(listening)
        lane, target = _lane(listening, first), _target(first)
        told = []
        with caplog.at_level(logging.DEBUG):
            for where, what, emoji in (
                (lane, target, "no emoji"),
                (lane, replace(target, provider_id="elsewhere"), "👍"),
                (lane._replace(account="another"), target, "👍"),
            ):
                with pytest.raises(ToolError) as refusal:
                    await channel.react(where, what, emoji)
                told.append(refusal.value.what)
        assert all(told)
        assert list(listening.agent_reactions()) == []
        assert leaked(listening.secrets, told, caplog) == []

    async def test_a_stranger_gets_a_code_where_they_wrote(self, listening: ConversationCast) -> None:
        """Pairing works by the channel alone: its messages say who wrote where, and the code arrives there (C9)."""
        name = listening.channel.name
        said = await self.begin(listening)
        store, clock, ids = InMemoryOperations(), VirtualClock(), CountingIds()
        rule = AccessRule(Access.PAIRED, Access.LISTED, frozenset())
        admission = Admission(store, clock, ids, Wakeups(), {name: rule}, lambda _bits: _CHANCE)
        stranger = await admission.admit(inbound_of(name, said))
        assert stranger.content.event == STRANGER
        intake = MessageIntake(store, clock, ids, {name: Window(0)}, IntakeLimits())
        await admission.send_code(stranger, await intake.receive(stranger))
        notices = await store.apply(TakeReplies((name,), "one", 9, clock.now_ms()))
        assert len(notices) == 1
        results = await tried(listening.channel, notices[0])
        assert {one.outcome for one in results} == {Delivered.CONFIRMED}
        assert f"keepsaid channel pair --owner {code_of(_CHANCE)}" in " ".join(" ".join(listening.sent()).split())


def _lane(cast: ConversationCast, one: Incoming) -> Lane:
    return Lane(cast.channel.name, one.account, one.conversation, lane_key(one.conversation, one.topic))


def _target(one: Incoming) -> ReactionTarget:
    return ReactionTarget(one.provider_id or "", one.sender, 1_750_000_000_000)


def inbound_of(channel: str, one: Incoming) -> Inbound:
    """A message as the runtime takes it from a channel."""
    origin = Origin(channel, one.account, one.conversation, one.sender, one.name, one.direct, Trust.KNOWN)
    content = Content(one.payload or b"", one.text, one.event)
    return Inbound(origin, content, ProviderMarks(one.external_id, one.provider_id, one.reply_to), topic=one.topic)
