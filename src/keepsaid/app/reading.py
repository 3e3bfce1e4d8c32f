"""Reading: the stores of a home, read only, whether or not a runtime is working on them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from keepsaid.adapters.sqlite.chronicle import SqliteChronicles
from keepsaid.adapters.sqlite.memory_store import SqliteMemories
from keepsaid.adapters.sqlite.stores import read_stores
from keepsaid.adapters.system.clock import SystemClock, SystemIds
from keepsaid.app.embedders import embedder_of, former_of
from keepsaid.app.locations import stores_of
from keepsaid.config import Config, Home
from keepsaid.memory.indexing import Embedding
from keepsaid.memory.recall.ranking import TEXT, VECTOR, GraphLeg, Leg, coverage, spread
from keepsaid.memory.recall.recollection import NO_EMBEDDER, Recollection
from keepsaid.ports.runtime import Clock

PATIENT_MS = 10_000
"""Milliseconds a search may take that a person or a model asked for."""

TEXT_WEIGHT, VECTOR_WEIGHT = 0.75, 0.25
"""What the legs of recall weigh; measured, see docs/benchmarks.md."""

GRAPH_WEIGHT, GRAPH_SHARE = 0.25, 0.25
"""What the graph leg weighs, and how much of another leg's time it has: it begins when they have answered."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Both stores, for reading."""

    views: SqliteChronicles
    memories: SqliteMemories
    recall: Recollection
    archive: Recollection
    clock: Clock
    embedding: Embedding | None


@asynccontextmanager
async def reading(home: Home, config: Config) -> AsyncIterator[Reading]:
    """The stores of a home, read only, whether or not a runtime is working on them."""
    async with AsyncExitStack() as closing:
        views, memories = await read_stores(*stores_of(home, config), SystemIds(), closing)
        clock, embedder = SystemClock(), embedder_of(home, config, closing)
        former = former_of(home, config, closing)
        embedding = Embedding(embedder, memories, clock, former) if embedder else None
        recall, archive = recollection(memories, clock, PATIENT_MS, embedding), archive_of(memories, clock)
        yield Reading(views, memories, recall, archive, clock, embedding)


def archive_of(memories: SqliteMemories, clock: Clock) -> Recollection:
    """Ranked recall over what was archived."""
    leg = Leg("archive", memories.archive.text, 1.0, PATIENT_MS)
    return Recollection([leg], memories.archive, clock, (), None)


def recollection(
    memories: SqliteMemories, clock: Clock, limit_ms: float, embedding: Embedding | None = None
) -> Recollection:
    """Ranked recall over the legs there are; `limit_ms` is the time each may take."""
    legs = [Leg(TEXT, memories.text, TEXT_WEIGHT, limit_ms, coverage)]
    if embedding is not None:
        legs.append(Leg(VECTOR, embedding.search, VECTOR_WEIGHT, limit_ms, spread))
    graph = GraphLeg(memories.graph.walk, GRAPH_WEIGHT, limit_ms * GRAPH_SHARE)
    return Recollection(legs, memories, clock, () if embedding else (NO_EMBEDDER,), graph)
