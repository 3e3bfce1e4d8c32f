"""Messages that were written on Discord while no session was there: read from each known channel, within bounds."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from keepsaid.adapters.channels.discord_api import DiscordApi, DiscordRefused
from keepsaid.adapters.channels.discord_places import DiscordPlace, DiscordPlaces
from keepsaid.adapters.channels.discord_progress import GatewayProgress
from keepsaid.adapters.channels.discord_updates import CREATED, DiscordReader, snowflake_at
from keepsaid.ports.channel import Incoming
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.discord")
_DAY_MS = 86_400_000
_OF_ONE_MAX, _IN_ALL_MAX = 100, 500
_CHANNELS_MAX = 300
"""Channels that are read; those with the newest messages come first."""

_EARLIER_IDS = 60_000 << 22
"""Ids of a minute: dispatches of several channels need not come in the order of their ids."""

_SPOKEN_IN = (0, 1, 2, 5, 10, 11, 12, 13)
"""Types of channels that people write in."""


@frozen
class MissedMessages:
    """Messages that were missed, oldest first, and the newest of them in each channel, by the id of Discord."""

    incoming: tuple[Incoming, ...]
    after: Mapping[str, int]


class CatchUp:
    """Reads what was missed: of a day, 100 messages of a channel and 500 in all; what is left out is logged."""

    def __init__(self, api: DiscordApi, places: DiscordPlaces, reader: DiscordReader) -> None:
        self._api = api
        self.places = places
        self.reader = reader

    async def read(self, progress: GatewayProgress, now_ms: int) -> MissedMessages:
        """The messages that came after those on disk. Raises DiscordRefused and DiscordUnreachable."""
        found: list[tuple[int, str, Mapping[str, Any]]] = []
        left_out: set[str] = set()
        for channel, after in self._starts(progress, snowflake_at(now_ms - _DAY_MS)):
            place = await self.places.place(channel)
            if place is None or (place.newest.isdecimal() and int(place.newest) <= after):
                continue
            page = await self._page(place, after)
            found += [(number, channel, told) for number, told in page]
            if len(page) >= _OF_ONE_MAX:
                left_out.add(channel)
        found.sort(key=lambda one: one[0])
        left_out.update(channel for _, channel, _ in found[_IN_ALL_MAX:])
        if left_out:
            _log.warning("missed messages of Discord were left out in: %s", ", ".join(sorted(left_out)[:50]))
        after_all: dict[str, int] = {}
        incoming: list[Incoming] = []
        for number, channel, told in found[:_IN_ALL_MAX]:
            after_all[channel] = number
            if (said := await self.reader.read(CREATED, told)) is not None:
                incoming.append(said)
        return MissedMessages(tuple(incoming), after_all)

    def _starts(self, progress: GatewayProgress, floor: int) -> list[tuple[str, int]]:
        """The channels to read, and after which message. One without any on disk is read where it has newer ones."""
        starts = {channel: max(after, floor) for channel, after in progress.after.items()}
        newest = max(progress.since, progress.newest - _EARLIER_IDS, floor)
        for place in self.places.seen():
            is_unknown = place.id not in starts and place.kind in _SPOKEN_IN
            if is_unknown and place.newest.isdecimal() and int(place.newest) > newest:
                starts[place.id] = newest
        recent = sorted(starts.items(), key=lambda one: progress.after.get(one[0], one[1]), reverse=True)
        if len(recent) > _CHANNELS_MAX:
            _log.warning("missed messages of Discord are read in %d channels of %d", _CHANNELS_MAX, len(recent))
        return recent[:_CHANNELS_MAX]

    async def _page(self, place: DiscordPlace, after: int) -> list[tuple[int, dict[str, Any]]]:
        """The oldest messages of a channel after an id, with the server that the REST interface leaves out."""
        try:
            page = await self._api.get(f"/channels/{place.id}/messages?after={after}&limit={_OF_ONE_MAX}")
        except DiscordRefused as error:
            if error.status in (403, 404):
                return []
            raise
        told = [one for one in page if isinstance(one, dict)] if isinstance(page, list) else []
        guild = {"guild_id": place.guild} if place.guild else {}
        return [(int(one["id"]), one | guild) for one in told if str(one.get("id")).isdecimal()]
