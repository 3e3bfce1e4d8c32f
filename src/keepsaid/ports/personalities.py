"""Personalities, as the context needs them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.personality import Personality


class PersonalityView(Protocol):
    """Reads what was set."""

    async def personalities(self, scopes: Sequence[str]) -> tuple[Personality, ...]:
        """Those that are set for any of these scopes."""
        ...
