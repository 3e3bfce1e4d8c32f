"""Free space, as a need."""

from __future__ import annotations

from typing import Protocol


class Space(Protocol):
    """What is left where the stores are."""

    def free_bytes(self) -> int:
        """Bytes that may still be written there; the least of all the places."""
        ...
