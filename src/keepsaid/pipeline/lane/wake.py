"""Waking: who claims batches is woken once for what is routed, by a claim that is written together with it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

from keepsaid.domain.turn import Lease


class Waking:
    """Wakes who claims for batches that are being written, and again for those that no claim can have seen.

    A claim that is asked for right behind the batches joins their commit. It may also overtake them, on a slow store.
    """

    def __init__(self, hint: asyncio.Event) -> None:
        self._hint = hint
        self._claims = 0
        self._claiming = False
        self._written = 0

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Batches are written in the block, which begins with handing them to the store."""
        claims = self._claims
        yield
        self._written += 1
        if claims == self._claims or not self._claiming:
            self._hint.set()

    async def claimed(self, claim: Awaitable[tuple[Lease, ...]]) -> tuple[Lease, ...]:
        """What a claim takes."""
        written = self._written
        self._claims += 1
        self._claiming = True
        try:
            leases = await claim
        finally:
            self._claiming = False
        if not leases and written != self._written:
            self._hint.set()
        return leases
