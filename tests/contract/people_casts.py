"""People beside a scripted provider: they edit and react, and see typing, reactions and topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.contract.provider_cast import FAILS, ProviderCast, reply_in

from keepsaid.adapters.channels.nostr.keys import REACTION, NostrKeys
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.reply import StoredReply
from keepsaid.testing.clock import FastClock
from keepsaid.testing.providers.discord import BOT, DIRECT, GENERAL, DiscordServer
from keepsaid.testing.providers.matrix import MatrixServer
from keepsaid.testing.providers.matrix_rooms import USER
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other
from keepsaid.testing.providers.nostr import NostrRelayServer
from keepsaid.testing.providers.nostr_files import NostrFileServer, opened_file
from keepsaid.testing.providers.nostr_people import NostrPerson
from keepsaid.testing.providers.slack import ACCOUNT, SlackServer
from keepsaid.testing.providers.telegram import TOKEN, TelegramServer

MATRIX_DIRECT, MATRIX_GROUP = "!direct:test", "!group:test"
ANN, BOB = "@ann:test", "@bob:test"


class TelegramPeople(ProviderCast):
    """Person 7, who wrote the message `last`."""

    telegram: TelegramServer
    last: int

    def script_upload(self, *acts: Mischief) -> None:
        self.telegram.mischief = one_after_the_other(*acts, method="sendDocument")

    def sent_files(self) -> Sequence[tuple[str, bytes]]:
        return [(one.file.name, one.file.content) for one in self.telegram.sent if one.file is not None]

    def edit(self, text: str) -> None:
        person = {"id": 7, "is_bot": False, "first_name": "Person 7"}
        message = {"message_id": self.last, "from": person, "chat": {"id": 7, "type": "private"}, "text": text}
        self.telegram.update(edited_message={**message, "date": 1_700_000_000, "edit_date": 1_700_000_060})

    def answer_unknown(self, text: str) -> None:
        person = {"id": 7, "is_bot": False, "first_name": "Person 7"}
        gone = {"message_id": 999_999, "from": person, "chat": {"id": 7, "type": "private"}, "date": 1_700_000_000}
        self.telegram.say(text, reply_to_message=gone)

    def edit_unknown(self, text: str) -> None:
        self.last = 999_999
        self.edit(text)

    def like(self, emoji: str) -> None:
        self.telegram.react(self.last, emoji)

    def agent_reactions(self) -> Sequence[str]:
        return list(self.telegram.reactions.given.values())

    def typed(self) -> int:
        return len(self.telegram.typing)

    def reply_in_topic(self, text: str) -> StoredReply | None:
        conversation = "telegram:chat:-50"
        lane = Lane("telegram", TOKEN.partition(":")[0], conversation, lane_key(conversation, "5"))
        return reply_in(lane, text, 1, 0)

    def topics(self) -> Sequence[str]:
        return [str(one.parameters.get("message_thread_id", "")) for one in self.telegram.sent]


class DiscordPeople(ProviderCast):
    """Person 7, who wrote the message `last`."""

    discord: DiscordServer
    clock: FastClock
    last: str
    upload_acts = FAILS

    def script_upload(self, *acts: Mischief) -> None:
        self.discord.mischief = one_after_the_other(*acts, method="create message")

    def sent_files(self) -> Sequence[tuple[str, bytes]]:
        return [(file.name, file.content) for one in self.discord.sent for file in one.files]

    def edit(self, text: str) -> None:
        self.discord.edit(self.last, text)

    def answer_unknown(self, text: str) -> None:
        reference = {"message_id": "999999", "channel_id": DIRECT}
        self.discord.say(text, channel=DIRECT, type=19, message_reference=reference)

    def edit_unknown(self, text: str) -> None:
        told: dict[str, Any] = {
            "id": "999999",
            "channel_id": DIRECT,
            "author": {"id": "7", "username": "seven"},
            "content": text,
        }
        told |= {"type": 0, "edited_timestamp": "2026-01-01T00:00:00+00:00", "attachments": []}
        self.discord.gateway.dispatch("MESSAGE_UPDATE", told)

    def like(self, emoji: str) -> None:
        self.discord.react(self.last, emoji, channel=DIRECT)

    def agent_reactions(self) -> Sequence[str]:
        return [emoji for given in self.discord.messages.reactions.values() for emoji in given]

    def typed(self) -> int:
        return len(self.discord.typing)

    def reply_in_topic(self, text: str) -> StoredReply | None:
        conversation = f"discord:{GENERAL}"
        lane = Lane("discord", BOT, conversation, lane_key(conversation, self.discord.add_thread("950")))
        return reply_in(lane, text, 1, self.clock.now_ms())

    def topics(self) -> Sequence[str]:
        return ["" if one.channel == GENERAL else one.channel for one in self.discord.sent]


class SlackPeople(ProviderCast):
    """Person U7, who wrote the message `last`."""

    slack: SlackServer
    clock: FastClock
    last: str
    upload_acts = FAILS

    def script_upload(self, *acts: Mischief) -> None:
        self.slack.mischief = one_after_the_other(*acts, method="files.completeUploadExternal")

    def sent_files(self) -> Sequence[tuple[str, bytes]]:
        return [(file.name, file.content) for one in self.slack.sent for file in one.files]

    def edit(self, text: str) -> None:
        message = {
            "type": "message",
            "user": "U7",
            "text": text,
            "ts": self.last,
            "edited": {"user": "U7", "ts": "9.9"},
        }
        event = {"type": "message", "subtype": "message_changed", "channel": "D1", "channel_type": "im"}
        self.slack.emit({**event, "message": message, "ts": "9.9", "event_ts": "9.9"})

    def answer_unknown(self, text: str) -> None:
        self.slack.say(text, channel="D1", thread="1.000001")

    def edit_unknown(self, text: str) -> None:
        self.last = "1.000001"
        self.edit(text)

    def like(self, emoji: str) -> None:
        self.slack.react(self.last, {"👍": "+1", "🎉": "tada"}[emoji], channel="D1")

    def agent_reactions(self) -> Sequence[str]:
        return [name for given in self.slack.history.reactions.values() for name in given]

    def typed(self) -> int:
        return len(self.slack.statuses)

    def typing_lane(self) -> Lane:
        return Lane("slack", ACCOUNT, "slack:D1", lane_key("slack:D1", "4.5"))

    def reply_in_topic(self, text: str) -> StoredReply | None:
        lane = Lane("slack", ACCOUNT, "slack:C1", lane_key("slack:C1", self.slack.say("a thread", channel="C1")))
        return reply_in(lane, text, 1, self.clock.now_ms())

    def topics(self) -> Sequence[str]:
        return [one.thread or "" for one in self.slack.sent]


class MatrixPeople(ProviderCast):
    """Ann, who wrote the message `last`."""

    matrix: MatrixServer
    clock: FastClock
    last: str

    def sent_files(self) -> Sequence[tuple[str, bytes]]:
        kept = self.matrix.media.files.contents
        named = [(str(one.content["filename"]), one.content["url"]) for one in self.matrix.sent if "url" in one.content]
        return [(name, kept[url.rpartition("/")[2]]) for name, url in named]

    def edit(self, text: str) -> None:
        self.matrix.edit(self.last, text, MATRIX_DIRECT, ANN)

    def answer_unknown(self, text: str) -> None:
        related = {"m.relates_to": {"m.in_reply_to": {"event_id": "$gone"}}}
        self.matrix.say(text, MATRIX_DIRECT, ANN, **related)

    def edit_unknown(self, text: str) -> None:
        self.last = "$gone"
        self.edit(text)

    def like(self, emoji: str) -> None:
        self.matrix.react(self.last, emoji, MATRIX_DIRECT, ANN)

    def agent_reactions(self) -> Sequence[str]:
        return [str(one.content["m.relates_to"]["key"]) for one in self.matrix.reactions]

    def typed(self) -> int:
        return len(self.matrix.typing)

    def reply_in_topic(self, text: str) -> StoredReply | None:
        conversation, root = f"matrix:{MATRIX_GROUP}", self.matrix.say("a thread", MATRIX_GROUP, ANN)
        return reply_in(Lane("matrix", USER, conversation, lane_key(conversation, root)), text, 1, self.clock.now_ms())

    def topics(self) -> Sequence[str]:
        related = [one.content.get("m.relates_to", {}) for one in self.matrix.sent]
        return [str(one.get("event_id", "")) if one.get("rel_type") == "m.thread" else "" for one in related]


class NostrPeers(ProviderCast):
    """Ann, who wrote the message `last`."""

    relay: NostrRelayServer
    host: NostrFileServer
    keys: NostrKeys
    ann: NostrPerson
    last: str

    def script_upload(self, *acts: Mischief) -> None:
        self.host.mischief = one_after_the_other(*acts, method="PUT")

    def sent_files(self) -> Sequence[tuple[str, bytes]]:
        return [opened_file(self.host, one) for one in self.ann.read_files(self.relay)]

    def _store(self, event: Mapping[str, Any]) -> None:
        """Have an event stored and sent."""
        raise NotImplementedError

    def answer_unknown(self, text: str) -> None:
        self._store(self.ann.write(text, self.keys.public, tags=[["e", "0" * 64]])[1])

    def like(self, emoji: str) -> None:
        tags = [["e", self.last], ["k", "14"]]
        self._store(self.ann.write(emoji, self.keys.public, kind=REACTION, tags=tags)[1])

    def agent_reactions(self) -> Sequence[str]:
        return [str(one["content"]) for one in self.ann.read_reactions(self.relay)]
