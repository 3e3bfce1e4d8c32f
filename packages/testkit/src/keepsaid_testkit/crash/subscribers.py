"""Subscribers: every life has one of all that matters, which fails sometimes, and one that always fails.

The first raises at some events once a life, the other always: so deliveries are tried again, given up and decided.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import time

from keepsaid.app.instance import Instance
from keepsaid.domain.event import RECEIVED, Event
from keepsaid.engine.subscriptions import DeliveryTerms
from keepsaid_testkit.crash.evidence import HEARER, subscriber_ledger_path

_CRITIC, _GUEST = "critic", "guest"
_TOPICS = ("turn.committed", RECEIVED)
_HARD = 5
"""One in this number of events fails at first."""

_PATIENT = DeliveryTerms(attempts_max=1_000, again_ms=20, again_ms_max=100)
_ONCE = DeliveryTerms(attempts_max=1)


class LedgerSubscriber:
    """Subscriber that writes each event to a ledger, synced to disk before it returns."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._met: set[int] = set()

    async def handle_event(self, event: Event) -> None:
        """Write an event to the ledger. Some events fail at the first attempt in each process."""
        if event.id // 1_024 % _HARD == 0 and event.id not in self._met:
            self._met.add(event.id)
            raise ValueError("not understood")
        line = json.dumps({"event": event.id, "about": event.correlation_id, "at": round(1_000 * time())}) + "\n"
        file = os.open(self._ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(file, line.encode())
        os.fsync(file)
        os.close(file)


async def _never(_event: Event) -> None:
    raise ValueError("never")


async def subscribe_all(instance: Instance, effects: Path) -> None:
    """Subscribe the subscriber that writes a ledger, and one that always fails."""
    hearer = LedgerSubscriber(subscriber_ledger_path(effects))
    telling = instance.telling
    await telling.subscribe_leader(HEARER, _TOPICS, hearer.handle_event, from_start=True, terms=_PATIENT)
    await telling.subscribe_leader(_CRITIC, ("session.*",), _never, terms=_ONCE)


async def subscribe_briefly(instance: Instance) -> None:
    """Subscribe a third subscriber and unsubscribe it at once."""
    await instance.telling.subscribe(_GUEST, ("turn.*",), _never)
    await instance.telling.unsubscribe(_GUEST)
