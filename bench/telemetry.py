"""Telemetry: what it costs a turn when it is off, with metrics, and with traces too; measured in pairs.

`none` is the model of all: an answer without a provider is the shortest turn there is, so the shares are the largest.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bench.turns import ask, rested
from keepsaid.adapters.telemetry.otel import OtelTracer, TraceTerms
from keepsaid.app.instance import Instance, Outside
from keepsaid.app.opening import opened
from keepsaid.app.telemetry import RecordedTelemetry, TracedTelemetry
from keepsaid.config import Config, Home
from keepsaid.config.services import TelemetryConfig
from keepsaid.config.settings import BufferConfig, ModelsConfig
from keepsaid.domain.message import Lane
from keepsaid.ports.telemetry import NO_TELEMETRY, Doing, Telemetry
from keepsaid.services.metrics import ProcessMetrics

_WARM_UP = 20
_LANE = Lane("http", "default", "bench", "root:bench")
_KEPT_SPANS = 100
_ROUNDS = 15


def traced() -> Telemetry:
    """Metrics and traces; spans end in memory, where an exporter takes them from the thread of the batches."""
    terms = TraceTerms(genai=True, agent="main", hash_of=lambda _: "0" * 16)
    return TracedTelemetry(ProcessMetrics(), OtelTracer(InMemorySpanExporter(_KEPT_SPANS), 1.0, "bench", terms))


def measured() -> Telemetry:
    """Metrics alone, as by default."""
    return RecordedTelemetry(ProcessMetrics())


def off() -> Telemetry:
    """Nothing is recorded."""
    return NO_TELEMETRY


KINDS: dict[str, Callable[[], Telemetry]] = {"off": off, "off_twin": off, "metrics": measured, "traces": traced}
"""What is compared: each in an instance of its own, and each message is put to all in turn.

The twin is off too: how far its ratio is from 1 says what the measurement is worth.
"""


def pass_hooks(telemetry: Telemetry) -> None:
    """Everything that one message with an answer meets on its path, a tool and eight commits included."""
    add, observe = telemetry.add, telemetry.observe
    with telemetry.span(Doing.RECEIVE) as span:
        span.note("channel", "http")
        span.note("intake", "stored")
        span.begins(1)
    add("keepsaid_batches_routed_total", ("forward",))
    observe("keepsaid_route_wait_seconds", 0.01)
    with telemetry.turn_span(_LANE, ()) as span:
        span.note("channel", "http")
        with telemetry.span(Doing.SEARCH_MEMORY) as inner:
            inner.note("records", 3)
        for leg in ("text", "vector", "graph"):
            observe("keepsaid_recall_seconds", 0.01, (leg,))
        observe("keepsaid_inject_seconds", 0.02)
        add("keepsaid_injected_total", ("injected",))
        add("keepsaid_inject_items_total", ("chosen",), 3)
        add("keepsaid_inject_items_total", ("left_out",), 9)
        with telemetry.span(Doing.TOOL, "memory_search") as inner:
            inner.note("tool_class", "pure")
    observe("keepsaid_turn_seconds", 0.5)
    observe("keepsaid_reply_wait_seconds", 1.0)
    for _ in range(8):
        observe("keepsaid_commit_seconds", 0.002, ("operations",))
    with telemetry.span(Doing.DELIVER) as span:
        span.note("outcome", "confirm")
    add("keepsaid_replies_total", ("http", "confirm"))
    observe("keepsaid_delivery_seconds", 0.1)


def hooks_us(times: int) -> dict[str, float]:
    """Microseconds of the hooks of one message, by kind; the least of several measurements, the kinds in turn."""
    made = {kind: one() for kind, one in KINDS.items()}
    least = dict.fromkeys(KINDS, float("inf"))
    for _ in range(_ROUNDS):
        for kind, telemetry in made.items():
            start = time.perf_counter()
            for _ in range(times):
                pass_hooks(telemetry)
            least[kind] = min(least[kind], (time.perf_counter() - start) / times * 1e6)
    return least


async def run(folder: Path, turns: int) -> dict[str, list[float]]:
    """Seconds of each turn, by kind; the order of the kinds changes with each message."""
    took: dict[str, list[float]] = {kind: [] for kind in KINDS}
    config = Config(
        models=ModelsConfig(chat="none"), buffer=BufferConfig(window_ms=0), telemetry=TelemetryConfig(metrics=False)
    )
    async with AsyncExitStack() as open_:
        instances: dict[str, Instance] = {}
        for kind, made in KINDS.items():
            outside = Outside(telemetry=made())
            instances[kind] = await open_.enter_async_context(opened(Home.at(folder / kind), config, outside=outside))
            await instances[kind].start()
        order = list(KINDS)
        for n in range(turns + _WARM_UP):
            order.append(order.pop(0))
            for kind in order:
                seconds = await ask(instances[kind], f"what did we say about the {n}th thing, and when was that?")
                if n >= _WARM_UP:
                    took[kind].append(seconds)
                await rested()
    return took


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Median of the ratios of turns in pairs; then the hooks of one message alone, and their share of a turn."""
    hooks = hooks_us(max(200, int(2_000 * scale)))
    took = asyncio.run(run(folder, max(50, int(500 * scale))))
    off = took["off"]
    ratios = {kind: median(one / other for one, other in zip(took[kind], off, strict=True)) for kind in KINDS}
    turn_us = median(off) * 1e6
    return {
        "turns": len(off),
        "turn_off_p50_ms": turn_us / 1e3,
        "ratio_p50": ratios,
        "hooks_us": hooks,
        "hooks_share_of_turn": {kind: us / turn_us for kind, us in hooks.items()},
    }
