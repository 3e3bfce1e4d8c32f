"""Memory of one instance, joined: extraction and its budget, recording of turns, maintenance."""

from __future__ import annotations

import asyncio
from dataclasses import field
from zoneinfo import ZoneInfo

from keepsaid.adapters.models.extractor import CALLS_MAX, ModelExtractor
from keepsaid.adapters.models.memory_calls import ModelJudge
from keepsaid.config import Config
from keepsaid.domain.ids import MAX_ID
from keepsaid.domain.session import ASKED, Invalidate, MarkUnprocessed, RequeueCollection
from keepsaid.domain.turn import NO_MODEL
from keepsaid.engine.collector import Collector, ExtractionPace, Nightly, UnreadSessions
from keepsaid.engine.supervisor import ServiceLoop
from keepsaid.errors import ConfigError
from keepsaid.extensions.loaded import Active, ExtensionExtractor, extension_id_of
from keepsaid.memory import extraction, indexing, maintenance, recording, stating
from keepsaid.ports.model import Extractor, Model
from keepsaid.ports.runtime import Clock, Ids, Redactor, StopToken
from keepsaid.ports.store import MemoryStore, Store
from keepsaid.values import frozen


def recorder_of(
    config: Config, operations: Store, memories: MemoryStore, clock: Clock, redactor: Redactor
) -> recording.Recorder:
    """What was said and what tools asked of memory, recorded once its turn is over."""
    requests = recording.StagedRequestExecutor(memories, memories.revisions)
    facts = stating.StatedFacts(memories) if config.collection.extractor != "none" else None
    return recording.Recorder(operations, memories, operations, clock, redactor, requests, facts)


def maintenance_of(
    config: Config,
    memories: MemoryStore,
    clock: Clock,
    minds: tuple[indexing.Embedding | None, Model | None],
    halt: StopToken | None = None,
) -> maintenance.Maintenance:
    """What looks after the memories of an instance, until the halt is asked; `minds` embed, and answer."""
    embedding, model = minds
    settings = config.maintenance
    judge = ModelJudge(model) if model is not None and model.name != NO_MODEL and settings.judge_pairs_a_day else None
    judging = maintenance.PairReviewer(memories.pairs, clock, judge, settings.judge_pairs_a_day)
    terms = maintenance.MaintenanceTerms(settings.curve(), settings.hour, settings.step_ms or None)
    associating = indexing.AssociationFinder(memories.relating, memories, memories.graph, clock)
    return maintenance.Maintenance(memories.upkeep, clock, terms, embedding, associating, halt or StopToken(), judging)


_NIGHT_MS = 60_000
"""How often it is asked whether it is night."""

_TICKS_MAX = 100


@frozen
class ExtractionService:
    """What collects in an instance; `on` says whether anything is to be."""

    store: Store
    collector: Collector
    nightly: Nightly
    clock: Clock
    every_ms: int
    thorough: bool
    on: bool
    halt: StopToken = field(default_factory=StopToken)

    def stages(self) -> tuple[ServiceLoop, ...]:
        if not self.on:
            return ()
        collect = ServiceLoop("collect", self.collector.work, self.collector.hint, self.every_ms, vital=False)
        return collect, ServiceLoop("nightly", self.nightly.work, asyncio.Event(), _NIGHT_MS, vital=False)

    async def requeue(self, session_id: int) -> bool:
        """Read a parked session again; False when it is not parked. Raises ConfigError where nothing is collected."""
        self._check()
        done = await self.store.apply(RequeueCollection(session_id, self.clock.due_ms()))
        self.collector.hint.set()
        return done

    async def mark(self, session_id: int | None = None) -> int:
        """Mark one session, or every one with unread records, until a stop; returns how many. Raises ConfigError."""
        self._check()
        marked = await self._mark_all() if session_id is None else await self._mark_one(session_id)
        self.collector.hint.set()
        return marked

    async def read_all(self) -> int:
        """Read what is due, a bounded number of ticks; returns how many passages were read to their end."""
        passages = 0
        for _ in range(_TICKS_MAX):
            if not (read := await self.collector.tick()):
                break
            passages += read
        return passages

    async def _mark_one(self, session_id: int) -> int:
        if (passage := await self.store.passage(session_id, MAX_ID, 1)) is None:
            return 0
        return int(await self.store.apply(Invalidate(session_id, passage.last, ASKED, self.clock.due_ms())))

    async def _mark_all(self) -> int:
        marked, after = 0, 0
        while True:
            done = await self.store.apply(MarkUnprocessed(self.clock.due_ms(), ASKED, after, thorough=self.thorough))
            marked += done.sessions
            if done.after is None or self.halt.is_set:
                return marked
            after = done.after

    def _check(self) -> None:
        if not self.on:
            what = "nothing is collected: collection.extractor is none"
            raise ConfigError(what, hint="keepsaid config show collection")


def collecting_of(
    config: Config,
    stores: tuple[Store, MemoryStore],
    readers: tuple[Model, Active],
    time: tuple[Clock, Ids],
    redactor: Redactor,
) -> ExtractionService:
    """What collects, as the config says: by the model, or by one of the extensions that are up."""
    settings = config.collection
    extractor = _extractor(config, *readers)
    store, memories = stores
    clock, times = time[0], (int(settings.retry_s * 1000), int(settings.timeout_s * 1000) * (CALLS_MAX + 1))
    reading = extraction.ExtractionLimits(
        settings.records_max, settings.tokens_max, settings.tries, *times, ripe=settings.records_min
    )
    known = extraction.KnownSlots(memories)
    collection = extraction.Collection(store, memories, extractor, *time, redactor, reading, memories.graph, known)
    pace = ExtractionPace(settings.passages_max, settings.daily_call_limit, settings.model_tokens_a_day)
    collector = Collector(collection, pace)
    unread = UnreadSessions(store, collector, clock, thorough=extractor.thorough)
    nightly = Nightly(store, clock, unread.night, settings.nightly_hour, ZoneInfo(config.slots.timezone))
    every_ms, on = int(settings.every_s * 1000), settings.extractor != "none"
    return ExtractionService(store, collector, nightly, clock, every_ms, extractor.thorough, on)


def _extractor(config: Config, model: Model, lent: Active) -> Extractor:
    settings = config.collection
    if lender := extension_id_of(settings.extractor):
        return ExtensionExtractor(lender, lent)
    if settings.extractor == "rules" or model.name == NO_MODEL:
        return extraction.ExplicitExtractor()
    return ModelExtractor(model, settings.answer_tokens_max, settings.timeout_s)
