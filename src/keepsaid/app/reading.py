"""Reading: the stores of a home, read only, whether or not a runtime is working on them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from keepsaid.adapters.sqlite.chronicle import SqliteChronicles
from keepsaid.adapters.sqlite.memory_store import SqliteMemories
from keepsaid.adapters.sqlite.stores import read_stores
from keepsaid.adapters.system.clock import SystemClock, SystemIds
from keepsaid.config import Config, Home
from keepsaid.memory.recall import Recollection
from keepsaid.memory.recall.legs import Leg
from keepsaid.ports.clock import Clock

PATIENT_MS = 10_000
"""Milliseconds a search may take that a person or a model asked for."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Both stores, for reading."""

    views: SqliteChronicles
    memories: SqliteMemories
    recall: Recollection


@asynccontextmanager
async def reading(home: Home, config: Config) -> AsyncIterator[Reading]:
    """The stores of a home, read only, whether or not a runtime is working on them."""
    async with AsyncExitStack() as closing:
        paths = home.store(config.buffer.path), home.store(config.memory.path)
        views, memories = await read_stores(*paths, SystemIds(), closing)
        yield Reading(views, memories, recollection(memories, SystemClock(), PATIENT_MS))


def recollection(memories: SqliteMemories, clock: Clock, limit_ms: float) -> Recollection:
    """Ranked recall over the legs there are; `limit_ms` is the time each may take."""
    return Recollection((Leg("text", memories.text, limit_ms=limit_ms),), memories, clock)
