"""Maintenance, joined: the store it is done to, and by which terms."""

from __future__ import annotations

from keepsaid.adapters.sqlite.memory_store import SqliteMemories
from keepsaid.config import Config
from keepsaid.memory.associate import Associating
from keepsaid.memory.embed import Embedding
from keepsaid.memory.maintain import Maintenance, MaintenanceTerms
from keepsaid.ports.clock import Clock
from keepsaid.ports.halt import Halt


def maintenance_of(
    config: Config, memories: SqliteMemories, clock: Clock, embedding: Embedding | None, halt: Halt | None = None
) -> Maintenance:
    """What looks after the memories of an instance, until the halt is asked."""
    terms = MaintenanceTerms(config.maintenance.curve(), config.maintenance.hour)
    associating = Associating(memories.relating, memories, memories.graph, clock)
    return Maintenance(memories.upkeep, clock, terms, embedding, associating, halt)
