"""Spans by OpenTelemetry (extra `otel`): what the core does, as a trace, sent to a collector over OTLP.

The names `keepsaid.*` are stable; those of the conventions for generative AI come from `genai.py`. No attribute holds
text, a sender or a conversation: a lane is a keyed hash.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import Token
from types import TracebackType

from opentelemetry import context, trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.trace.status import Status

from keepsaid.adapters.telemetry import genai
from keepsaid.domain.message import Lane, StoredMessage
from keepsaid.ports.telemetry import TRACE_ID, Attribute, Doing, TraceSpan
from keepsaid.values import frozen

_LINKED_MAX = 4_096
"""Received messages whose spans are kept, so that the span of their turn can be linked to them."""

_EXPORT_S, _FLUSH_S = 5.0, 2.0
"""Seconds one export may take, and those a stop waits for the last one."""

_OWN_SCOPE = "keepsaid"

_OWN: Mapping[Doing, str] = {one: f"keepsaid.{one}" for one in Doing}
"""The stable names of spans."""

_KINDS = {Doing.RECEIVE: trace.SpanKind.CONSUMER, Doing.DELIVER: trace.SpanKind.PRODUCER}


@frozen
class TraceTerms:
    """What traces say: names of the conventions too (`genai`), the agent's name, and the hash of a lane."""

    genai: bool
    agent: str
    hash_of: Callable[[str], str]


class _PlainExporter(SpanExporter):
    """Exports spans without what a library may have put into them: of its spans, only attributes that hold no text.

    Events go, because they hold messages of exceptions, and so do descriptions of failures.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export spans, on the thread of the batches."""
        return self._exporter.export([_plain(span) for span in spans])

    def shutdown(self) -> None:
        """End the exports."""
        self._exporter.shutdown()


def _plain(span: ReadableSpan) -> ReadableSpan:
    scope = span.instrumentation_scope
    if scope is not None and scope.name == _OWN_SCOPE:
        return span
    return ReadableSpan(
        span.name,
        span.get_span_context(),
        parent=span.parent,
        resource=span.resource,
        attributes={name: value for name, value in (span.attributes or {}).items() if genai.says_no_text(name)},
        kind=span.kind,
        instrumentation_scope=scope,
        status=Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
    )


def _provider_of(exporter: SpanExporter, share: float, version: str) -> TracerProvider:
    """A provider that sends spans by an exporter, in batches, from a thread; `share` of all traces is kept."""
    name = os.environ.get("OTEL_SERVICE_NAME") or "keepsaid"
    resource = Resource.create({SERVICE_NAME: name, SERVICE_VERSION: version})
    provider = TracerProvider(sampler=ParentBased(TraceIdRatioBased(share)), resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def exporter_to(endpoint: str | None, headers: Mapping[str, str]) -> SpanExporter:
    """An exporter to a collector; without an address, to that of OTEL_EXPORTER_OTLP_ENDPOINT, or this machine."""
    return OTLPSpanExporter(endpoint, headers=headers or None, timeout=_EXPORT_S)


_CALLERS = TraceContextTextMapPropagator()


class _OpenSpan:
    """A span while it lasts; it is the current one within its block."""

    __slots__ = ("_span", "_token", "_trace", "_tracer")

    def __init__(self, tracer: OtelTracer, span: trace.Span) -> None:
        self._tracer = tracer
        self._span = span
        self._token: Token[context.Context] | None = None
        self._trace: Token[str] | None = None

    def __enter__(self) -> TraceSpan:
        if self._span.is_recording():
            self._trace = TRACE_ID.set(trace.format_trace_id(self._span.get_span_context().trace_id))
        self._token = context.attach(trace.set_span_in_context(self._span))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace_: TracebackType | None
    ) -> None:
        if kind is not None:
            self._span.set_attribute("error.type", kind.__name__)
            self._span.set_status(trace.StatusCode.ERROR)
        if self._token is not None:
            context.detach(self._token)
        if self._trace is not None:
            TRACE_ID.reset(self._trace)
        self._span.end()

    def note(self, name: str, value: Attribute) -> None:
        """Add an attribute, under the own name and under that of the conventions."""
        self._tracer.note(self._span, name, value)

    def begins(self, message_id: int) -> None:
        """Keep the span for the turn that answers the message."""
        self._tracer.remember(message_id, self._span)


