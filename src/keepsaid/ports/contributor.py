"""What extensions add to a prompt, as the context needs it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from keepsaid.domain.scene import Contribution
from keepsaid.domain.turn import Claimed


@runtime_checkable
class Contributor(Protocol):
    """Adds to the prompt of a turn (seed 002, context providers)."""

    async def contribute(self, claimed: Claimed) -> tuple[Contribution, ...]:
        """What it adds; each with its priority."""
        ...
