"""Telemetry of an instance: what is counted and traced while it works, around the ports of the core."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack
from hashlib import blake2b
from importlib.metadata import version
from typing import TYPE_CHECKING

from keepsaid.config import Config
from keepsaid.domain.memory import Injection, Listener, Recalled
from keepsaid.domain.message import Lane, StoredMessage
from keepsaid.domain.trust import Fence
from keepsaid.domain.turn import ClaimedBatch, ModelAnswer, Recent
from keepsaid.errors import ConfigError, installation
from keepsaid.memory.recall.recollection import NO_EMBEDDER
from keepsaid.ports.memory_store import Recall, Reminder
from keepsaid.ports.model import Delta, Loadable, Model, ModelRequest
from keepsaid.ports.telemetry import NO_TELEMETRY, Doing, NoTelemetry, Telemetry, TraceSpan
from keepsaid.services.metrics import ProcessMetrics
from keepsaid.values import frozen

if TYPE_CHECKING:
    from keepsaid.adapters.telemetry.otel import OtelTracer


class RecordedTelemetry(NoTelemetry):
    """Counts and durations are kept for `/metrics`; there are no spans."""

    __slots__ = ("metrics",)

    def __init__(self, metrics: ProcessMetrics) -> None:
        self.metrics = metrics

    def add(self, name: str, labels: tuple[str, ...] = (), amount: float = 1.0) -> None:
        """Raise a counter."""
        self.metrics.add(name, labels, amount)

    def observe(self, name: str, seconds: float, labels: tuple[str, ...] = ()) -> None:
        """Count a duration."""
        self.metrics.observe(name, seconds, labels)


class TracedTelemetry(RecordedTelemetry):
    """Counts, durations and spans."""

    __slots__ = ("tracer",)

    def __init__(self, metrics: ProcessMetrics, tracer: OtelTracer) -> None:
        super().__init__(metrics)
        self.tracer = tracer

    def span(self, doing: Doing, name: str = "") -> AbstractContextManager[TraceSpan]:
        """A span of the tracer."""
        return self.tracer.span(doing, name)

    def turn_span(self, lane: Lane, messages: Sequence[StoredMessage]) -> AbstractContextManager[TraceSpan]:
        """The span of a turn."""
        return self.tracer.turn_span(lane, messages)

    def continued(self, traceparent: str) -> AbstractContextManager[object]:
        """The trace of a caller."""
        return self.tracer.continued(traceparent)


class MeteredModel:
    """A model whose tokens and costs are counted. Its calls have no span here: the adapter's library makes it."""

    def __init__(self, model: Model, telemetry: Telemetry) -> None:
        self._model = model
        self.telemetry = telemetry

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._model.name

    async def load(self) -> None:
        """Load the model, if it has something to load."""
        if isinstance(self._model, Loadable):
            await self._model.load()

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """One call of the model."""
        answer = await self._model.answer(request, delta)
        used, name = answer.usage, self._model.name
        if used.tokens_in or used.tokens_out:
            self.telemetry.add("keepsaid_model_tokens_total", (name, "input"), used.tokens_in)
            self.telemetry.add("keepsaid_model_tokens_total", (name, "output"), used.tokens_out)
        if used.cost_micros:
            self.telemetry.add("keepsaid_model_cost_dollars_total", (name,), used.cost_micros / 1_000_000)
        return answer


def metered_as(model: Model, other: Model) -> Model:
    """Another model, metered if `model` is."""
    return MeteredModel(other, model.telemetry) if isinstance(model, MeteredModel) else other


def instrument_of(model: Model) -> Callable[[], object] | None:
    """What makes the settings by which calls of models are traced; None where they are not."""
    return chat_instrument(model.telemetry) if isinstance(model, MeteredModel) else None


def chat_instrument(telemetry: Telemetry) -> Callable[[], object] | None:
    """The same for a telemetry."""
    return telemetry.tracer.instrument_chat if isinstance(telemetry, TracedTelemetry) else None


@frozen
class TracedRecall:
    """Recall that a model asked for, with a span."""

    recalling: Recall
    telemetry: Telemetry

    async def recall(self, listener: Listener, query: str, limit: int, as_of: int | None = None) -> Recalled:
        """The best memories for a query."""
        with self.telemetry.span(Doing.SEARCH_MEMORY) as span:
            recalled = await self.recalling.recall(listener, query, limit, as_of)
            span.note("records", len(recalled.hits))
            return recalled


@frozen
class TracedReminder:
    """Recall before a turn, with a span, the durations of its legs, and its result."""

    reminder: Reminder
    telemetry: Telemetry

    async def remind(self, claimed: ClaimedBatch, recent: Awaitable[Recent]) -> Injection:
        """The memories to inject."""
        with self.telemetry.span(Doing.SEARCH_MEMORY) as span:
            found = await self.reminder.remind(claimed, recent)
            chosen = sum(one.chosen for one in found.candidates)
            span.note("records", chosen)
        add, observe = self.telemetry.add, self.telemetry.observe
        for leg in found.searched:
            observe("keepsaid_recall_seconds", leg.took_ms / 1_000, (leg.leg,))
        add("keepsaid_injected_total", (_result_of(found),))
        if not found.skipped:
            observe("keepsaid_inject_seconds", found.took_ms / 1_000)
            add("keepsaid_inject_items_total", ("chosen",), chosen)
            add("keepsaid_inject_items_total", ("left_out",), len(found.candidates) - chosen)
        return found


def _result_of(found: Injection) -> str:
    """The label of an injection. A leg that is not set up, and a query that was cut, do not count as faults."""
    if found.skipped:
        return "skipped"
    if any(one != NO_EMBEDDER and not one.startswith("query:") for one in found.missing):
        return "degraded"
    return "injected" if found.block else "nothing"


async def telemetry_of(config: Config, fence: Fence, closing: AsyncExitStack) -> Telemetry:
    """What the settings ask for; nothing is recorded where they ask for nothing.

    `fence` has the key of the home, and `closing` sends the last spans. Raises ConfigError without the libraries.
    """
    settings = config.telemetry
    if settings.traces:
        tracer = await asyncio.to_thread(_tracer_of, config, fence)
        closing.push_async_callback(asyncio.to_thread, tracer.close)
        return TracedTelemetry(ProcessMetrics(), tracer)
    return RecordedTelemetry(ProcessMetrics()) if settings.metrics else NO_TELEMETRY


def _tracer_of(config: Config, fence: Fence) -> OtelTracer:
    try:
        from keepsaid.adapters.telemetry import otel  # noqa: PLC0415 - an extra
    except ImportError as error:
        what = f"traces need libraries that are not installed ({error})"
        raise ConfigError(what, safe="Nothing was changed.", hint=installation("otel")) from error
    settings = config.telemetry
    headers = {name: value.get_secret_value() for name, value in settings.headers.items()}

    def hash_of(text: str) -> str:
        return blake2b(text.encode("utf-8", "replace"), key=fence.key, digest_size=8, person=b"trace").hexdigest()

    exporter = otel.exporter_to(settings.endpoint, headers)
    terms = otel.TraceTerms(settings.genai == "latest", config.agent, hash_of)
    return otel.OtelTracer(exporter, settings.share, version("keepsaid"), terms)
