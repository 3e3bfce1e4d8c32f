"""Sources of the prompt, as ports: identity, skills, capabilities, side work (short: prompt layers alone read them)."""

from __future__ import annotations

from typing import Protocol

from keepsaid.domain.lane import Lane
from keepsaid.domain.personality import Skills


class AgentIdentity(Protocol):
    """Who the agent is: the owner's own words."""

    async def read(self) -> str:
        """The identity files as they stand now, joined; empty when there are none."""


class SkillShelf(Protocol):
    """What the agent can look up how to do."""

    async def read(self) -> Skills:
        """The skills as they stand now, and those that were left out."""


class Capabilities(Protocol):
    """What side work can be started for."""

    def lines(self) -> tuple[str, ...]:
        """One line each, in a fixed order; empty when there are no workers."""


class SideWork(Protocol):
    """What the agent itself has started beside its turns; never what a rule spawned."""

    async def lines(self, lane: Lane) -> tuple[str, ...]:
        """One line for each piece under way in a lane, newest first."""
