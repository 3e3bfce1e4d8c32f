"""Messengers that are killed: each scripted provider as the plays see it: who says what where, and what was sent."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any, Self

from nio.crypto.attachments import decrypt_attachment, encrypt_attachment
from tests.crash.messenger_base import Arrival, Messenger, ServerPair

from keepsaid.adapters.channels.nostr.keys import FILE, REACTION, NostrKeys
from keepsaid.testing.providers.discord import DIRECT, GENERAL, GUILD, DiscordServer
from keepsaid.testing.providers.email_imap import ImapServer, mail_from
from keepsaid.testing.providers.email_smtp import PASSWORD, SmtpServer
from keepsaid.testing.providers.email_smtp import USER as ADDRESS
from keepsaid.testing.providers.forms import UploadedFile
from keepsaid.testing.providers.matrix import TOKEN as MATRIX_TOKEN
from keepsaid.testing.providers.matrix import MatrixServer
from keepsaid.testing.providers.matrix_peer import MatrixPeer
from keepsaid.testing.providers.mischief import MischiefMaker
from keepsaid.testing.providers.nostr import NostrRelayServer
from keepsaid.testing.providers.nostr_files import NostrFileServer, opened_file
from keepsaid.testing.providers.nostr_people import NostrPerson, secret_of
from keepsaid.testing.providers.slack import APP_TOKEN, BOT_TOKEN, SlackServer
from keepsaid.testing.providers.telegram import TelegramServer


def arrival(text: str, *files: UploadedFile | None) -> Arrival:
    """A message that was sent, with the files that were uploaded for it."""
    return Arrival(text, tuple(one.content for one in files if one is not None))


class ScriptedTelegram(Messenger):
    """Three people, and a group."""

    name = "telegram"
    chats = ("7", "8", "9", "-50")
    sending = ("sendMessage", "sendPhoto", "sendDocument")

    def __init__(self, trouble: MischiefMaker) -> None:
        self.telegram = TelegramServer(mischief=trouble)
        super().__init__(self.telegram)

    @property
    def variables(self) -> dict[str, str]:
        return {"KEEPSAID_TELEGRAM__TOKEN": self.telegram.token, "KEEPSAID_TELEGRAM__API_URL": self.telegram.url}

    def say(self, text: str, chat: str) -> None:
        self.telegram.say(text, sender=abs(int(chat)), chat=int(chat))

    def send(self, text: str, chat: str, name: str, content: bytes) -> None:
        kind = "photo" if name.endswith(".png") else "document"
        self.telegram.send_file(kind, content, text, chat=int(chat), **({} if kind == "photo" else {"file_name": name}))

    @property
    def downloads(self) -> int:
        return sum(self.telegram.files.asked.values())

    def arrived(self) -> Mapping[str, Sequence[Arrival]]:
        sent = self.telegram.sent
        return {chat: [arrival(one.text, one.file) for one in sent if str(one.chat) == chat] for chat in self.chats}


class ScriptedDiscord(Messenger):
    """A direct conversation, and two channels of a server."""

    name = "discord"
    chats = (DIRECT, GENERAL, "905")
    sending = ("create message",)

    def __init__(self, trouble: MischiefMaker) -> None:
        self.discord = DiscordServer(mischief=trouble)
        self.discord.messages.add_channel({"id": "905", "type": 0, "name": "other", "guild_id": GUILD})
        super().__init__(self.discord)

    @property
    def variables(self) -> dict[str, str]:
        return {"KEEPSAID_DISCORD__TOKEN": self.discord.token, "KEEPSAID_DISCORD__API_URL": self.discord.api_url}

    def say(self, text: str, chat: str) -> None:
        self.discord.say(text, channel=chat)

    def send(self, text: str, chat: str, name: str, content: bytes) -> None:
        self.discord.send_file(content, text, channel=chat, filename=name)

    @property
    def downloads(self) -> int:
        return sum(self.discord.cdn.files.asked.values())

    def arrived(self) -> Mapping[str, Sequence[Arrival]]:
        sent = self.discord.sent
        return {chat: [arrival(one.text, *one.files) for one in sent if one.channel == chat] for chat in self.chats}


class ScriptedSlack(Messenger):
    """Two direct messages, and two channels."""

    name = "slack"
    chats = ("D1", "D2", "C1", "C2")
    sending = ("chat.postMessage", "upload", "files.completeUploadExternal")

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

    def send(self, text: str, chat: str, name: str, content: bytes) -> None:
        self.slack.send_file(content, text, channel=chat, name=name)

    @property
    def downloads(self) -> int:
        return sum(self.slack.uploads.files.asked.values())

    def arrived(self) -> Mapping[str, Sequence[Arrival]]:
        sent = self.slack.sent
        return {chat: [arrival(one.text, *one.files) for one in sent if one.channel == chat] for chat in self.chats}


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
    """Four people who write in private, at one relay; files are kept at a server of the agent."""

    name = "nostr"
    chats = ("ann", "bob", "eve", "joe")
    sending = ("EVENT", "PUT")
    hands_out = False

    def __init__(self, trouble: MischiefMaker) -> None:
        self._at_s = 0
        self._people = {name: NostrPerson(name, self._now_s) for name in self.chats}
        self.relay = _WithLists(trouble, list(self._people.values()))
        self._agent = NostrKeys(secret_of("agent")).public
        self._said: set[asyncio.Task[None]] = set()
        self._host = NostrFileServer(mischief=trouble)
        super().__init__(ServerPair(self.relay, self._host))

    @property
    def variables(self) -> dict[str, str]:
        relays = {"KEEPSAID_NOSTR__RELAYS": json.dumps([self.relay.url]), "KEEPSAID_NOSTR__LOOKUP_RELAYS": "[]"}
        relays["KEEPSAID_NOSTR__MEDIA_SERVERS"] = json.dumps([self._host.url])
        return {"KEEPSAID_NOSTR__SECRET_KEY": secret_of("agent"), **relays}

    def _now_s(self) -> int:
        """The time of the next message: Nostr has whole seconds, and no order within one."""
        self._at_s = max(self._at_s + 1, int(time.time()))
        return self._at_s

    def say(self, text: str, chat: str) -> None:
        task = asyncio.ensure_future(self.relay.store(self._people[chat].write(text, self._agent)[1]))
        self._said.add(task)
        task.add_done_callback(self._said.discard)

    def arrived(self) -> Mapping[str, Sequence[Arrival]]:
        return {name: self._read(person) for name, person in self._people.items()}

    def _read(self, person: NostrPerson) -> list[Arrival]:
        read = [one for one in person.read(self.relay) if one["kind"] != REACTION]
        return [
            Arrival("", (opened_file(self._host, one)[1],)) if one["kind"] == FILE else Arrival(str(one["content"]))
            for one in read
        ]


class ScriptedMatrix(Messenger):
    """Three rooms of two, and one of three."""

    name = "matrix"
    chats = ("!ann:test", "!bob:test", "!eve:test", "!all:test")
    sending = ("send", "upload")
    each, share = 8, 4

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
        self.matrix.say(text, chat, self._user(chat))

    def send(self, text: str, chat: str, name: str, content: bytes) -> None:
        told = self.matrix.media.attach(content, text, filename=name)
        self.matrix.send("m.room.message", chat, self._user(chat), told)

    @property
    def downloads(self) -> int:
        return len(self.matrix.media.paths)

    def arrived(self) -> Mapping[str, Sequence[Arrival]]:
        sent, kept = self.matrix.sent, self.matrix.media.files.contents
        return {
            chat: [
                Arrival(one.body, (kept[one.content["url"].rpartition("/")[2]],) if "url" in one.content else ())
                for one in sent
                if one.room == chat
            ]
            for chat in self.chats
        }

    def _user(self, chat: str) -> str:
        """Who writes in a room."""
        return "@ann:test" if chat == self.chats[3] else chat.replace("!", "@")


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
        self._phones[self._user(chat)].say(text, chat)

    def send(self, text: str, chat: str, name: str, content: bytes) -> None:
        sealed, keys = encrypt_attachment(content)
        kept = self.matrix.media.files.keep(sealed)
        info = {"mimetype": "application/octet-stream", "size": len(content)}
        told = {"msgtype": "m.file", "filename": name, "info": info, "file": {**keys, "url": f"mxc://test/{kept}"}}
        self._phones[self._user(chat)].say(text, chat, **told)

    def arrived(self) -> Mapping[str, Sequence[Arrival]]:
        return {chat: [self._opened(one) for one in self._phones[self._user(chat)].read(chat)] for chat in self.chats}

    def _opened(self, content: Mapping[str, Any]) -> Arrival:
        text = "" if content["body"] == content.get("filename") else str(content["body"])
        if (told := content.get("file")) is None:
            return Arrival(text)
        sealed = self.matrix.media.files.contents[str(told["url"]).rpartition("/")[2]]
        return Arrival(text, (decrypt_attachment(sealed, told["key"]["k"], told["hashes"]["sha256"], told["iv"]),))


class ScriptedEmail(Messenger):
    """Four people who write mail, each in one thread. Readers show mail with one Message-ID once."""

    name = "email"
    chats = ("ann@example.net", "bob@example.net", "eve@example.net", "joe@example.net")
    sending = ("DATA",)

    def __init__(self, trouble: MischiefMaker) -> None:
        self._imap = ImapServer(trouble, now_ms=lambda: int(time.time() * 1_000))
        self._smtp = SmtpServer(trouble)
        self._said = 0
        super().__init__(ServerPair(self._imap, self._smtp))

    @property
    def variables(self) -> dict[str, str]:
        imap = {"KEEPSAID_EMAIL__IMAP_HOST": "127.0.0.1", "KEEPSAID_EMAIL__IMAP_PORT": f"{self._imap.port}"}
        smtp = {"KEEPSAID_EMAIL__SMTP_HOST": "127.0.0.1", "KEEPSAID_EMAIL__SMTP_PORT": f"{self._smtp.port}"}
        login = {"KEEPSAID_EMAIL__ADDRESS": ADDRESS, "KEEPSAID_EMAIL__PASSWORD": PASSWORD}
        return {**imap, **smtp, **login, "KEEPSAID_EMAIL__TLS": "false", "KEEPSAID_EMAIL__REQUIRE_DMARC": "false"}

    def say(self, text: str, chat: str) -> None:
        self._imap.deliver(self._mail(text, chat).as_bytes())

    def send(self, text: str, chat: str, name: str, content: bytes) -> None:
        mail = self._mail(text, chat)
        mail.add_attachment(content, maintype="application", subtype="octet-stream", filename=name)
        self._imap.deliver(mail.as_bytes())

    def _mail(self, text: str, chat: str) -> EmailMessage:
        self._said += 1
        thread = {"In_Reply_To": f"<{chat}>", "References": f"<{chat}>"}
        raw = mail_from(chat, text, f"m{self._said}@example.net", "Re: parcels", **thread)
        return message_from_bytes(raw, policy=SMTP)

    def arrived(self) -> Mapping[str, Sequence[Arrival]]:
        first = {one.message_id: one for one in reversed(self._smtp.sent)}
        sent = [one for one in self._smtp.sent if first[one.message_id] is one]
        return {chat: [arrival(one.text, *one.files) for one in sent if one.recipient == chat] for chat in self.chats}


TROUBLE: Mapping[str, float] = {"email": 0.04}
"""The share of requests that fail, where it is not 15 %: a mailbox is read by five, and one that fails ends all."""

MESSENGERS: Mapping[
    str, type[ScriptedTelegram | ScriptedDiscord | ScriptedSlack | ScriptedNostr | ScriptedMatrix | ScriptedEmail]
] = {
    "telegram": ScriptedTelegram,
    "discord": ScriptedDiscord,
    "slack": ScriptedSlack,
    "nostr": ScriptedNostr,
    "matrix": ScriptedMatrix,
    "matrix encrypted": EncryptedMatrix,
    "email": ScriptedEmail,
}
"""Every provider by the name of its channel; Matrix twice."""
