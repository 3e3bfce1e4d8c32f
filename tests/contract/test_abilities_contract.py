"""The contract of abilities can fail: a channel that does less than it declares is found, and one that does more."""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest
from tests.contract.channel_casts import DiscordCast, TelegramCast, telegram_account

from keepsaid.adapters.channels.abilities import DISCORD, TELEGRAM
from keepsaid.adapters.channels.discord import DiscordChannel
from keepsaid.adapters.channels.telegram import TelegramChannel
from keepsaid.adapters.channels.telegram_line import TelegramLine
from keepsaid.adapters.channels.telegram_poll import TelegramPoll
from keepsaid.domain.line import Cursor
from keepsaid.domain.message import REACTION, Attachment, Lane
from keepsaid.domain.reply import Sending, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import ToolError
from keepsaid.ports.channel import InboundSink, Incoming, ReactionTarget
from keepsaid.ports.extension import ListeningProvider
from keepsaid.testing.abilities_contract import AbilitiesContract, ConversationContract
from keepsaid.testing.listening import LineLog

_SENDING, _TALKING = AbilitiesContract(), ConversationContract()
_LONG = "100,000 characters"


class KeyedForEver(TelegramChannel):
    """Declares that the medium folds repeats, which it does not."""

    abilities = replace(TELEGRAM, keyed_s=math.inf)


class Findable(TelegramChannel):
    """Declares that it looks for what arrived."""

    abilities = replace(TELEGRAM, findable=True)


class Shorter(TelegramChannel):
    """Declares less than it puts in a message."""

    abilities = replace(TELEGRAM, chars_max=1_000)


class Unseen(TelegramChannel):
    """Says that typing is shown, and shows nothing."""

    async def show_typing(self, lane: Lane) -> bool:
        return bool(lane)


class Untyped(TelegramChannel):
    """Shows typing, and does not declare it."""

    abilities = replace(TELEGRAM, typing_s=0.0)


class Fetching(TelegramChannel):
    """Fetches files, and does not declare it."""

    abilities = replace(TELEGRAM, files=False)


class Empty(TelegramChannel):
    """Takes what is not there for an empty file."""

    async def fetch(self, account: str, file: Attachment) -> AsyncGenerator[bytes, None]:
        for piece in (b"", file.ref.encode()[:0]) if account else ():
            yield piece


class StillTyping(TelegramChannel):
    """Shows that it types when it has sent its answer."""

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        result = await super().send_part(reply, part)
        await self.show_typing(reply.lane)
        return result


class Undeclared(TelegramChannel):
    """Shows unfinished answers, and does not declare it."""

    abilities = replace(TELEGRAM, streams=False)


class Drafted(TelegramChannel):
    """Sends an unfinished answer as a message."""

    async def show_draft(self, lane: Lane, number: int, text: str) -> bool:
        await self._api.call("sendMessage", {"chat_id": 7, "text": text})
        return bool(lane) and number > 0


class Astray(TelegramChannel):
    """Sends the parts after the first outside of their topic."""

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        body = part.body.replace("message_thread_id", "thread") if part.n else part.body
        return await super().send_part(reply, replace(part, body=body))


class Wordless(TelegramChannel):
    """Takes what stands between two signs for a mark."""

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        return await super().send_part(reply, replace(part, body=part.body.replace("/help", "")))


class Unreacting(TelegramChannel):
    """Gives no reaction, and says nothing."""

    async def react(self, lane: Lane, target: ReactionTarget, emoji: str) -> None:
        with suppress(ToolError):
            await super().react(lane, target, "" if emoji == "no emoji" else emoji)


class NoReactions(TelegramChannel):
    """Can react, and does not declare it."""

    abilities = replace(TELEGRAM, reactions=False)


class _ReactsAnew:
    """A channel that gives another emoji each time."""

    name = "discord"
    sending = Sending.PUSH
    abilities = DISCORD

    def __init__(self, channel: DiscordChannel) -> None:
        self._channel = channel
        self._emoji = ["🎉", "👍"]
        self.send, self.close = channel.send, channel.close

    async def react(self, lane: Lane, target: ReactionTarget, emoji: str) -> None:
        await self._channel.react(lane, target, self._emoji.pop() if emoji else emoji)


