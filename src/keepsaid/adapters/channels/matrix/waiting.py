"""Encrypted events of Matrix that wait for their key: as they came, in the store, until it comes."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from keepsaid.adapters.channels.matrix.megolm import MegolmMachine
from keepsaid.adapters.channels.matrix.records import CryptoRecords, is_nameable
from keepsaid.adapters.channels.matrix.updates import Event

_log = logging.getLogger("keepsaid.matrix")
_WAITING = "wait"
_WAITING_MAX = 100


class WaitingEvents:
    """The events that wait, by room and session: 100 of a session."""

    def __init__(self, records: CryptoRecords, keys: MegolmMachine) -> None:
        self._records = records
        self._keys = keys

    def add(self, room: str, session: str, event: Event) -> None:
        """Keep an event until its key comes; the oldest of too many waits no longer."""
        waiting = self._of(room, session)
        if any(one.get("event_id") == event.get("event_id") for one in waiting):
            return
        if len(waiting) >= _WAITING_MAX:
            _log.warning("an event in %s waits no longer for its key: %d others do", room, len(waiting))
            waiting = waiting[1:]
        self._records.write({"events": [*waiting, event]}, _WAITING, room, session)

    def ready(self) -> Iterator[tuple[str, Event]]:
        """The events whose key is here, with their rooms; they wait no longer."""
        for room, session in self._records.names(_WAITING):
            waiting = self._of(room, session)
            users = {str(one.get("sender")) for one in waiting}
            if any(is_nameable(user) and self._keys.has_key(room, session, user) for user in users):
                self._records.write({}, _WAITING, room, session)
                yield from ((room, one) for one in waiting)

    def _of(self, room: str, session: str) -> list[Event]:
        kept = self._records.read(_WAITING, room, session)
        return list(kept["events"]) if kept is not None else []
