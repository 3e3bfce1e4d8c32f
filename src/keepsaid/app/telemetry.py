"""Telemetry of an instance: what is counted and traced while it works, around the ports of the core."""

from __future__ import annotations

from collections.abc import Awaitable

from keepsaid.config import Config
from keepsaid.domain.memory import Injection, Listener, Recalled
from keepsaid.domain.turn import ClaimedBatch, ModelAnswer, Recent
from keepsaid.memory.recall.recollection import NO_EMBEDDER
from keepsaid.ports.memory_store import Recall, Reminder
from keepsaid.ports.model import Delta, Loadable, Model, ModelRequest
from keepsaid.ports.telemetry import NO_TELEMETRY, Doing, NoTelemetry, Telemetry
from keepsaid.services.metrics import ProcessMetrics
from keepsaid.values import frozen


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


class MeteredModel:
    """A model whose tokens and costs are counted. Its calls have no span here: the adapter's library makes it."""

    def __init__(self, model: Model, telemetry: Telemetry) -> None:
        self._model = model
        self._telemetry = telemetry

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
            self._telemetry.add("keepsaid_model_tokens_total", (name, "input"), used.tokens_in)
            self._telemetry.add("keepsaid_model_tokens_total", (name, "output"), used.tokens_out)
        if used.cost_micros:
            self._telemetry.add("keepsaid_model_cost_dollars_total", (name,), used.cost_micros / 1_000_000)
        return answer


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


def telemetry_of(config: Config) -> Telemetry:
    """What the settings ask for; nothing is recorded where they ask for nothing."""
    return RecordedTelemetry(ProcessMetrics()) if config.telemetry.metrics else NO_TELEMETRY
