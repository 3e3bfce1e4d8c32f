"""Files of Discord: downloads from its CDN, whose addresses expire; a message that is read again has new ones.

Source: Discord API reference, "Signed Attachment CDN URLs": an address is valid for about a day.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing

from keepsaid.adapters.channels.discord_api import DiscordApi, DiscordRefused, DiscordUnreachable
from keepsaid.adapters.channels.downloads import AnswerStart, FileDownloads
from keepsaid.domain.message import Attachment
from keepsaid.errors import FileRefused, FileUnavailable
from keepsaid.values import frozen

_HOSTS = ("cdn.discordapp.com", "media.discordapp.net")
_EXPIRED = (403, 404)
_PROVIDER = "Discord"


class _ExpiredAddress(Exception):
    """The CDN does not hand out what was at an address."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{_PROVIDER} answered {status}")


@frozen
class _Place:
    """Where a file is: its address, its id, and the message that it came with."""

    url: str
    id: str
    channel: str
    message: str


class DiscordFiles:
    """Downloads what came with messages; the CDN is sent no token."""

    def __init__(self, api: DiscordApi) -> None:
        self._api = api
        self._downloads = FileDownloads(_PROVIDER, api.url, _HOSTS)

    async def fetch(self, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a file; where its address expired, from the one that its message has now.

        Raises FileRefused and FileUnavailable.
        """
        place = _place_of(file.ref)
        try:
            async with aclosing(self._downloads.pieces(place.url, check=_check)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        except _ExpiredAddress as error:
            reason = str(error)
        url = await self._address_now(place)
        if url in ("", place.url):
            raise FileRefused(reason)
        async with aclosing(self._downloads.pieces(url)) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        """Close the connections."""
        await self._downloads.close()

    async def _address_now(self, place: _Place) -> str:
        """The address of a file in its message as it is now; "" where it is not in there any more."""
        try:
            told = await self._api.get(f"/channels/{place.channel}/messages/{place.message}")
        except DiscordUnreachable:
            raise FileUnavailable(f"{_PROVIDER} cannot be reached") from None
        except DiscordRefused as error:
            if error.status in _EXPIRED:
                raise FileRefused(f"its address expired, and its message cannot be read: {error}") from None
            raise FileUnavailable(f"{_PROVIDER} answered {error.status}", error.retry_after_s) from None
        listed = told.get("attachments") if isinstance(told, dict) else None
        found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        url = next((one.get("url") for one in found if str(one.get("id")) == place.id), None)
        return url if isinstance(url, str) else ""


def _check(start: AnswerStart) -> None:
    """Raise _ExpiredAddress for an address that is not valid, or not any more."""
    if start.status in _EXPIRED:
        raise _ExpiredAddress(start.status)


def _place_of(ref: str) -> _Place:
    """The place of a file, as the reader of messages writes it. Raises FileRefused."""
    try:
        told = json.loads(ref)
    except (ValueError, RecursionError):
        told = None
    names = ("url", "id", "channel", "message")
    values = [told.get(name) for name in names] if isinstance(told, dict) else []
    url, number, channel, message = (one if isinstance(one, str) else "" for one in values or ("",) * len(names))
    if not url or not channel.isdecimal() or not message.isdecimal():
        raise FileRefused(f"where {_PROVIDER} has it cannot be read")
    return _Place(url, number, channel, message)
