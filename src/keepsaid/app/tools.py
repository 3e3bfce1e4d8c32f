"""Tools that others serve, joined to an instance."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from keepsaid.adapters.system.clock import SystemClock
from keepsaid.adapters.tools.mcp import McpServer
from keepsaid.config import Config
from keepsaid.engine.loops import Stage
from keepsaid.errors import ToolError
from keepsaid.ports.clock import Clock
from keepsaid.ports.model import Tool
from keepsaid.ports.tool_source import Served, ToolSource

_AGAIN_MS = 60_000


async def asked(config: Config) -> list[tuple[str, Sequence[Served], str]]:
    """Of every server that the config names: its name, all it has, and why that cannot be told."""

    async def ask(server: McpServer) -> tuple[str, Sequence[Served], str]:
        try:
            return server.name, await server.served(), ""
        except ToolError as error:
            return server.name, (), error.what

    return await asyncio.gather(*map(ask, _servers(config, SystemClock())))


class Toolbox:
    """The tools of every server that is there."""

    def __init__(self, sources: Sequence[ToolSource]) -> None:
        self.sources = sources

    def tools(self) -> tuple[Tool, ...]:
        """What may be used now, by name."""
        return tuple(sorted((tool for one in self.sources for tool in one.tools()), key=lambda tool: tool.name))

    def stages(self) -> Sequence[Stage]:
        """One for each server, so that one that hangs holds up nobody else."""
        return [
            Stage(f"tools of {one.name}", one.keep, asyncio.Event(), poll_ms=_AGAIN_MS, vital=False)
            for one in self.sources
        ]


def toolbox_of(config: Config, clock: Clock) -> Toolbox:
    """The tools of the servers that the config names."""
    return Toolbox(_servers(config, clock))


def _servers(config: Config, clock: Clock) -> tuple[McpServer, ...]:
    return tuple(McpServer(name, one, clock) for name, one in config.tools.mcp.items())
