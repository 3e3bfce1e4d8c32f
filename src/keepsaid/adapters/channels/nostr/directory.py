"""Where people read their messages: the relays of their newest list (kind 10050), looked up and kept for an hour."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from keepsaid.adapters.channels.nostr.keys import INBOX_RELAYS, Event, NostrForged
from keepsaid.adapters.channels.nostr.pool import NostrPool
from keepsaid.adapters.channels.nostr.socket import NostrDown, NostrRefused

_KEPT_MS, _MISSING_KEPT_MS = 3_600_000, 60_000
_PEOPLE_MAX = 1_000
_RELAYS_MAX = 5


class NostrDirectory:
    """Looks up the relays of people at the relays of `pool`."""

    def __init__(self, pool: NostrPool) -> None:
        self._pool = pool
        self._found: OrderedDict[str, tuple[float, tuple[str, ...]]] = OrderedDict()

    async def relays_of(self, person: str) -> tuple[str, ...]:
        """The relays of a person, five at most; none if there is no list of them.

        Raises NostrDown if no list is found, and a relay that may have one does not answer.
        """
        now = self._pool.clock.monotonic_ms()
        until, relays = self._found.get(person, (0.0, ()))
        if now < until:
            return relays
        relays = await self._look_up(person)
        self._found[person] = (now + (_KEPT_MS if relays else _MISSING_KEPT_MS), relays)
        while len(self._found) > _PEOPLE_MAX:
            self._found.popitem(last=False)
        return relays

    def forget(self, person: str) -> None:
        """Look up a person's relays again: those known take no messages."""
        self._found.pop(person, None)

    async def _look_up(self, person: str) -> tuple[str, ...]:
        answers = await asyncio.gather(*(self._ask(url, person) for url in self._pool.known))
        lists = [event for found in answers if not isinstance(found, str) for event in found]
        lists.sort(key=_age_of, reverse=True)
        for event in lists:
            if relays := await asyncio.to_thread(self._read, event, person):
                return relays
        if failed := [found for found in answers if isinstance(found, str)]:
            raise NostrDown(f"the relays of the receiver cannot be looked up: {failed[0]}")
        return ()

    async def _ask(self, url: str, person: str) -> Sequence[Event] | str:
        """The lists that a relay has of a person's relays; the reason if it does not answer."""
        query = {"kinds": [INBOX_RELAYS], "authors": [person], "limit": 3}
        try:
            return await (await self._pool.open(url)).search(query)
        except NostrDown as error:
            return str(error)
        except NostrRefused as error:
            return f"{url}: {error}"

    def _read(self, event: Event, person: str) -> tuple[str, ...]:
        """The relays in a list; none if it is not by that person."""
        tags = event.get("tags")
        if event.get("pubkey") != person or event.get("kind") != INBOX_RELAYS or not isinstance(tags, list):
            return ()
        try:
            self._pool.keys.verify(event)
        except NostrForged:
            return ()
        named = (tag[1] for tag in tags if isinstance(tag, list) and len(tag) > 1 and tag[0] == "relay")
        urls = (url.rstrip("/") if url.count("/") == 3 else url for url in named if isinstance(url, str))
        return tuple(dict.fromkeys(url for url in urls if self._pool.may_dial(url)))[:_RELAYS_MAX]


def _age_of(event: Event) -> int:
    at = event.get("created_at")
    return at if isinstance(at, int) else 0
