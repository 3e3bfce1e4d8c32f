"""Skills, as the context needs them."""

from __future__ import annotations

from typing import Protocol

from keepsaid.domain.skill import Skills


class SkillShelf(Protocol):
    """What the agent can look up how to do."""

    async def read(self) -> Skills:
        """The skills as they stand now, and those that were left out."""
        ...
