"""Maintenance, joined: the store it is done to, and by which terms."""

from __future__ import annotations

from keepsaid.adapters.models.judge import ModelJudge
from keepsaid.adapters.sqlite.memory_store import SqliteMemories
from keepsaid.config import Config
from keepsaid.domain.turn import NO_MODEL
from keepsaid.memory.indexing import Associating, Embedding
from keepsaid.memory.maintenance import Judging, Maintenance, MaintenanceTerms
from keepsaid.ports.model import Model
from keepsaid.ports.runtime import Clock, Halt


def maintenance_of(
    config: Config,
    memories: SqliteMemories,
    clock: Clock,
    minds: tuple[Embedding | None, Model | None],
    halt: Halt | None = None,
) -> Maintenance:
    """What looks after the memories of an instance, until the halt is asked; `minds` embed, and answer."""
    embedding, model = minds
    settings = config.maintenance
    judge = ModelJudge(model) if model is not None and model.name != NO_MODEL and settings.judge_pairs_a_day else None
    judging = Judging(memories.pairs, clock, judge, settings.judge_pairs_a_day)
    terms = MaintenanceTerms(settings.curve(), settings.hour, settings.step_ms or None)
    associating = Associating(memories.relating, memories, memories.graph, clock)
    return Maintenance(memories.upkeep, clock, terms, embedding, associating, halt, judging)
