"""Where tools come from that are not part of the program, as turns and the engine need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from keepsaid.domain.pin import Described
from keepsaid.domain.prompt import Json
from keepsaid.domain.turn import ToolClass
from keepsaid.ports.model import Tool


@dataclass(frozen=True, slots=True)
class Served:
    """A tool that a server has, by its own name, and whether it may be used."""

    name: str
    description: str
    schema: Mapping[str, Json]
    kind: ToolClass
    allowed: bool

    @property
    def text(self) -> Described:
        """All that a model would be shown of it."""
        return Described(self.description, self.schema)


class Acceptance(Protocol):
    """Which texts of tools the owner accepted."""

    def stamp(self) -> object:
        """A value that differs after that changed."""
        ...

    def offered(self, server: str, served: Sequence[Served]) -> Sequence[Served]:
        """The tools that may be offered: allowed, and with a text that was accepted."""
        ...


class ToolSource(Protocol):
    """A server of tools. What its tools return is data from outside, whatever it says."""

    @property
    def name(self) -> str:
        """What its tools are called by, before their own names."""
        ...

    @property
    def trouble(self) -> str:
        """Why it has no tools at the moment; empty when it is there."""
        ...

    def tools(self) -> Sequence[Tool]:
        """The tools that may be used now, by name."""
        ...

    async def served(self) -> Sequence[Served]:
        """All it has, asked on a connection of its own; raises ToolError."""
        ...

    async def keep(self) -> int | None:
        """Stay connected until it is lost; returns when to try again (ms UTC). What the server does never raises."""
        ...
