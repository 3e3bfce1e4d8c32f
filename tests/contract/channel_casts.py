"""Every channel beside its scripted provider, as the contract of channels plays with them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, ClassVar, Self

from tests.contract.email_provider_cast import EmailCast
from tests.contract.matrix_provider_cast import EncryptedMatrixCast, MatrixCast
from tests.contract.nostr_provider_cast import NostrCast
from tests.contract.people_casts import DiscordPeople, SlackPeople, TelegramPeople
from tests.contract.provider_cast import FAILS, QUICK, SPEED, ListeningProviderServer, ProviderCast, reply_in

from keepsaid.adapters.channels.discord import DiscordChannel
from keepsaid.adapters.channels.discord_api import DiscordApi
from keepsaid.adapters.channels.discord_gateway import DiscordGateway
from keepsaid.adapters.channels.discord_line import DiscordAccount, DiscordLine
from keepsaid.adapters.channels.discord_places import DiscordPlaces
from keepsaid.adapters.channels.pace import SendingPace
from keepsaid.adapters.channels.push import PushChannel
from keepsaid.adapters.channels.slack import SlackChannel
from keepsaid.adapters.channels.slack_api import SlackApi
from keepsaid.adapters.channels.slack_line import SlackAccount, SlackLine
from keepsaid.adapters.channels.slack_sockets import SlackSockets
from keepsaid.adapters.channels.telegram import TelegramChannel
from keepsaid.adapters.channels.telegram_api import TelegramApi
from keepsaid.adapters.channels.telegram_line import TelegramAccount, TelegramLine
from keepsaid.adapters.channels.telegram_poll import TelegramPoll
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.reply import StoredReply
from keepsaid.ports.channel import Channel
from keepsaid.ports.extension import ListeningProvider
from keepsaid.testing.clock import FastClock, VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.listening_contract import ProviderTraits
from keepsaid.testing.providers.discord import BOT, DIRECT, GENERAL, DiscordServer
from keepsaid.testing.providers.discord import TOKEN as DISCORD_TOKEN
from keepsaid.testing.providers.discord_messages import DiscordFault
from keepsaid.testing.providers.mischief import Mischief, harmless, mischief_of, one_after_the_other
from keepsaid.testing.providers.slack import ACCOUNT, APP_TOKEN, BOT_TOKEN, SlackError, SlackServer
from keepsaid.testing.providers.slack import BOT as SLACK_BOT
from keepsaid.testing.providers.slack_sockets import SocketAct, acts_of
from keepsaid.testing.providers.telegram import TOKEN, BadRequestError, TelegramServer
from keepsaid.testing.reply_receiver import (
    ACCEPT,
    ACCEPT_THEN_RESET,
    DROP,
    ReceiverReaction,
    ReplyReceiver,
    refuse,
    scripted,
)

_BACKSLASHED = re.compile(r"\\(_|[^\w\s])")


class PushCast(ProviderCast):
    """Replies posted to a URL, whose receiver folds what comes again under its key."""

    acts = (Mischief.DROP, Mischief.FAIL, Mischief.RESET_AFTER, Mischief.SLOW_DOWN, Mischief.GARBLE)
    secrets = ("token-in-the-url",)
    _REACTIONS: ClassVar[Mapping[Mischief, ReceiverReaction]] = {
        Mischief.DROP: DROP,
        Mischief.FAIL: refuse(500),
        Mischief.RESET_AFTER: ACCEPT_THEN_RESET,
        Mischief.SLOW_DOWN: refuse(429, "1"),
        Mischief.GARBLE: ReceiverReaction(body=b"<html>gateway</html>"),
    }

    def __init__(self) -> None:
        self.receiver = ReplyReceiver()
        self.server: ListeningProviderServer = self.receiver

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        self.channel: Channel = PushChannel("http", [self.receiver.host])
        return self

    def reply(self, text: str, number: int = 1) -> StoredReply:
        lane = Lane("http", "default", "http:chat:42", "root:http:chat:42")
        return reply_in(lane, text, number, 0, f"{self.receiver.url}?key={self.secrets[0]}")

    def script(self, *acts: Mischief) -> None:
        start = self.receiver.connections
        reactions = [ACCEPT] * start + [self._REACTIONS[act] for act in acts]
        self.receiver.react = scripted(*reactions)

    def sent(self) -> Sequence[str]:
        texts: dict[str, str] = {}
        for posted in self.receiver.accepted:
            assert posted.possible_duplicate or posted.key not in texts, "a repeat says so"
            texts[posted.key] = str(posted.json["text"])
        return list(texts.values())

    def close_place(self) -> None:
        self.receiver.react = lambda _number: refuse(410)


def telegram_account(telegram: TelegramServer, inbox: MemoryInbox) -> TelegramAccount:
    """The scripted bot, as a process has it."""
    return TelegramAccount(TelegramApi(TOKEN, telegram.url), TOKEN.partition(":")[0], inbox)


class TelegramCast(TelegramPeople):
    """A bot of Telegram, by long polls."""

    acts = upload_acts = FAILS
    secrets = (TOKEN.partition(":")[2],)
    provider = ProviderTraits(keeps=True)

    def __init__(self, make: type[TelegramChannel] = TelegramChannel) -> None:
        self._make = make
        self.telegram = TelegramServer()
        self.server: ListeningProviderServer = self.telegram
        self.clock = FastClock(SPEED)
        self.inbox = MemoryInbox()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        pace = SendingPace(self.clock, QUICK, QUICK)
        self.channel: Channel = self._make(telegram_account(self.telegram, self.inbox), pace, self.upload)
        return self

    def reply(self, text: str, number: int = 1) -> StoredReply:
        lane = Lane("telegram", TOKEN.partition(":")[0], "telegram:chat:7", lane_key("telegram:chat:7"))
        return reply_in(lane, text, number, 0)

    def script(self, *acts: Mischief) -> None:
        self.telegram.mischief = one_after_the_other(*acts, method="sendMessage")

    def sent(self) -> Sequence[str]:
        return [one.text for one in self.telegram.sent]

    def close_place(self) -> None:
        self.telegram.gone[7] = BadRequestError(403, "Forbidden: bot was blocked by the user")

    @asynccontextmanager
    async def listener(self, line: LineLog) -> AsyncIterator[ListeningProvider]:
        account = telegram_account(self.telegram, self.inbox)
        try:
            yield TelegramPoll(account, TelegramLine(self.clock, line))
        finally:
            await account.api.close()

    def say(self, text: str) -> None:
        self.last = self.telegram.say(text)

    def say_in_group(self, text: str, *, addressed: bool) -> None:
        name: dict[str, Any] = {"entities": [{"type": "mention", "offset": 0, "length": 13}]} if addressed else {}
        self.telegram.say(f"@scripted_bot {text}" if addressed else text, chat=-50, **name)

    def say_itself(self, text: str) -> None:
        bot: dict[str, Any] = {"from": {"id": 4711, "is_bot": True, "first_name": "Bot"}}
        self.telegram.say(text, **bot)

    def garble(self) -> None:
        self.telegram.update(message={"message_id": "not a number", "chat": 5})

    def drop(self) -> None:
        self.telegram.drop()

    def trouble(self, seed: int) -> None:
        self.telegram.mischief = mischief_of(seed, 0.2) if seed else harmless

    def refuse(self, *, token: bool) -> None:
        self.telegram.token = "4711:another" if token else TOKEN


class DiscordCast(DiscordPeople):
    """A bot of Discord, by its gateway."""

    acts = upload_acts = FAILS
    secrets = (DISCORD_TOKEN,)
    provider = ProviderTraits()

    def __init__(self) -> None:
        self.clock = FastClock(SPEED)
        self.discord = DiscordServer(now_ms=lambda: self.clock.now_ms() + self.ahead_ms)
        self.discord.messages.rate = (1_000_000, 1.0)
        self.discord.messages.nonce_ms = 86_400_000
        self.server: ListeningProviderServer = self.discord
        self.inbox = MemoryInbox()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        api, sends_at = self._api(), VirtualClock(self.clock.now_ms())
        pace = SendingPace(sends_at, QUICK, QUICK)
        self.channel: Channel = DiscordChannel(api, pace, DiscordPlaces(api, BOT), sends_at, self.upload)
        return self

    def _api(self) -> DiscordApi:
        return DiscordApi(DISCORD_TOKEN, self.clock, self.discord.api_url)

    def reply(self, text: str, number: int = 1) -> StoredReply:
        lane = Lane("discord", BOT, f"discord:{GENERAL}", lane_key(f"discord:{GENERAL}"))
        return reply_in(lane, text, number, self.clock.now_ms())

    def script(self, *acts: Mischief) -> None:
        self.discord.mischief = one_after_the_other(*acts, method="create message")

    def sent(self) -> Sequence[str]:
        return [_BACKSLASHED.sub(r"\1", one.text) for one in self.discord.sent]

    def close_place(self) -> None:
        self.discord.messages.gone[GENERAL] = DiscordFault(404, 10_003, "Unknown Channel")

    @asynccontextmanager
    async def listener(self, line: LineLog) -> AsyncIterator[ListeningProvider]:
        api = self._api()
        try:
            yield DiscordGateway(DiscordAccount(api, BOT), DiscordPlaces(api, BOT), DiscordLine(self.clock, line))
        finally:
            await api.close()

    def say(self, text: str) -> None:
        self.last = self.discord.say(text, channel=DIRECT)

    def say_in_group(self, text: str, *, addressed: bool) -> None:
        named: dict[str, Any] = (
            {"mentions": [{"id": BOT, "username": "scripted_bot", "bot": True}]} if addressed else {}
        )
        self.discord.say(f"<@{BOT}> {text}" if addressed else text, channel=GENERAL, **named)

    def say_itself(self, text: str) -> None:
        self.discord.say(text, channel=DIRECT, author={"id": BOT, "username": "scripted_bot", "bot": True})

    def garble(self) -> None:
        self.discord.gateway.dispatch("MESSAGE_CREATE", {"id": "1", "channel_id": 7, "author": "nobody"})

    def drop(self) -> None:
        self.discord.gateway.drop()

    def trouble(self, seed: int) -> None:
        self.discord.mischief = mischief_of(seed, 0.2) if seed else harmless

    def refuse(self, *, token: bool) -> None:
        self.discord.token = "another" if token else DISCORD_TOKEN


class SlackCast(SlackPeople):
    """An app of Slack, by Socket Mode. Slack has no order between two sockets."""

    acts = FAILS
    secrets = (BOT_TOKEN, APP_TOKEN)
    provider = ProviderTraits(ordered=False)

    def __init__(self) -> None:
        self.clock = FastClock(SPEED)
        self.slack = SlackServer(now_ms=lambda: self.clock.now_ms() + self.ahead_ms)
        self.slack.sockets.resend_s = 0.05
        self.server: ListeningProviderServer = self.slack
        self.inbox = MemoryInbox()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        pace = SendingPace(self.clock, QUICK, QUICK)
        self.channel: Channel = SlackChannel(SlackAccount(self._api(), ACCOUNT), pace, self.upload)
        return self

    def _api(self) -> SlackApi:
        return SlackApi(BOT_TOKEN, APP_TOKEN, f"{self.slack.url}/api")

    def reply(self, text: str, number: int = 1) -> StoredReply:
        lane = Lane("slack", ACCOUNT, "slack:C1", lane_key("slack:C1"))
        return reply_in(lane, text, number, self.clock.now_ms())

    def script(self, *acts: Mischief) -> None:
        self.slack.mischief = one_after_the_other(*acts, method="chat.postMessage")

    def sent(self) -> Sequence[str]:
        return [one.text for one in self.slack.sent]

    def close_place(self) -> None:
        self.slack.errors["C1"] = SlackError("channel_not_found")

    @asynccontextmanager
    async def listener(self, line: LineLog) -> AsyncIterator[ListeningProvider]:
        api = self._api()
        try:
            yield SlackSockets(SlackAccount(api, ACCOUNT), SlackLine(self.clock, line))
        finally:
            await api.close()

    def say(self, text: str) -> None:
        written = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        self.last = self.slack.say(written, channel="D1")

    def say_in_group(self, text: str, *, addressed: bool) -> None:
        self.slack.say(f"<@{SLACK_BOT}> {text}" if addressed else text, channel="C1")

    def say_itself(self, text: str) -> None:
        self.slack.say(text, user=SLACK_BOT, channel="D1", bot_id="B0BOT", app_id="A0APP")

    def garble(self) -> None:
        self.slack.emit({"type": "message", "ts": "4.5", "user": "U7", "text": "where?"})

    def drop(self) -> None:
        self.slack.sockets.drop()

    def trouble(self, seed: int) -> None:
        self.slack.mischief = mischief_of(seed, 0.2) if seed else harmless
        self.slack.sockets.act = acts_of(seed) if seed else lambda _number: SocketAct.DELIVER

    def refuse(self, *, token: bool) -> None:
        self.slack.app_token, self.slack.bot_token = ("another", "other") if token else (APP_TOKEN, BOT_TOKEN)


SENDING: Mapping[str, Callable[[], AbstractAsyncContextManager[object]]] = {
    "http": PushCast,
    "telegram": TelegramCast,
    "discord": DiscordCast,
    "slack": SlackCast,
    "nostr": NostrCast,
    "matrix": MatrixCast,
    "matrix encrypted": EncryptedMatrixCast,
    "email": EmailCast,
}
LISTENING: Mapping[str, Callable[[], AbstractAsyncContextManager[object]]] = {
    "telegram": TelegramCast,
    "discord": DiscordCast,
    "slack": SlackCast,
    "nostr": NostrCast,
    "matrix": MatrixCast,
    "matrix encrypted": EncryptedMatrixCast,
    "email": EmailCast,
}