@pytest.mark.parametrize(
    ("made", "check"),
    [
        (KeyedForEver, _SENDING.test_a_key_that_holds_for_ever_or_can_be_found_makes_one_message),
        (Findable, _SENDING.test_a_key_that_holds_for_ever_or_can_be_found_makes_one_message),
        (Shorter, lambda cast: _SENDING.test_no_message_is_longer_than_declared(cast, _LONG)),
        (Unseen, _SENDING.test_typing_is_shown_and_ends_with_the_answer),
        (Untyped, _SENDING.test_typing_is_shown_and_ends_with_the_answer),
        (Fetching, _SENDING.test_files_are_fetched_only_where_that_is_declared),
        (Empty, _SENDING.test_files_are_fetched_only_where_that_is_declared),
        (StillTyping, _SENDING.test_typing_is_shown_and_ends_with_the_answer),
        (Undeclared, _SENDING.test_an_unfinished_answer_is_shown_only_where_that_is_declared),
        (Drafted, _SENDING.test_an_unfinished_answer_is_shown_only_where_that_is_declared),
        (Astray, _SENDING.test_a_reply_stays_in_its_topic),
        (Wordless, _SENDING.test_help_is_the_same_words_everywhere),
        (NoReactions, _TALKING.test_a_reaction_is_given_once_however_often),
    ],
)
async def test_a_channel_that_does_not_what_it_declares_is_found(
    made: type[TelegramChannel], check: Callable[[TelegramCast], Awaitable[None]]
) -> None:
    async with TelegramCast(made) as cast:
        with pytest.raises(AssertionError):
            await check(cast)


async def test_a_channel_that_hides_a_refusal_is_found(caplog: pytest.LogCaptureFixture) -> None:
    async with TelegramCast(Unreacting) as cast:
        with pytest.raises(pytest.fail.Exception):
            await _TALKING.test_a_refused_reaction_is_for_the_model_to_read(cast, caplog)


Change = Callable[[Incoming], Incoming]


class _Changed:
    """An inbox that is handed what a listener made of a message."""

    def __init__(self, inbox: InboundSink, change: Change) -> None:
        self._inbox, self._change = inbox, change
        self.put, self.cursors = inbox.put, inbox.cursors

    async def put_all(self, incoming: Sequence[Incoming], cursors: Sequence[Cursor] = ()) -> None:
        await self._inbox.put_all([self._change(one) for one in incoming], cursors)


class _ChangingCast(TelegramCast):
    """A bot whose listener makes something else of what comes."""

    def __init__(self, change: Change) -> None:
        super().__init__()
        self._change = change

    @asynccontextmanager
    async def listener(self, line: LineLog) -> AsyncIterator[ListeningProvider]:
        account = telegram_account(self.telegram, self.inbox)
        poll, change = TelegramPoll(account, TelegramLine(self.clock, line)), self._change

        class Listener:
            async def listen(self, inbox: InboundSink) -> None:
                await poll.listen(_Changed(inbox, change))

        try:
            yield Listener()
        finally:
            await account.api.close()


def _talk(one: Incoming) -> Incoming:
    return replace(one, event="")


def _without_target(one: Incoming) -> Incoming:
    return replace(one, reply_to=None)


def _new_message(one: Incoming) -> Incoming:
    return replace(one, provider_id=one.external_id)


def _in_a_group(one: Incoming) -> Incoming:
    return replace(one, direct=False)


class _Echoing(TelegramCast):
    """A bot to which its own reactions come back."""

    def agent_reactions(self) -> Sequence[str]:
        self.inbox.kept["echo"] = replace(self.inbox.last, event=REACTION, text="👍")
        return super().agent_reactions()


_WRONG: Mapping[str, tuple[Change, Callable[[TelegramCast], Awaitable[None]]]] = {
    "an edit as talk": (_talk, _TALKING.test_an_edit_comes_as_one),
    "an edit as another message": (_new_message, _TALKING.test_an_edit_comes_as_one),
    "a reaction as talk": (_talk, _TALKING.test_a_reaction_comes_as_one),
    "a reaction to nothing": (_without_target, _TALKING.test_a_reaction_comes_as_one),
    "a direct chat as a group": (_in_a_group, _TALKING.test_a_stranger_gets_a_code_where_they_wrote),
}


@pytest.mark.parametrize("name", _WRONG)
async def test_a_channel_that_takes_people_for_something_else_is_found(name: str) -> None:
    change, check = _WRONG[name]
    async with _ChangingCast(change) as cast:
        with pytest.raises(AssertionError):
            await check(cast)


async def test_a_channel_that_hears_its_own_reactions_is_found() -> None:
    async with _Echoing() as cast:
        with pytest.raises(AssertionError):
            await _TALKING.test_a_reaction_is_given_once_however_often(cast)


async def test_a_channel_that_reacts_twice_is_found() -> None:
    async with DiscordCast() as cast:
        honest = cast.channel
        assert isinstance(honest, DiscordChannel)
        cast.channel = _ReactsAnew(honest)
        with pytest.raises(AssertionError):
            await _TALKING.test_a_reaction_is_given_once_however_often(cast)
