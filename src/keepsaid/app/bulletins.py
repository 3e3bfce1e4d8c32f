"""Bulletins, joined: where they stand, who writes them, and how often."""

from __future__ import annotations

from keepsaid.adapters.models.judge import ModelEditor
from keepsaid.adapters.sqlite.memory_store import SqliteMemories
from keepsaid.config import Config
from keepsaid.domain.bulletin import MINUTE_MS
from keepsaid.domain.turn import NO_MODEL
from keepsaid.memory.bulletins import Briefings, BulletinTerms
from keepsaid.ports.model import Model
from keepsaid.ports.runtime import Clock


def briefings_of(config: Config, memories: SqliteMemories, model: Model, clock: Clock) -> Briefings | None:
    """What briefs turns, where the config wants that."""
    settings = config.bulletin
    if not settings.enabled:
        return None
    editor = ModelEditor(model) if settings.model and model.name != NO_MODEL else None
    every_ms = int(settings.every_min * MINUTE_MS)
    terms = BulletinTerms(every_ms, settings.words, settings.timeout_s, config.memory.deadline_ms)
    return Briefings(memories.bulletins, memories, clock, editor, terms)
