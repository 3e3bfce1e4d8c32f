"""Messengers that are killed: each scripted provider as the plays see it: who says what where, and what was sent."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import ClassVar, Protocol, Self

from keepsaid.adapters.channels.nostr.keys import NostrKeys
from keepsaid.testing.providers.discord import DIRECT, GENERAL, GUILD, DiscordServer
from keepsaid.testing.providers.email_imap import ImapServer, mail_from
from keepsaid.testing.providers.email_smtp import PASSWORD, SmtpServer
from keepsaid.testing.providers.email_smtp import USER as ADDRESS
from keepsaid.testing.providers.matrix import TOKEN as MATRIX_TOKEN
from keepsaid.testing.providers.matrix import MatrixServer
from keepsaid.testing.providers.matrix_peer import MatrixPeer
from keepsaid.testing.providers.mischief import MischiefMaker, harmless
from keepsaid.testing.providers.nostr import NostrRelayServer
from keepsaid.testing.providers.nostr_people import NostrPerson, secret_of
from keepsaid.testing.providers.slack import APP_TOKEN, BOT_TOKEN, SlackServer
from keepsaid.testing.providers.telegram import TelegramServer


class _Server(Protocol):
    """What all scripted providers have."""

    mischief: MischiefMaker

    @property
    def calls(self) -> dict[str, int]: ...

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    async def wait_for(self, done: Callable[[], bool], within_s: float) -> None: ...


class Messenger:
    """A provider: its chats, how somebody writes in one, and the texts that the bot sent there."""

    name: ClassVar[str]
    chats: ClassVar[tuple[str, ...]]
    sending: ClassVar[str]
    """The method by which a message is sent, as its server counts it."""

    def __init__(self, server: _Server) -> None:
        self.server = server

    @property
    def variables(self) -> dict[str, str]:
        """The settings of the bot, as variables of the environment."""
        raise NotImplementedError

    def say(self, text: str, chat: str) -> None:
        """Somebody writes in a chat."""
        raise NotImplementedError

    def texts(self) -> Mapping[str, Sequence[str]]:
        """What was sent to each chat, in order."""
        raise NotImplementedError

    @property
    def requests(self) -> int:
        """How many requests came."""
        return sum(self.server.calls.values())

    @property
    def tries(self) -> int:
        """How often the bot tried to send a message."""
        return self.server.calls.get(self.sending, 0)

    async def wait_for_requests(self, count: int, within_s: float) -> None:
        """Wait until so many came."""
        await self.server.wait_for(lambda: self.requests >= count, within_s)

    async def wait_for_tries(self, count: int, within_s: float) -> None:
        """Wait until the bot tried so often to send a message."""
        await self.server.wait_for(lambda: self.tries >= count, within_s)

    def calm(self) -> None:
        """From now on nothing goes wrong."""
        self.server.mischief = harmless


class ScriptedTelegram(Messenger):
    """Three people, and a group."""

    name = "telegram"
    chats = ("7", "8", "9", "-50")
    sending = "sendMessage"

    def __init__(self, trouble: MischiefMaker) -> None:
        self.telegram = TelegramServer(mischief=trouble)
        super().__init__(self.telegram)

    @property
    def variables(self) -> dict[str, str]:
        return {"KEEPSAID_TELEGRAM__TOKEN": self.telegram.token, "KEEPSAID_TELEGRAM__API_URL": self.telegram.url}

    def say(self, text: str, chat: str) -> None:
        self.telegram.say(text, sender=abs(int(chat)), chat=int(chat))

    def texts(self) -> Mapping[str, Sequence[str]]:
        return {chat: [one.text for one in self.telegram.sent if str(one.chat) == chat] for chat in self.chats}


class ScriptedDiscord(Messenger):
    """A direct conversation, and two channels of a server."""

    name = "discord"
    chats = (DIRECT, GENERAL, "905")
    sending = "create message"

    def __init__(self, trouble: MischiefMaker) -> None:
        self.discord = DiscordServer(mischief=trouble)
        self.discord.messages.add_channel({"id": "905", "type": 0, "name": "other", "guild_id": GUILD})
        super().__init__(self.discord)

    @property
    def variables(self) -> dict[str, str]:
        return {"KEEPSAID_DISCORD__TOKEN": self.discord.token, "KEEPSAID_DISCORD__API_URL": self.discord.api_url}

    def say(self, text: str, chat: str) -> None:
        self.discord.say(text, channel=chat)

    def texts(self) -> Mapping[str, Sequence[str]]:
        return {chat: [one.text for one in self.discord.sent if one.channel == chat] for chat in self.chats}


class ScriptedSlack(Messenger):
    """Two direct messages, and two channels."""

    name = "slack"
    chats = ("D1", "D2", "C1", "C2")
    sending = "chat.postMessage"

    def __init__(self, trouble: MischiefMaker) -> None:
        self.slack = SlackServer(trouble)
        super().__init__(self.slack)

    @property
    def variables(self) -> dict[str, str]:
        place = f"{self.slack.url}/api"
        tokens = {"KEEPSAID_SLACK__BOT_TOKEN": BOT_TOKEN, "KEEPSAID_SLACK__APP_TOKEN": APP_TOKEN}
        return {**tokens, "KEEPSAID_SLACK__API_URL": place}

    def say(self, text: str, chat: str) -> None:
        self.slack.say(text, channel=chat)

    def texts(self) -> Mapping[str, Sequence[str]]:
        return {chat: [one.text for one in self.slack.sent if one.channel == chat] for chat in self.chats}


class _WithLists(NostrRelayServer):
    """A relay that knows where everybody reads."""

    def __init__(self, trouble: MischiefMaker, people: Sequence[NostrPerson]) -> None:
        super().__init__(trouble)
        self._people = people

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        for person in self._people:
            await self.store(person.relay_list(self.url))
        return self


class ScriptedNostr(Messenger):
    """Four people who write in private, at one relay."""

    name = "nostr"
    chats = ("ann", "bob", "eve", "joe")
    sending = "EVENT"

    def __init__(self, trouble: MischiefMaker) -> None:
        self._at_s = 0
        self._people = {name: NostrPerson(name, self._now_s) for name in self.chats}
        self.relay = _WithLists(trouble, list(self._people.values()))
        self._agent = NostrKeys(secret_of("agent")).public
        self._said: set[asyncio.Task[None]] = set()
        super().__init__(self.relay)

    @property
    def variables(self) -> dict[str, str]:
        relays = {"KEEPSAID_NOSTR__RELAYS": json.dumps([self.relay.url]), "KEEPSAID_NOSTR__LOOKUP_RELAYS": "[]"}
        return {"KEEPSAID_NOSTR__SECRET_KEY": secret_of("agent"), **relays}

    def _now_s(self) -> int:
        """The time of the next message: Nostr has whole seconds, and no order within one."""
        self._at_s = max(self._at_s + 1, int(time.time()))
        return self._at_s

    def say(self, text: str, chat: str) -> None:
        task = asyncio.ensure_future(self.relay.store(self._people[chat].write(text, self._agent)[1]))
        self._said.add(task)
        task.add_done_callback(self._said.discard)

    def texts(self) -> Mapping[str, Sequence[str]]:
        return {name: person.read_texts(self.relay) for name, person in self._people.items()}


class ScriptedMatrix(Messenger):
    """Three rooms of two, and one of three."""

    name = "matrix"
    chats = ("!ann:test", "!bob:test", "!eve:test", "!all:test")
    sending = "send"

    def __init__(self, trouble: MischiefMaker) -> None:
        self.matrix = MatrixServer(trouble)
        for room in self.chats[:3]:
            self.matrix.room(room, room.replace("!", "@"))
        self.matrix.room(self.chats[3], "@ann:test", "@bob:test")
        super().__init__(self.matrix)

    @property
    def variables(self) -> dict[str, str]:
        return {"KEEPSAID_MATRIX__TOKEN": MATRIX_TOKEN, "KEEPSAID_MATRIX__HOMESERVER": self.matrix.url}

    def say(self, text: str, chat: str) -> None:
        self.matrix.say(text, chat, "@ann:test" if chat == self.chats[3] else chat.replace("!", "@"))

    def texts(self) -> Mapping[str, Sequence[str]]:
        return {chat: [one.body for one in self.matrix.sent if one.room == chat] for chat in self.chats}


class EncryptedMatrix(ScriptedMatrix):
    """The same rooms, encrypted: everybody has a phone."""

    def __init__(self, trouble: MischiefMaker) -> None:
        super().__init__(trouble)
        for room in self.chats:
            self.matrix.room(room, encryption="m.megolm.v1.aes-sha2")
        self._phones = {
            user: MatrixPeer(self.matrix, user, "PHONE") for user in ("@ann:test", "@bob:test", "@eve:test")
        }

    def say(self, text: str, chat: str) -> None:
        self._phone(chat).say(text, chat)

    def texts(self) -> Mapping[str, Sequence[str]]:
        return {chat: self._phone(chat).texts(chat) for chat in self.chats}

    def _phone(self, chat: str) -> MatrixPeer:
        return self._phones["@ann:test" if chat == self.chats[3] else chat.replace("!", "@")]


class _MailServers:
    """Where mail is read and where it is sent, as one provider."""

    def __init__(self, trouble: MischiefMaker) -> None:
        self.imap, self.smtp = ImapServer(trouble, now_ms=lambda: int(time.time() * 1_000)), SmtpServer(trouble)

    @property
    def mischief(self) -> MischiefMaker:
        return self.smtp.mischief

    @mischief.setter
    def mischief(self, made: MischiefMaker) -> None:
        self.imap.mischief = self.smtp.mischief = made

    @property
    def calls(self) -> dict[str, int]:
        return {**self.imap.calls, **self.smtp.calls}

    async def __aenter__(self) -> Self:
        await self.imap.__aenter__()
        await self.smtp.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.smtp.__aexit__(kind, error, trace)
        await self.imap.__aexit__(kind, error, trace)

    async def wait_for(self, done: Callable[[], bool], within_s: float) -> None:
        waits = [asyncio.ensure_future(one.wait_for(done, within_s)) for one in (self.imap, self.smtp)]
        try:
            await next(asyncio.as_completed(waits))
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


class ScriptedEmail(Messenger):
    """Four people who write mail, each in one thread. Readers show mail with one Message-ID once."""

    name = "email"
    chats = ("ann@example.net", "bob@example.net", "eve@example.net", "joe@example.net")
    sending = "DATA"

    def __init__(self, trouble: MischiefMaker) -> None:
        self._servers = _MailServers(trouble)
        self._said = 0
        super().__init__(self._servers)

    @property
    def variables(self) -> dict[str, str]:
        imap = {"KEEPSAID_EMAIL__IMAP_HOST": "127.0.0.1", "KEEPSAID_EMAIL__IMAP_PORT": f"{self._servers.imap.port}"}
        smtp = {"KEEPSAID_EMAIL__SMTP_HOST": "127.0.0.1", "KEEPSAID_EMAIL__SMTP_PORT": f"{self._servers.smtp.port}"}
        login = {"KEEPSAID_EMAIL__ADDRESS": ADDRESS, "KEEPSAID_EMAIL__PASSWORD": PASSWORD}
        return {**imap, **smtp, **login, "KEEPSAID_EMAIL__TLS": "false", "KEEPSAID_EMAIL__REQUIRE_DMARC": "false"}

    def say(self, text: str, chat: str) -> None:
        self._said += 1
        thread = {"In_Reply_To": f"<{chat}>", "References": f"<{chat}>"}
        self._servers.imap.deliver(mail_from(chat, text, f"m{self._said}@example.net", "Re: parcels", **thread))

    def texts(self) -> Mapping[str, Sequence[str]]:
        first = {one.message_id: one for one in reversed(self._servers.smtp.sent)}
        sent = [one for one in self._servers.smtp.sent if first[one.message_id] is one]
        return {chat: [one.text for one in sent if one.recipient == chat] for chat in self.chats}


TROUBLE: Mapping[str, float] = {"email": 0.04}
"""The share of requests that fail, where it is not 15 %: a mailbox is read by five, and one that fails ends all."""

MESSENGERS: Mapping[str, Callable[[MischiefMaker], Messenger]] = {
    "telegram": ScriptedTelegram,
    "discord": ScriptedDiscord,
    "slack": ScriptedSlack,
    "nostr": ScriptedNostr,
    "matrix": ScriptedMatrix,
    "matrix encrypted": EncryptedMatrix,
    "email": ScriptedEmail,
}
"""Every provider by the name of its channel; Matrix twice."""
