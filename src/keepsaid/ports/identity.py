"""Identity files, as the context needs them."""

from __future__ import annotations

from typing import Protocol


class Identity(Protocol):
    """Who the agent is: the owner's own words."""

    async def read(self) -> str:
        """The identity files as they stand now, joined; empty when there are none."""
        ...
