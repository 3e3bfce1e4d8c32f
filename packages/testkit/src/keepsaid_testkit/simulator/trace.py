"""The trace: everything that happened in one play, in order; the same seed gives the same lines."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b


class Trace:
    """Lines with virtual milliseconds in front."""

    def __init__(self, passed_ms: Callable[[], int]) -> None:
        self.lines: list[str] = []
        self._passed_ms = passed_ms

    def add(self, what: str) -> None:
        """Note that something happened now."""
        self.lines.append(f"{self._passed_ms():>9} {what}")

    def digest(self) -> str:
        """16 letters over all lines."""
        return blake2b("\n".join(self.lines).encode(), digest_size=8).hexdigest()
