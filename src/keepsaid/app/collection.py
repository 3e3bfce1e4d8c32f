"""Collection, joined: who reads marked sessions, how much a day may cost, and what is done at night."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from zoneinfo import ZoneInfo

from keepsaid.adapters.models.extractor import CALLS_MAX, ModelExtractor
from keepsaid.config import Config
from keepsaid.domain.turn import NO_MODEL
from keepsaid.engine.collector import Collector, Nightly, Pace, UnreadSessions
from keepsaid.engine.loops import Stage
from keepsaid.memory.collect import Collection, CollectionStore, Reading
from keepsaid.memory.explicit import ExplicitExtractor
from keepsaid.ports.clock import Clock, Ids
from keepsaid.ports.extractor import Extractor
from keepsaid.ports.learning import Learning
from keepsaid.ports.model import Model
from keepsaid.ports.redactor import Redactor

_NIGHT_MS = 60_000
"""How often it is asked whether it is night."""


@dataclass(frozen=True, slots=True)
class Collecting:
    """What collects in an instance."""

    collector: Collector
    nightly: Nightly
    every_ms: int

    def stages(self) -> tuple[Stage, ...]:
        """The loops."""
        collect = Stage("collect", self.collector.work, self.collector.hint, self.every_ms, vital=False)
        return collect, Stage("nightly", self.nightly.work, asyncio.Event(), _NIGHT_MS, vital=False)


def collecting_of(
    config: Config, stores: tuple[CollectionStore, Learning], model: Model, time: tuple[Clock, Ids], redactor: Redactor
) -> Collecting | None:
    """What collects, as the config says; None where nothing is to be collected."""
    settings = config.collection
    if settings.extractor == "off":
        return None
    extractor = _extractor(config, model)
    store, learning = stores
    reading = Reading(
        settings.records_max,
        settings.tokens_max,
        settings.tries,
        int(settings.retry_s * 1000),
        int(settings.timeout_s * 1000) * (CALLS_MAX + 1),
    )
    clock = time[0]
    collection = Collection(store, learning, extractor, time, redactor, reading)
    collector = Collector(
        collection, clock, Pace(settings.passages_max, settings.calls_a_day, settings.model_tokens_a_day)
    )
    unread = UnreadSessions(store, collector, clock, thorough=extractor.thorough)
    nightly = Nightly(store, clock, unread, (settings.nightly_hour, ZoneInfo(config.slots.timezone)))
    return Collecting(collector, nightly, int(settings.every_s * 1000))


def _extractor(config: Config, model: Model) -> Extractor:
    settings = config.collection
    if settings.extractor == "rules" or model.name == NO_MODEL:
        return ExplicitExtractor()
    return ModelExtractor(model, settings.answer_tokens_max, settings.timeout_s)