class OtelTracer:
    """Opens spans and sends them by an exporter; `share` of all traces is kept."""

    def __init__(self, exporter: SpanExporter, share: float, version: str, terms: TraceTerms) -> None:
        self._exporter = _PlainExporter(exporter)
        self._provider = _provider_of(self._exporter, share, version)
        self._tracer = self._provider.get_tracer(_OWN_SCOPE, version)
        self._terms = terms
        self._received: OrderedDict[int, trace.SpanContext] = OrderedDict()

    def span(self, doing: Doing, name: str = "") -> AbstractContextManager[TraceSpan]:
        """A span of the core; `name` is that of a tool."""
        return self._opened(doing, name, {}, ())

    def turn_span(self, lane: Lane, messages: Sequence[StoredMessage]) -> AbstractContextManager[TraceSpan]:
        """The span of a turn, linked to those of its messages that this process received."""
        hashed = self._terms.hash_of("\0".join(lane))
        more: dict[str, Attribute] = {"keepsaid.lane": hashed}
        if self._terms.genai:
            more[genai.CONVERSATION] = hashed
        received = (self._received.pop(message.id, None) for message in messages)
        return self._opened(Doing.TURN, "", more, [trace.Link(one) for one in received if one is not None])

    @contextmanager
    def continued(self, traceparent: str) -> Iterator[None]:
        """Open spans within the block as those of the trace that a caller names."""
        carried = _CALLERS.extract({"traceparent": traceparent}, context.get_current())
        token = context.attach(carried)
        try:
            yield
        finally:
            context.detach(token)

    def _opened(
        self, doing: Doing, tool: str, more: dict[str, Attribute], links: Sequence[trace.Link]
    ) -> AbstractContextManager[TraceSpan]:
        terms, name = self._terms, ""
        if tool:
            more["keepsaid.tool"] = tool
        if terms.genai:
            name = genai.span_name(doing, tool)
            more |= genai.attributes(doing, tool, terms.agent)
        kind = _KINDS.get(doing, trace.SpanKind.INTERNAL)
        span = self._tracer.start_span(name or _OWN[doing], kind=kind, attributes=more, links=links)
        return _OpenSpan(self, span)

    def note(self, span: trace.Span, name: str, value: Attribute) -> None:
        """Add an attribute to a span."""
        span.set_attribute(f"keepsaid.{name}", value)
        if self._terms.genai and (theirs := genai.note(name)):
            span.set_attribute(theirs, value)

    def remember(self, message_id: int, span: trace.Span) -> None:
        """Keep the place of a span in its trace, and forget the oldest beyond the bound."""
        self._received[message_id] = span.get_span_context()
        if len(self._received) > _LINKED_MAX:
            self._received.popitem(last=False)

    def instrument_chat(self) -> object:
        """The settings by which pydantic-ai makes the span of a call of the model; None without the conventions.

        The span has no content, and there are no metrics of the library.
        """
        if not self._terms.genai:
            return None
        from pydantic_ai.models.instrumented import InstrumentationSettings  # noqa: PLC0415 - half a second to import

        return InstrumentationSettings(
            tracer_provider=self._provider,
            meter_provider=NoOpMeterProvider(),
            include_content=False,
            include_binary_content=False,
            include_model_request_parameters=False,
        )

    def close(self) -> None:
        """Send what is left, for two seconds at most, and end the thread. It blocks."""
        ending = threading.Thread(target=self._provider.shutdown, name="keepsaid-traces", daemon=True)
        ending.start()
        ending.join(_FLUSH_S)
        if ending.is_alive():
            self._exporter.shutdown()  # ends the waits between its retries
            ending.join(_FLUSH_S)
