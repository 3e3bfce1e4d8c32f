"""Listening to Matrix: /sync from the last stored `next_batch` on; messages and the next one are stored together.

Whatever ends the process, the next one requests the same again, and what was stored before is known by its keys.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping, Sequence

from keepsaid.adapters.channels.matrix.api import Answer, MatrixRefused, MatrixUnreachable
from keepsaid.adapters.channels.matrix.gap import STATE_TYPES, TIMELINE_TYPES
from keepsaid.adapters.channels.matrix.invites import Allowed, MatrixInvites
from keepsaid.adapters.channels.matrix.line import MatrixAccount, MatrixLine, MatrixTrouble
from keepsaid.adapters.channels.matrix.reader import MatrixReader
from keepsaid.adapters.channels.matrix.updates import ENCRYPTED_ROOMS, Event, MatrixUser, key_of, raw_of, unreadable
from keepsaid.domain.line import Cursor
from keepsaid.ports.channel import InboundSink, Incoming

_log = logging.getLogger("keepsaid.matrix")
SINCE, DEVICE, INVITES = "since", "device", "invites"
"""The names of the cursors of an account, beside that of its encrypted rooms."""

_POLL_MS, _IDLE_POLL_MS = 30_000, 55_000
_IDLE_POLLS = 4
"""After this number of polls without an event the longer poll is used: an idle hour takes at most 80 requests."""

_LATE_S = 20.0
_LEAST_POLL_MS = 1_000
_GAP_MS = 300_000
"""After so long without an answer, messages are read within the bounds of a catch-up."""

_LIMIT = 100
"""Events of one room in one answer; fewer after an answer that was too long."""


class MatrixListener:
    """Reads the rooms of an account until it is cancelled, and joins those to which `allowed` users invite it."""

    def __init__(self, account: MatrixAccount, line: MatrixLine, allowed: Allowed = ()) -> None:
        self._account = account
        self._line = line
        self._clock = line.clock
        self._invites = MatrixInvites(account.api, line.clock, allowed)
        self._reader = MatrixReader(account, line.clock)
        self._stored: dict[str, str] = {}
        self._since = ""
        self._limit = _LIMIT
        self._empty_polls = 0
        self._is_loaded = False
        self._is_lost = False
        self._last_ok: float | None = None

    async def listen(self, inbox: InboundSink) -> None:
        """Hand over the messages that come; whatever goes wrong is waited out, however often."""
        while True:
            try:
                if not self._is_loaded:
                    self._line.connecting()
                user = await self._account.user()
                if not self._is_loaded:
                    await self._load(inbox, user)
                await self._once(inbox, user)
            except MatrixTrouble as error:
                if isinstance(error, MatrixRefused) and error.is_bad_token:
                    self._account.forget()
                    self._is_loaded = False
                await self._line.wait_out(error)

    async def _load(self, inbox: InboundSink, user: MatrixUser) -> None:
        """Take the stored cursors, and store the device of the token. Raises StoreError."""
        self._stored = dict(await inbox.cursors(user.id))
        self._since = self._stored.get(SINCE, "")
        self._account.rooms.encrypted.update(self._stored.get(ENCRYPTED_ROOMS, "").split())
        self._invites.load(self._stored.get(INVITES, ""))
        if self._account.crypto is not None and user.device:
            await self._account.crypto.begin(user)
        self._is_loaded = True

    async def _once(self, inbox: InboundSink, user: MatrixUser) -> None:
        """Make one sync, and store what came with it."""
        timeout_ms = self._timeout_ms()
        began = self._clock.monotonic_ms()
        answer = await self._sync(timeout_ms)
        if answer is None:
            return
        batch = answer.get("next_batch")
        if not isinstance(batch, str) or not batch:
            raise MatrixUnreachable("/sync names no next batch", sent=True)
        if (crypto := self._account.crypto_of(user)) is None:
            has_news = await self._take(inbox, answer, batch, user)
        else:
            async with crypto.change(user):
                has_news = await self._take(inbox, answer, batch, user)
        self._empty_polls = 0 if has_news else self._empty_polls + 1
        self._since, self._is_lost, self._last_ok = batch, False, self._clock.monotonic_ms()
        self._line.up(self._account.encryption(user))
        await self._invites.join()
        if crypto is not None:
            await crypto.keep_up(user)
        if not has_news and timeout_ms and self._clock.monotonic_ms() - began < _LEAST_POLL_MS:
            await self._clock.wait(asyncio.Event(), _LEAST_POLL_MS)

    async def _take(self, inbox: InboundSink, answer: Answer, batch: str, user: MatrixUser) -> bool:
        """Store what came with a sync; returns whether it was anything. Raises as a request, and StoreError."""
        crypto = self._account.crypto_of(user)
        waited: Sequence[tuple[str, Event]] = ()
        if crypto is not None:
            waited = await crypto.take(answer)
            if self._is_lost:
                crypto.lose_track()
        came = self._came(answer, user)
        said = await self._read(came, waited, user)
        rows = crypto.cursors() if crypto is not None else []
        has_news = bool(said or came or rows or _inside(answer.get("rooms"), "invite"))
        if moved := self._moved(batch, user, has_news=has_news):
            await inbox.put_all(said, [*(Cursor(user.id, name, value) for name, value in moved.items()), *rows])
            self._stored |= moved
        if crypto is not None:
            crypto.committed()
        return has_news

    def _timeout_ms(self) -> int:
        """How long the server waits for an event: not at all while the line is not up."""
        if not self._line.is_up or not self._since:
            return 0
        return _POLL_MS if self._empty_polls < _IDLE_POLLS else _IDLE_POLL_MS

    async def _sync(self, timeout_ms: int) -> Answer | None:
        """The answer to a sync; None where another one has to be made. Raises MatrixRefused and MatrixUnreachable."""
        query: dict[str, str | int] = {"timeout": timeout_ms, "set_presence": "offline", "filter": self._filter()}
        if self._since:
            query["since"] = self._since
        try:
            return await self._account.api.call("GET", "/sync", query=query, timeout_s=timeout_ms / 1_000 + _LATE_S)
        except MatrixRefused as error:
            if error.status != 400 or error.is_bad_token or not self._since:
                raise
            _log.warning("the homeserver does not accept where reading went on, messages of a day are read: %s", error)
            self._since, self._is_lost = "", True
            return None
        except MatrixUnreachable as error:
            if not error.is_too_long or self._limit == 1:
                raise
            self._limit = max(1, self._limit // 4)
            return None

    def _filter(self) -> str:
        """The events that the server sends: at first contact of each room only its state, and one event."""
        is_first = not self._since and not self._is_lost
        none: dict[str, object] = {"types": []}
        wanted = {
            "presence": none,
            "account_data": {"types": ["m.direct"]},
            "room": {
                "timeline": {"types": TIMELINE_TYPES, "limit": 1 if is_first else self._limit},
                "state": {"types": STATE_TYPES, "lazy_load_members": True},
                "ephemeral": none,
                "account_data": none,
            },
        }
        return json.dumps(wanted)

    def _came(self, answer: Answer, user: MatrixUser) -> Sequence[tuple[str, object]]:
        """Take account data and invitations; returns the rooms in which something happened, with what happened."""
        for event in _list(_inside(answer.get("account_data"), "events")):
            if isinstance(event, Mapping) and event.get("type") == "m.direct":
                self._account.rooms.mark_direct(event.get("content"))
        rooms = answer.get("rooms")
        self._invites.take(_inside(rooms, "invite"), user.id)
        left = [*_rooms(_inside(rooms, "leave"))]
        joined = [*_rooms(_inside(rooms, "join"))]
        for room, _ in (*left, *joined):
            self._invites.settle(room)
        for room, _ in left:
            self._account.rooms.leave(room)
        return (*left, *joined)

    async def _read(
        self, came: Sequence[tuple[str, object]], waited: Sequence[tuple[str, Event]], user: MatrixUser
    ) -> list[Incoming]:
        """The messages that waited for a key, and those in the rooms of a sync. Before the first contact are none."""
        is_first = not self._since and not self._is_lost
        is_gap = self._last_ok is None or self._clock.monotonic_ms() - self._last_ok > _GAP_MS
        round_ = self._reader.round(user, self._since, is_gap=is_gap or self._is_lost)
        said = await round_.read_late(waited)
        for room, told in came:
            if not isinstance(told, Mapping):
                raw = raw_of({room: told})
                said.append(unreadable(raw, key_of({}, raw), user))
            elif is_first:
                round_.take_state(room, told)
            else:
                said += await round_.read(room, told)
        return said

    def _moved(self, batch: str, user: MatrixUser, *, has_news: bool) -> dict[str, str]:
        """The cursors that moved, with where the next sync begins; none where nothing happened."""
        values = {
            DEVICE: user.device,
            INVITES: self._invites.value,
            ENCRYPTED_ROOMS: " ".join(sorted(self._account.rooms.encrypted)),
        }
        changed = {name: one for name, one in values.items() if one != self._stored.get(name, "")}
        if has_news or changed or not self._stored.get(SINCE) or self._is_lost:
            changed[SINCE] = batch
        return changed


def _inside(told: object, name: str) -> object:
    return told.get(name) if isinstance(told, Mapping) else None


def _list(told: object) -> list[object]:
    return told if isinstance(told, list) else []


def _rooms(told: object) -> Iterator[tuple[str, object]]:
    """The rooms in a part of a sync, by their ids."""
    if isinstance(told, Mapping):
        yield from ((str(room), one) for room, one in told.items())
