"""Worker capabilities, as the context needs them."""

from __future__ import annotations

from typing import Protocol


class Capabilities(Protocol):
    """What side work can be started for."""

    def lines(self) -> tuple[str, ...]:
        """One line each, in a fixed order; empty when there are no workers."""
        ...
