"""Nostr as a channel that receives: wraps for the account from each of its relays, stored before the cursor moves.

Wraps carry a time of up to two days before they were made, so each relay is asked from two days before its cursor on:
the time at which everything on it was stored last. The key of a message removes what comes again (NIP-17, NIP-59).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from keepsaid.adapters.channels.backoff import LineBackoff
from keepsaid.adapters.channels.nostr.catchup import BACKDATED_S, CatchUpLimits, StoredEvents
from keepsaid.adapters.channels.nostr.keys import LEGACY, WRAP, Event, NostrKeys
from keepsaid.adapters.channels.nostr.line import NostrLine, NostrTrouble
from keepsaid.adapters.channels.nostr.opening import OpenedEvent, WrapOpener
from keepsaid.adapters.channels.nostr.people import NostrPeople
from keepsaid.adapters.channels.nostr.profile import NostrProfile
from keepsaid.adapters.channels.nostr.rumors import incoming_of
from keepsaid.adapters.channels.nostr.socket import NostrDown, NostrRefused, NostrSocket, RelayItem, open_relay
from keepsaid.domain.line import Cursor
from keepsaid.domain.message import UNREADABLE
from keepsaid.ports.channel import InboundSink, Incoming

_LIVE, _PROBE = "keepsaid-live", "keepsaid-probe"
_PROBED_EACH_MS, _ANSWER_WITHIN_MS = 600_000, 30_000
"""How often a relay that sends nothing is asked for something, and how long it has to answer."""

_BEFORE_FIRST_S = 3_600
"""How much older than the first contact a message may be that comes live: clocks differ."""

_BROKEN_MAX = 3
"""After each third connection that ended before the stored events did, those that were read are stored."""

_FIRST = "first"
"""The cursor with the time of the first contact, seconds UTC."""


class NostrListener:
    """Reads what is sent to an account from its own relays, until it is cancelled.

    `legacy` also reads messages of kind 4 (NIP-04).
    """

    def __init__(
        self, keys: NostrKeys, line: NostrLine, people: NostrPeople, profile: NostrProfile, *, legacy: bool = False
    ) -> None:
        self._keys = keys
        self._npub = keys.npub()
        self._line = line
        self._people = people
        self._profile = profile
        self._opener = WrapOpener(keys, line.clock, legacy=legacy)
        self._kinds = [WRAP, LEGACY] if legacy else [WRAP]
        self._cursors: dict[str, str] = {}
        self._broken: Counter[str] = Counter()
        self._storing = asyncio.Lock()

    @property
    def failures(self) -> Mapping[str, int]:
        """How many events were refused, by the reason."""
        return self._opener.failures

    async def listen(self, inbox: InboundSink) -> None:
        """Hand over what comes; errors are waited out, however often they come."""
        async with asyncio.TaskGroup() as tasks:
            for url in self._profile.relays:
                tasks.create_task(self._hold(url, inbox))

    async def _hold(self, url: str, inbox: InboundSink) -> None:
        """Keep a connection to a relay."""
        backoff = LineBackoff(self._line.clock)
        while True:
            self._line.connecting(url)
            try:
                socket = await open_relay(url, self._keys, self._line.clock, authenticates=True)
                try:
                    await self._follow(socket, inbox, backoff)
                finally:
                    await socket.close()
            except NostrTrouble as error:
                await self._line.wait_out(url, error, backoff)

    async def _follow(self, socket: NostrSocket, inbox: InboundSink, backoff: LineBackoff) -> None:
        """Store what is on a relay, then what comes. Raises what ends that."""
        cursor = await self._cursor_of(socket.url, inbox)
        began = self._line.clock.now_ms() // 1_000
        query = {**self._query(), "since": (began if cursor is None else cursor) - BACKDATED_S}
        read = StoredEvents(socket, _LIVE, query)
        try:
            await read.read(self._opener.is_new)
        except NostrDown:
            self._broken[socket.url] += 1
            if self._broken[socket.url] % _BROKEN_MAX == 0:
                await self._put_partly(read, inbox, CatchUpLimits(began, self._first(), cursor))
            raise
        self._broken[socket.url] = 0
        # of the first contact, live messages may be older than the stored ones that are taken
        meanwhile = read.live if cursor is not None else []
        found = [*read.stored, *meanwhile]
        await self._put_stored(socket.url, found, inbox, CatchUpLimits(began, self._first(), cursor))
        backoff.up()
        self._line.up(socket.url)
        await self._put_live(socket.url, read.live, inbox)
        await self._profile.announce(socket)
        is_asked = False
        while True:
            items = await socket.take(_ANSWER_WITHIN_MS if is_asked else _PROBED_EACH_MS)
            if not items and is_asked:
                raise NostrDown(f"{socket.url} does not answer")
            is_asked = not items
            if is_asked:
                await socket.subscribe(_PROBE, {**self._query(), "limit": 1})
                continue
            await self._take(socket, items, inbox)

    async def _take(self, socket: NostrSocket, items: Sequence[RelayItem], inbox: InboundSink) -> None:
        """Store the events in items; raises NostrRefused if the relay closed the subscription."""
        await self._put_live(socket.url, [one.event for one in items if one.event is not None], inbox)
        for one in items:
            if one.subscription == _PROBE and one.event is None:
                await socket.unsubscribe(_PROBE)
            elif one.closed is not None:
                raise NostrRefused(one.closed)

    def _query(self) -> dict[str, object]:
        return {"kinds": self._kinds, "#p": [self._keys.public]}

    async def _cursor_of(self, url: str, inbox: InboundSink) -> int | None:
        """When everything on a relay was stored last, seconds UTC; None at the first contact. Raises StoreError."""
        if not self._cursors:
            self._cursors = dict(await inbox.cursors(self._keys.public))
        self._cursors.setdefault(_FIRST, str(self._line.clock.now_ms() // 1_000))
        value = self._cursors.get(f"eose:{url}", "")
        return int(value) if value.isascii() and value.isdecimal() else None

    def _first(self) -> int:
        value = self._cursors[_FIRST]
        return int(value) if value.isascii() and value.isdecimal() else 0

    async def _put_stored(self, url: str, events: Sequence[Event], inbox: InboundSink, limits: CatchUpLimits) -> None:
        """Store what was on a relay, the oldest message first, and with the last of it the cursor."""
        opened = await self._opener.open_all(events)
        await self._put(url, limits.choose(opened), inbox, limits.began)
        self._opener.commit(opened)

    async def _put_partly(self, read: StoredEvents, inbox: InboundSink, limits: CatchUpLimits) -> None:
        """Store what was read from a relay that never comes to its end; the cursor stays."""
        opened = limits.choose(await self._opener.open_all(read.stored))
        await self._put("", opened, inbox, 0)
        self._opener.commit(opened)

    async def _put_live(self, url: str, events: Sequence[Event], inbox: InboundSink) -> None:
        """Store what came, in its order."""
        if not (opened := await self._opener.open_all(events)):
            return
        oldest = self._first() - _BEFORE_FIRST_S
        chosen = [one for one in opened if one.rumor is not None and one.rumor.created_at >= oldest]
        await self._put(url, chosen, inbox, self._line.clock.now_ms() // 1_000)
        self._opener.commit(opened)

    async def _put(self, url: str, opened: Sequence[OpenedEvent], inbox: InboundSink, at: int) -> None:
        """Store messages, the participants of their conversations, and how far a relay was read, if `url` names one."""
        said: list[Incoming] = []
        cursors: dict[str, Cursor] = {}
        for one in opened:
            if one.rumor is None or (found := incoming_of(one.rumor, self._keys.public, self._npub)) is None:
                continue
            said.append(found)
            if found.event != UNREADABLE:
                cursors |= {new.name: new for new in self._people.cursors_for(found.conversation, one.rumor)}
        moved = {_FIRST: self._cursors[_FIRST]}
        if url:
            moved[f"eose:{url}"] = str(at)
        if not said and self._cursors.get(f"eose:{url}") is not None and not self._is_late(url, at):
            return
        everything = [*cursors.values(), *(Cursor(self._keys.public, name, value) for name, value in moved.items())]
        async with self._storing:
            await inbox.put_all(said, everything)
        self._people.commit(everything)
        self._cursors |= moved

    def _is_late(self, url: str, at: int) -> bool:
        """Whether a cursor is moved although nothing came: after an hour, so that a quiet line is not written for."""
        return at - int(self._cursors.get(f"eose:{url}") or 0) >= _BEFORE_FIRST_S
