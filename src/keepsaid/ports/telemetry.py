"""Telemetry, as a port: the path of a message counts, measures and opens spans here; by default nothing is recorded.

The core names what it does in its own words (`Doing`). What a trace calls that is decided by the adapter.
Nothing that is passed here names a sender or holds text.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from enum import StrEnum
from types import TracebackType
from typing import Protocol

from keepsaid.domain.message import Lane, StoredMessage
from keepsaid.domain.prompt import ToolCall

Attribute = str | int | float | bool
"""The value of an attribute of a span."""


TRACE_ID: ContextVar[str] = ContextVar("keepsaid_trace_id", default="")
"""The id of the trace that the running code is a part of, 32 hexadecimal digits; "" for none. Log lines have it."""


CALL_ID: ContextVar[str] = ContextVar("keepsaid_call_id", default="")
"""The model's identifier of the tool call that is being made; "" outside of one."""

STEP_CALLS: ContextVar[tuple[ToolCall, ...]] = ContextVar("keepsaid_step_calls", default=())
"""All calls of the model's answer that asks for the tool call that is being made, in order."""


class Doing(StrEnum):
    """What a span is about."""

    RECEIVE = "receive"
    TURN = "turn"
    TOOL = "tool"
    DELIVER = "deliver"
    SEARCH_MEMORY = "search_memory"
    CREATE_MEMORY = "create_memory"
    UPSERT_MEMORY = "upsert_memory"
    DELETE_MEMORY = "delete_memory"


class TraceSpan(Protocol):
    """Something that is being done."""

    def note(self, name: str, value: Attribute) -> None:
        """Add an attribute."""

    def begins(self, message_id: int) -> None:
        """Let the span of the turn that answers a message be linked to this one."""


class Telemetry(Protocol):
    """Takes counts and durations by the names of `domain/metrics.py`, and opens spans. No method raises or blocks."""

    def add(self, name: str, labels: tuple[str, ...] = (), amount: float = 1.0) -> None:
        """Raise a counter; `labels` are in the order of the metric."""

    def observe(self, name: str, seconds: float, labels: tuple[str, ...] = ()) -> None:
        """Count a duration."""

    def span(self, doing: Doing, name: str = "") -> AbstractContextManager[TraceSpan]:
        """A span that lasts as long as the block; spans opened within it are its children. `name` is that of a tool.

        An exception that leaves the block marks the span as failed, by the name of its class alone.
        """

    def turn_span(self, lane: Lane, messages: Sequence[StoredMessage]) -> AbstractContextManager[TraceSpan]:
        """The span of a turn, linked to those in which its messages were received; of the lane it has a keyed hash."""

    def continued(self, traceparent: str) -> AbstractContextManager[object]:
        """Continue a caller's trace within the block (W3C Trace Context); what is not one changes nothing."""


class _NoSpan:
    """A span that nobody records, and its own block."""

    __slots__ = ()

    def __enter__(self) -> TraceSpan:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def note(self, name: str, value: Attribute) -> None:
        """Record nothing."""

    def begins(self, message_id: int) -> None:
        """Record nothing."""


NO_SPAN = _NoSpan()
"""The one span of those that record none: opening it allocates nothing."""


class NoTelemetry:
    """Records nothing."""

    __slots__ = ()

    def add(self, name: str, labels: tuple[str, ...] = (), amount: float = 1.0) -> None:
        """Count nothing."""

    def observe(self, name: str, seconds: float, labels: tuple[str, ...] = ()) -> None:
        """Measure nothing."""

    def span(self, doing: Doing, name: str = "") -> AbstractContextManager[TraceSpan]:  # noqa: ARG002 - the protocol's
        """Open no span."""
        return NO_SPAN

    def turn_span(
        self,
        lane: Lane,  # noqa: ARG002 - the protocol's
        messages: Sequence[StoredMessage],  # noqa: ARG002
    ) -> AbstractContextManager[TraceSpan]:
        """Open no span."""
        return NO_SPAN

    def continued(self, traceparent: str) -> AbstractContextManager[object]:  # noqa: ARG002 - the protocol's
        """Continue no trace."""
        return NO_SPAN


NO_TELEMETRY: Telemetry = NoTelemetry()
"""Records nothing: the default everywhere."""
