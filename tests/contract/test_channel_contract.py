"""The contract of channels can fail: a channel that breaks a promise is found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from tests.contract.channel_casts import TelegramCast, telegram_account

from keepsaid.adapters.channels.telegram import TelegramChannel
from keepsaid.adapters.channels.telegram_line import TelegramLine
from keepsaid.adapters.channels.telegram_poll import TelegramPoll
from keepsaid.domain.line import Cursor
from keepsaid.domain.reply import Delivered, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.ports.channel import MAY_SEND, Incoming
from keepsaid.ports.extension import ListeningProvider
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.listening_contract import ListeningContract
from keepsaid.testing.providers.mischief import Mischief
from keepsaid.testing.providers.telegram import TOKEN
from keepsaid.testing.sending_contract import SendingContract


class Faulty(TelegramChannel):
    """A channel with one fault: what it does with a part."""

    fault: Callable[[Faulty, StoredReply, ReplyPart], Awaitable[SendResult]]

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        return await type(self).fault(self, reply, part)

    async def honest(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        return await TelegramChannel.send_part(self, reply, part)


async def _never_marks(channel: Faulty, reply: StoredReply, part: ReplyPart) -> SendResult:
    return await channel.honest(reply, replace(part, possible_duplicate=False))


async def _always_confirms(channel: Faulty, reply: StoredReply, part: ReplyPart) -> SendResult:
    return replace(await channel.honest(reply, part), outcome=Delivered.CONFIRMED)


async def _never_doubts(channel: Faulty, reply: StoredReply, part: ReplyPart) -> SendResult:
    result = await channel.honest(reply, part)
    return replace(result, outcome=Delivered.RETRY) if result.outcome is Delivered.DOUBT else result


async def _tells_its_token(channel: Faulty, reply: StoredReply, part: ReplyPart) -> SendResult:
    return replace(await channel.honest(reply, part), detail=f"bot{TOKEN}")


async def _wakes_and_sends(channel: Faulty, reply: StoredReply, part: ReplyPart) -> SendResult:
    MAY_SEND.set(lambda: True)
    return await channel.honest(reply, part)


async def _loses_the_last_word(channel: Faulty, reply: StoredReply, part: ReplyPart) -> SendResult:
    return await channel.honest(reply, replace(part, body=part.body.replace("word5999", "")))


_SENDING = SendingContract()


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (_never_marks, _SENDING.test_a_repeat_is_marked_or_the_provider_folds_it),
        (_always_confirms, lambda cast: _SENDING.test_what_is_told_of_a_try_is_true(cast, Mischief.DROP)),
        (_never_doubts, lambda cast: _SENDING.test_what_is_told_of_a_try_is_true(cast, Mischief.RESET_AFTER)),
        (_always_confirms, _SENDING.test_a_place_that_is_gone_is_not_replaced),
        (_wakes_and_sends, _SENDING.test_a_process_that_was_frozen_sends_nothing),
        (_loses_the_last_word, _SENDING.test_a_long_text_arrives_whole_and_in_order),
    ],
)
async def test_a_channel_that_sends_wrongly_is_found(
    fault: Callable[[Faulty, StoredReply, ReplyPart], Awaitable[SendResult]],
    check: Callable[[TelegramCast], Awaitable[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Faulty, "fault", fault, raising=False)
    async with TelegramCast(Faulty) as cast:
        with pytest.raises(AssertionError):
            await check(cast)


async def test_a_channel_that_tells_its_token_is_found(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Faulty, "fault", _tells_its_token, raising=False)
    async with TelegramCast(Faulty) as cast:
        with pytest.raises(AssertionError):
            await _SENDING.test_no_secret_is_told(cast, caplog)


class _Unsorted:
    """An inbox that is handed what comes from the last to the first."""

    def __init__(self, inbox: MemoryInbox) -> None:
        self._inbox = inbox
        self.put, self.cursors = inbox.put, inbox.cursors

    async def put_all(self, incoming: Sequence[Incoming], cursors: Sequence[Cursor] = ()) -> None:
        await self._inbox.put_all([*reversed(incoming)], cursors)


class _Keyless(_Unsorted):
    """An inbox that is handed messages under a new key each time."""

    count = 0

    async def put_all(self, incoming: Sequence[Incoming], cursors: Sequence[Cursor] = ()) -> None:
        for one in incoming:
            self.count += 1
            await self._inbox.put_all([replace(one, external_id=f"{id(self)}:{self.count}")], cursors)


class _FaultyCast(TelegramCast):
    """A bot whose listener hands over wrongly."""

    def __init__(self, handed: type[_Unsorted]) -> None:
        super().__init__()
        self._handed = handed

    @asynccontextmanager
    async def listener(self, line: LineLog) -> AsyncIterator[ListeningProvider]:
        account = telegram_account(self.telegram, self.inbox)
        poll, handed = TelegramPoll(account, TelegramLine(self.clock, line)), self._handed

        class Listener:
            async def listen(self, inbox: MemoryInbox) -> None:
                await poll.listen(handed(inbox))

        try:
            yield Listener()  # type: ignore[misc]
        finally:
            await account.api.close()


@pytest.mark.parametrize(
    ("handed", "check"),
    [
        (_Unsorted, ListeningContract().test_what_is_said_while_nobody_listens_comes_later),
        (_Keyless, ListeningContract().test_what_the_disk_refuses_comes_again),
    ],
)
async def test_a_channel_that_receives_wrongly_is_found(
    handed: type[_Unsorted], check: Callable[[TelegramCast], Awaitable[None]]
) -> None:
    async with _FaultyCast(handed) as cast:
        with pytest.raises(AssertionError):
            await check(cast)
