"""Announcing an account: the relays on which it reads messages (kind 10050, NIP-17), and its name (kind 0)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Sequence
from typing import Any

from keepsaid.adapters.channels.nostr.keys import INBOX_RELAYS, PROFILE, NostrForged, NostrKeys
from keepsaid.adapters.channels.nostr.pool import NostrPool
from keepsaid.adapters.channels.nostr.socket import NostrDown, NostrRefused, NostrSocket
from keepsaid.ports.runtime import Clock

_log = logging.getLogger("keepsaid.nostr")
_TRIES_MAX = 3
"""A relay that does not answer to what is announced is then only read from."""


class NostrProfile:
    """What an account announces on its own `relays`, and its list of relays also on those of `elsewhere`, once a start.

    A relay that has the same list already gets none, and a profile that somebody wrote is left as it is. An empty name
    is not announced.
    """

    def __init__(
        self, keys: NostrKeys, clock: Clock, relays: Sequence[str], elsewhere: NostrPool, name: str = ""
    ) -> None:
        self.relays = tuple(dict.fromkeys(relays))
        self._keys = keys
        self._clock = clock
        self._elsewhere = elsewhere
        self._name = name
        self._done: set[str] = set()
        self._tries: Counter[str] = Counter()

    async def announce(self, socket: NostrSocket) -> None:
        """Announce on a relay of the account. Raises NostrDown; a relay that refuses is named in the log."""
        if socket.url not in self._done and self._tries[socket.url] < _TRIES_MAX:
            self._tries[socket.url] += 1
            await self._announce_on(socket, with_name=True)
            self._done.add(socket.url)
        for url in self._elsewhere.extra:
            if url in self._done or url in self.relays:
                continue
            self._done.add(url)
            try:
                await self._announce_on(await self._elsewhere.open(url), with_name=False)
            except NostrDown as error:
                _log.warning("the relays of the account are not announced: %s", error)

    async def _announce_on(self, socket: NostrSocket, *, with_name: bool) -> None:
        mine = {"authors": [self._keys.public]}
        try:
            tags = [["relay", url] for url in self.relays]
            stored = await socket.search({**mine, "kinds": [INBOX_RELAYS], "limit": 1})
            if not any(event.get("tags") == tags for event in stored):
                await self._publish(socket, INBOX_RELAYS, "", tags)
            if with_name and self._name and not await socket.search({**mine, "kinds": [PROFILE], "limit": 1}):
                profile = json.dumps({"name": self._name, "bot": True}, ensure_ascii=False)
                await self._publish(socket, PROFILE, profile, [])
        except (NostrRefused, NostrForged) as error:
            _log.warning("%s does not take what the account announces: %s", socket.url, error)

    async def _publish(self, socket: NostrSocket, kind: int, content: str, tags: list[list[str]]) -> None:
        at_s = self._clock.now_ms() // 1_000
        event = await asyncio.to_thread(self._keys.sign, kind, content, tags, at_s)
        made: dict[str, Any] = json.loads(event)
        await socket.publish(str(made["id"]), event)
