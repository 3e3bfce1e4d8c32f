"""Memory and its consolidator, as they come to a turn and to the engine (seed 002)."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.app.builtin.parts import BuiltInContext
from keepsaid.domain.turn import Claimed
from keepsaid.engine.supervisor import ServiceLoop
from keepsaid.ports.model import Tool


class MemoryExtension:
    """What the agent may ask memory, and have it remember."""

    async def initialize(self, context: BuiltInContext) -> None:
        """Keep what makes the tools of a turn."""
        self._tools = context.parts.memory_tools

    def tools(self, claimed: Claimed) -> Sequence[Tool]:
        """The tools of one turn, which hear what its people may hear."""
        return self._tools(claimed)


class Consolidator:
    """Reads marked sessions, half a minute after half a minute and at night."""

    async def initialize(self, context: BuiltInContext) -> None:
        """Keep what makes its loops; it reads what `memory` keeps, and is not there without it."""
        context.get_extension("memory")
        self._stages = context.parts.collecting

    def loops(self) -> Sequence[ServiceLoop]:
        """Its loops."""
        return self._stages()
