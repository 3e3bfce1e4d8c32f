"""Connections to relays for sending and looking up: opened when first used, and kept; relays of others are checked.

Anybody may name any address as a relay, so an address that is not public is not dialled.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from keepsaid.adapters.channels.nostr.keys import NostrKeys
from keepsaid.adapters.channels.nostr.socket import NostrDown, NostrRefused, NostrSocket, open_relay
from keepsaid.adapters.channels.public_address import NotPublic, may_be_public, public_address
from keepsaid.ports.runtime import Clock

_OPEN_MAX = 16
_URL_CHARS_MAX = 200


class NostrPool:
    """Open connections by URL, 16 at most; the one that was not used for longest is closed for another.

    `own` are the relays of the account, `extra` others that know the relays of people. These and `trusted` ones are
    dialled as they are; any other has to be `wss://` at a public address.
    """

    def __init__(
        self, keys: NostrKeys, clock: Clock, own: Sequence[str], extra: Sequence[str] = (), trusted: Sequence[str] = ()
    ) -> None:
        self.keys = keys
        self.clock = clock
        self.own = tuple(dict.fromkeys(own))
        self.extra = tuple(dict.fromkeys(extra))
        self._trusted = frozenset((*own, *extra, *trusted))
        self._open: OrderedDict[str, NostrSocket] = OrderedDict()
        self._dialling: dict[str, asyncio.Lock] = {}

    @property
    def known(self) -> tuple[str, ...]:
        """The relays of the account, and the extra ones."""
        return tuple(dict.fromkeys((*self.own, *self.extra)))

    def may_dial(self, url: str) -> bool:
        """Whether a URL can be that of a relay; whether its address is public is seen when it is dialled."""
        return url in self._trusted or _is_relay(url)

    async def open(self, url: str) -> NostrSocket:
        """The connection to a relay. Raises NostrDown, NostrRefused for an address that is not public, ChannelError."""
        async with self._dialling.setdefault(url, asyncio.Lock()):
            found = self._open.get(url)
            if found is None or not found.is_open:
                if found is not None:
                    await self._drop(url)
                address = None if url in self._trusted else await _public_address(url)
                self._open[url] = await open_relay(url, self.keys, self.clock, address=address)
            self._open.move_to_end(url)
            while len(self._open) > _OPEN_MAX:
                await self._drop(next(iter(self._open)))
            if len(self._dialling) > _OPEN_MAX * 4:
                self._dialling = {key: lock for key, lock in self._dialling.items() if lock.locked()}
            return self._open[url]

    async def close(self) -> None:
        """Close all connections."""
        for url in list(self._open):
            await self._drop(url)

    async def _drop(self, url: str) -> None:
        if (found := self._open.pop(url, None)) is not None:
            await found.close()


def _is_relay(url: str) -> bool:
    """Whether a URL is that of a relay that somebody else may name."""
    return len(url) <= _URL_CHARS_MAX and may_be_public(url, "wss")


async def _public_address(url: str) -> str:
    """An address of a relay, if all of its addresses are public. Raises NostrDown and NostrRefused."""
    if not _is_relay(url):
        raise NostrRefused("restricted: the relay is not wss:// at a public address")
    try:
        return await public_address(url, "wss")
    except NotPublic:
        raise NostrRefused("restricted: the relay is not at a public address") from None
    except OSError as error:
        raise NostrDown(f"the address of {url} is not found: {type(error).__name__}") from None
