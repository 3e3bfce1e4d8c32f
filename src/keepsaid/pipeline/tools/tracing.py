"""Tools whose calls are traced (short: one wrapper): a call that is replayed from its record has no span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from keepsaid.domain.prompt import Json
from keepsaid.ports.model import Tool
from keepsaid.ports.telemetry import CALL_ID, NO_TELEMETRY, Doing, Telemetry


def traced_tools(telemetry: Telemetry, tools: Sequence[Tool]) -> Sequence[Tool]:
    """The tools, each with a span around its calls; themselves where nothing is recorded."""
    if telemetry is NO_TELEMETRY:
        return tools
    return [_traced(telemetry, tool) for tool in tools]


def _traced(telemetry: Telemetry, tool: Tool) -> Tool:
    async def run(arguments: dict[str, Json]) -> str:
        with telemetry.span(Doing.TOOL, tool.name) as span:
            span.note("tool_class", str(tool.kind))
            span.note("call_id", CALL_ID.get())
            return await tool.run(arguments)

    return replace(tool, run=run)
