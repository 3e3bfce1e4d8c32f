"""The bell: wakes everybody who waits for something."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class Bell:
    """Whoever listens has an event of his own, which every ring sets."""

    def __init__(self) -> None:
        self._ears: set[asyncio.Event] = set()

    @contextmanager
    def listening(self) -> Iterator[asyncio.Event]:
        """An event that is set by each ring while somebody listens."""
        ear = asyncio.Event()
        self._ears.add(ear)
        try:
            yield ear
        finally:
            self._ears.discard(ear)

    def ring(self) -> None:
        """Wake them all."""
        for ear in self._ears:
            ear.set()
