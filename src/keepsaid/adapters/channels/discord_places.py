"""Channels, threads and servers that a bot of Discord sees, from the gateway or looked up at the REST interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from keepsaid.adapters.channels.discord_api import DiscordApi, DiscordRefused
from keepsaid.values import frozen

_PLACES_MAX = 20_000
_DIRECT, _THREADS = 1, (10, 11, 12)
_WAIT_FOR = (401, 429)
"""Refusals that say nothing about a place; it is looked up again later."""

Fields = Mapping[str, object]
"""An object of Discord."""


@frozen
class DiscordPlace:
    """A channel or thread: its type, the channel that a thread is in, and the id of its newest message.

    Texts are "" where they are unknown.
    """

    id: str
    kind: int = 0
    parent: str = ""
    name: str = ""
    guild: str = ""
    newest: str = ""

    @property
    def is_direct(self) -> bool:
        """Whether only one person and the bot are there."""
        return self.kind == _DIRECT

    def as_fields(self) -> dict[str, object]:
        """The place as the reader of messages takes it."""
        told: dict[str, object] = {"id": self.id, "type": self.kind, "name": self.name}
        return told | ({"parent_id": self.parent} if self.kind in _THREADS else {})


@frozen
class DiscordGuild:
    """A server: its name, and the role that Discord made there for the bot, "" if there is none."""

    id: str
    name: str = ""
    bot_role: str = ""


class DiscordPlaces:
    """Keeps places and servers by id; what no dispatch showed is looked up once."""

    def __init__(self, api: DiscordApi, bot: str) -> None:
        self._api = api
        self.bot = bot
        self._places: dict[str, DiscordPlace] = {}
        self._guilds: dict[str, DiscordGuild] = {}

    def begin_session(self) -> None:
        """Keep no more than what a new session does not show again: which channels are direct conversations."""
        self._places = {name: replace(one, newest="") for name, one in self._places.items() if one.is_direct}

    def take(self, kind: str, told: Fields) -> None:
        """Take what a dispatch of the gateway says about places; others are ignored."""
        if kind in ("GUILD_CREATE", "GUILD_UPDATE"):
            self._keep_guild(told)
            guild = _text(told, "id")
            for one in (*_objects(told, "channels"), *_objects(told, "threads")):
                self._keep(place_of(one, guild))
        elif kind == "THREAD_LIST_SYNC":
            for one in _objects(told, "threads"):
                self._keep(place_of(one, _text(told, "guild_id")))
        elif kind in ("CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE"):
            self._keep(place_of(told, ""))
        elif kind in ("CHANNEL_DELETE", "THREAD_DELETE"):
            self._places.pop(_text(told, "id"), None)

    def direct(self, number: str) -> DiscordPlace:
        """The place of a message that names no server: as it is known, or else a direct conversation."""
        if number not in self._places:
            self._keep(DiscordPlace(number, _DIRECT))
        return self._places[number]

    def is_direct(self, place: str) -> bool:
        """Whether a channel is known to be a direct conversation."""
        return place in self._places and self._places[place].is_direct

    def seen(self) -> Iterable[DiscordPlace]:
        """The places that are known now."""
        return tuple(self._places.values())

    async def place(self, number: str) -> DiscordPlace | None:
        """A place; None for one that the bot may not see. Raises DiscordUnreachable and DiscordRefused: ask later."""
        if number not in self._places:
            if (told := await self._looked_up(f"/channels/{number}")) is None:
                return None
            self._keep(place_of(told, ""))
        return self._places.get(number)

    async def guild(self, number: str) -> DiscordGuild:
        """A server; without a name if the bot may not see it. Raises as `place`."""
        if number not in self._guilds:
            self._keep_guild({**(await self._looked_up(f"/guilds/{number}") or {}), "id": number})
        return self._guilds[number]

    async def _looked_up(self, path: str) -> Fields | None:
        try:
            told = await self._api.get(path)
        except DiscordRefused as error:
            if error.status in _WAIT_FOR or error.status >= 500:
                raise
            return None
        return told if isinstance(told, dict) else None

    def _keep(self, place: DiscordPlace) -> None:
        if not place.id:
            return
        self._places.pop(place.id, None)
        self._places[place.id] = place
        if len(self._places) > _PLACES_MAX:
            del self._places[next(iter(self._places))]

    def _keep_guild(self, told: Fields) -> None:
        roles = (
            _text(role, "id")
            for role in _objects(told, "roles")
            if isinstance(tags := role.get("tags"), dict) and str(tags.get("bot_id")) == self.bot
        )
        number = _text(told, "id")
        self._guilds[number] = DiscordGuild(number, _text(told, "name"), next(roles, ""))


def place_of(told: Fields, guild: str) -> DiscordPlace:
    """The place in a channel object; `guild` is the server it came with, which need not be named in it."""
    kind = told.get("type")
    return DiscordPlace(
        _text(told, "id"),
        kind if isinstance(kind, int) else 0,
        _text(told, "parent_id"),
        _text(told, "name"),
        _text(told, "guild_id") or guild,
        _text(told, "last_message_id"),
    )


def _text(told: Fields, name: str) -> str:
    found = told.get(name)
    return found if isinstance(found, str) else ""


def _objects(told: Fields, name: str) -> list[Fields]:
    found = told.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
