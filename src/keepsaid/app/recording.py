"""Recording: what turns that ended leave in memory, joined."""

from __future__ import annotations

from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.adapters.sqlite.memory_store import SqliteMemories
from keepsaid.memory.recording import Deeds, Recorder
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Store


def recorder_of(operations: Store, memories: SqliteMemories, clock: Clock, redactor: PatternRedactor) -> Recorder:
    """What was said and what tools asked of memory, recorded once its turn is over."""
    return Recorder(operations, memories, operations, clock, redactor, Deeds(memories, memories.truth))
