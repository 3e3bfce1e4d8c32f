"""What gives the model tools that depend on the turn; those that do not are methods marked `@tool`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from keepsaid.domain.turn import Claimed
from keepsaid.ports.model import Tool


@runtime_checkable
class ToolProvider(Protocol):
    """Makes the tools of one turn."""

    def tools(self, claimed: Claimed) -> Sequence[Tool]:
        """The tools, each with its class, time limit and schema. Called at the beginning of every turn: be quick."""
        ...
