"""Hearers: every life tells one of all that matters, who is slow to learn, and one who never does.

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
from keepsaid_testkit.crash.evidence import HEARER, heard_beside

_CRITIC, _GUEST = "critic", "guest"
_TOPICS = ("turn.committed", RECEIVED)
_HARD = 5
"""Every so many events one is not learned at once."""

_PATIENT = DeliveryTerms(attempts_max=1_000, again_ms=20, again_ms_max=100)
_ONCE = DeliveryTerms(attempts_max=1)


class Hearer:
    """Writes down what it hears, on disk before it says so."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger
        self._met: set[int] = set()

    async def hear(self, event: Event) -> None:
        """Hear of an event; some have to be told twice."""
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


async def listen(instance: Instance, effects: Path) -> None:
    """Let them hear."""
    hearer = Hearer(heard_beside(effects))
    await instance.telling.subscribe(HEARER, _TOPICS, hearer.hear, from_start=True, terms=_PATIENT)
    await instance.telling.subscribe(_CRITIC, ("session.*",), _never, terms=_ONCE)


async def come_and_go(instance: Instance) -> None:
    """Let a guest hear, who leaves at once."""
    await instance.telling.subscribe(_GUEST, ("turn.*",), _never)
    await instance.telling.unsubscribe(_GUEST)
