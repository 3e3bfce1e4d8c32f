"""Reading what a sync says of a room: its events as messages, with those that the sync left out."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from keepsaid.adapters.channels.matrix.events import target_of
from keepsaid.adapters.channels.matrix.gap import ALL_MAX, ROOM_MAX, is_recent, missed_events, since_joined
from keepsaid.adapters.channels.matrix.line import MatrixAccount
from keepsaid.adapters.channels.matrix.updates import (
    ENCRYPTED_EVENT,
    Event,
    MatrixUser,
    incoming_of,
    key_of,
    raw_of,
    unreadable,
)
from keepsaid.errors import InputError
from keepsaid.ports.channel import Incoming
from keepsaid.ports.runtime import Clock

_log = logging.getLogger("keepsaid.matrix")
WAITS = ":encrypted"
"""The end of the key of a message that cannot be read yet: once it can be, it comes with the key alone."""


class MatrixReader:
    """Reads the rooms of an account."""

    def __init__(self, account: MatrixAccount, clock: Clock) -> None:
        self._account = account
        self._clock = clock

    def round(self, user: MatrixUser, since: str, *, is_gap: bool) -> ReadingRound:
        """The reading of one sync: `is_gap` says that it follows a time in which nothing was read.

        `since` is where it began; "" where that is not known.
        """
        return ReadingRound(self._account, user, since, self._clock.now_ms(), is_gap=is_gap)


class ReadingRound:
    """Reads the rooms of one sync. After a gap 100 messages of a room are read, of a day, and 500 in all."""

    def __init__(self, account: MatrixAccount, user: MatrixUser, since: str, now_ms: int, *, is_gap: bool) -> None:
        self._api = account.api
        self._known = account.rooms
        self._crypto = account.crypto_of(user)
        self._user = user
        self._since = since
        self._now_ms = now_ms
        self._is_gap = is_gap
        self._left = ALL_MAX

    def take_state(self, room: str, told: Mapping[str, object]) -> None:
        """Take what a room is, and none of its messages."""
        timeline = [one for one in _events(told, "timeline") if isinstance(one, Mapping)]
        self._known.take(room, told, _state(told), timeline)

    async def read(self, room: str, told: Mapping[str, object]) -> list[Incoming]:
        """The messages of a room, oldest first. Raises MatrixRefused for what passes, and MatrixUnreachable."""
        timeline = told.get("timeline")
        if timeline is not None and not _is_timeline(timeline):
            raw = raw_of({room: told})
            return [unreadable(raw, key_of({}, raw), self._user)]
        self.take_state(room, told)
        events = _events(told, "timeline")
        missed: list[object] = []
        if isinstance(timeline, Mapping) and timeline.get("limited") is True:
            missed = await missed_events(self._api, room, timeline, self._since, self._user.id)
        held = len(events)
        events = since_joined([*missed, *events], self._user.id)
        missed, events = events[: max(0, len(events) - held)], events[max(0, len(events) - held) :]
        if self._is_gap:
            missed, events = [*missed, *events], []
        return [
            *self._bounded(room, await self._messages(room, missed, is_old=True)),
            *await self._messages(room, events, is_old=False),
        ]

    async def read_late(self, waited: Sequence[tuple[str, Event]]) -> list[Incoming]:
        """The messages in encrypted events whose key came after them. Raises as `read`."""
        return [one for room, event in waited if (one := await self._message(room, event)) is not None]

    async def _messages(self, room: str, events: Sequence[object], *, is_old: bool) -> list[Incoming]:
        """Events as messages; those of a gap that are older than a day are left out."""
        said: list[Incoming] = []
        too_old = 0
        for event in events:
            if not isinstance(event, Mapping):
                raw = raw_of(event)
                said.append(unreadable(raw, key_of({}, raw), self._user))
            elif is_old and not is_recent(event, self._now_ms):
                too_old += 1
            elif (one := await self._message(room, event)) is not None:
                said.append(one)
        if too_old:
            _log.warning("events in %s that are older than a day are not read: %d", room, too_old)
        return said

    async def _message(self, room: str, event: Event) -> Incoming | None:
        is_sealed = event.get("type") == ENCRYPTED_EVENT and event.get("sender") != self._user.id
        if is_sealed and self._crypto is not None:
            event = await self._crypto.open(room, event) or event
        self._known.note(event)
        try:
            number = target_of(event)
        except InputError:
            number = None
        if event.get("sender") == self._user.id:
            return None
        place = await self._known.place(room, event.get("sender"), self._user)
        target = await self._known.related(room, number) if number is not None else None
        incoming = incoming_of(event, place, self._user, target)
        if incoming is None or self._crypto is None or event.get("type") != ENCRYPTED_EVENT:
            return incoming
        return replace(incoming, external_id=f"{incoming.external_id}{WAITS}")

    def _bounded(self, room: str, said: list[Incoming]) -> list[Incoming]:
        """The oldest of the messages that were missed, as many as there is room for.

        The newest, if nobody knows which of them were stored before.
        """
        count = min(ROOM_MAX, self._left)
        taken = said[:count] if self._since else said[max(0, len(said) - count) :]
        self._left -= len(taken)
        if left := len(said) - len(taken):
            _log.warning("messages in %s that may have been missed are not read: %d", room, left)
        return taken


def _is_timeline(timeline: object) -> bool:
    return isinstance(timeline, Mapping) and isinstance(timeline.get("events", []), list)


def _state(told: Mapping[str, object]) -> list[Event]:
    return [one for one in _events(told, "state") if isinstance(one, Mapping)]


def _events(told: Mapping[str, object], part: str) -> list[object]:
    """The events in a part of a room."""
    inside = told.get(part)
    events = inside.get("events") if isinstance(inside, Mapping) else None
    return events if isinstance(events, list) else []
