"""Compaction, joined: who summarises, when, and what guards the window."""

from __future__ import annotations

from keepsaid.adapters.models.summariser import ModelSummariser
from keepsaid.config import Config
from keepsaid.domain.turn import NO_MODEL
from keepsaid.engine.compactor import Compactor
from keepsaid.memory.summaries import (
    Compaction,
    CompactionStore,
    Extractor,
    OtherLanes,
    Summaries,
    SummaryCopier,
    SummaryStore,
    WholeTerms,
)
from keepsaid.pipeline.prompt.guard import Guard, Windows
from keepsaid.ports.memory_store import Memories
from keepsaid.ports.model import Model
from keepsaid.ports.redactor import Redactor
from keepsaid.ports.runtime import Clock, Offload
from keepsaid.ports.store_views import ContextView, ConversationLanes


def compaction_of(
    config: Config, store: CompactionStore, model: Model, clock: Clock, reading: tuple[Redactor, Offload]
) -> Compaction:
    """What summarises one lane, by the chat model or, where none is set, word for word.

    `reading` is the redactor, and what runs work over long texts.
    """
    settings = config.compaction
    redactor, offload = reading
    summariser = Extractor(offload) if model.name == NO_MODEL else ModelSummariser(model)
    summaries = Summaries(settings.summary_tokens, settings.timeout_s, int(settings.retry_s * 1000))
    return Compaction(store, summariser, clock, redactor.redacted, settings.terms(), summaries, offload)


def copier_of(config: Config, store: SummaryStore, memories: Memories, clock: Clock) -> SummaryCopier:
    """What copies summaries to memory."""
    return SummaryCopier(store, memories, clock, _whole(config))


def overview_of(config: Config, store: ContextView) -> ConversationLanes | None:
    """What tells of a conversation's other lanes, where the config wants that in the prompt."""
    return OtherLanes(store, _whole(config)) if config.compaction.session_in_prompt else None


def _whole(config: Config) -> WholeTerms:
    settings = config.compaction
    return WholeTerms(
        settings.session_messages, settings.session_tokens, settings.session_keep, settings.summary_tokens
    )


def guard_of(config: Config, store: CompactionStore, clock: Clock, compactor: Compactor) -> Guard:
    """What watches prompts, and names the lanes that are due."""
    settings = config.compaction
    windows = Windows(
        settings.window_tokens, settings.windows, settings.background, settings.aggressive, settings.emergency
    )
    return Guard(store, store, clock, compactor.name, windows, settings.terms())
