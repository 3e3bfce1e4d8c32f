"""Discord's dispatches as messages, and whether the bot itself is named in one."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from keepsaid.adapters.channels.discord_places import DiscordPlaces
from keepsaid.adapters.channels.media import discord as media
from keepsaid.domain.message import UNREADABLE, IgnoredUpdate
from keepsaid.errors import InputError
from keepsaid.ports.channel import Incoming
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.discord")

CREATED, CHANGED, REACTED = "MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_REACTION_ADD"

_EPOCH_MS = 1_420_070_400_000


@frozen
class DiscordBot:
    """Who reads: the id of the bot, and its name."""

    id: str
    name: str = ""


class DiscordReader:
    """Reads dispatches for a bot, with what `places` has of channels and servers."""

    def __init__(self, places: DiscordPlaces, bot: DiscordBot) -> None:
        self._places = places
        self._bot = bot

    @property
    def account(self) -> str:
        """The id of the bot."""
        return self._bot.id

    async def read(self, kind: str, told: Mapping[str, object]) -> Incoming | None:
        """The message in a dispatch; None where it holds none. Raises DiscordUnreachable and DiscordRefused.

        A message that cannot be read is kept as it came; nobody answers it.
        """
        if kind not in (CREATED, CHANGED, REACTED) or self._is_ignored(kind, told):
            return None
        given, role = await self._with_place(told)
        raw = json.dumps({"t": kind, "d": told}, ensure_ascii=False).encode("utf-8", "surrogatepass")
        try:
            said = media.read_reaction({"t": kind, "d": given}) or media.read({"t": kind, "d": given})
        except InputError as error:
            _log.warning("a dispatch of Discord cannot be read: %s", error.what, extra={"code": error.code})
            return unreadable_dispatch(raw, _key_of(kind, told), self._bot.id)
        if isinstance(said, IgnoredUpdate) or said.sender == self._bot.id:
            return None
        return Incoming(
            said.text,
            said.sender,
            said.conversation,
            said.delivery,
            said.provider_id or None,
            said.reply_to,
            said.topic,
            said.name,
            said.direct,
            raw,
            said.conversation_name,
            self._bot.id,
            said.event,
            addressed=kind != REACTED and self._is_addressed(told, role),
            by_bot=said.by_bot,
            files=said.files,
        )

    def _is_ignored(self, kind: str, told: Mapping[str, object]) -> bool:
        """Whether a dispatch changes a message without an edit, or is a reaction by a bot."""
        if kind == CHANGED:
            return not told.get("edited_timestamp") or "author" not in told
        if kind != REACTED:
            return False
        member = told.get("member")
        person = member.get("user") if isinstance(member, dict) else None
        is_bot = isinstance(person, dict) and person.get("bot") is True
        return is_bot or str(told.get("user_id")) == self._bot.id

    async def _with_place(self, told: Mapping[str, object]) -> tuple[dict[str, object], str]:
        """The data of a dispatch with its channel and server added, and the bot's role on the server."""
        given = {name: value for name, value in told.items() if name not in ("channel", "guild")}
        channel, guild = told.get("channel_id"), told.get("guild_id")
        if not isinstance(channel, str) or not channel.isdecimal():
            return given, ""
        if guild is None:
            return given | {"channel": self._places.direct(channel).as_fields()}, ""
        if (place := await self._places.place(channel)) is not None:
            given["channel"] = place.as_fields()
        if not isinstance(guild, str) or not guild.isdecimal():
            return given, ""
        server = await self._places.guild(guild)
        return given | {"guild": {"id": guild, "name": server.name}}, server.bot_role

    def _is_addressed(self, told: Mapping[str, object], role: str) -> bool:
        """Whether a message mentions the bot or its role, or answers one of its messages."""
        mentions, roles, answered = (told.get(name) for name in ("mentions", "mention_roles", "referenced_message"))
        if isinstance(mentions, list) and any(_is_person(one, self._bot.id) for one in mentions):
            return True
        if role and isinstance(roles, list) and role in roles:
            return True
        return isinstance(answered, dict) and _is_person(answered.get("author"), self._bot.id)


def snowflake_at(ms: int) -> int:
    """The smallest id that Discord gives at a time, milliseconds UTC."""
    return max(0, ms - _EPOCH_MS) << 22


def unreadable_dispatch(raw: bytes, key: str, account: str) -> Incoming:
    """Something that cannot be read, as it came: it is kept, and nobody answers it."""
    return Incoming("", "discord", "discord:unreadable", key, payload=raw, event=UNREADABLE, account=account)


def _key_of(kind: str, told: Mapping[str, object]) -> str:
    """The delivery of a dispatch that cannot be read, from those of its ids that are texts."""
    ids = (told.get(name) for name in ("channel_id", "id", "message_id", "user_id", "edited_timestamp"))
    return ":".join(("discord:unreadable", kind, *(one[:64] for one in ids if isinstance(one, str))))


def _is_person(told: object, number: str) -> bool:
    return isinstance(told, dict) and str(told.get("id")) == number
