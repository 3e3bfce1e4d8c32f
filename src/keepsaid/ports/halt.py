"""Halt: whether the runtime was told to stop, for whatever works in steps while somebody waits."""

from __future__ import annotations

import asyncio


class Halt:
    """Asked once, when a stop begins; who works in steps looks at it between two of them and ends there."""

    def __init__(self) -> None:
        self._told = asyncio.Event()

    @property
    def asked(self) -> bool:
        """Whether a stop has begun."""
        return self._told.is_set()

    def ask(self) -> None:
        """Let all that works in steps end at its next one."""
        self._told.set()

    async def wait(self) -> None:
        """Return once a stop has begun."""
        await self._told.wait()
