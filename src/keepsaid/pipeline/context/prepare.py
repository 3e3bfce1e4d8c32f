"""Preparation of a turn: its parts run side by side, and a part that is not ready in time is left out of the prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Part(Generic[T]):
    """One part of a turn's preparation, such as memory or skills."""

    def __init__(self, name: str, task: asyncio.Task[T], otherwise: T) -> None:
        self.name = name
        self.task = task
        self._otherwise = otherwise

    @property
    def value(self) -> T:
        """The result of the part; its default if the part was not ready in time."""
        return self._otherwise if self.task.cancelled() or not self.task.done() else self.task.result()


class Preparation:
    """Starts the parts of one turn's preparation and waits for all of them, up to a time limit."""

    def __init__(self) -> None:
        self._parts: list[Part[Any]] = []

    def begin(self, name: str, work: Coroutine[Any, Any, T], otherwise: T) -> Part[T]:
        """Start a part, which is `otherwise` if it does not end in time."""
        part = Part(name, asyncio.ensure_future(work), otherwise)
        self._parts.append(part)
        return part

    async def finish(self, limit_s: float) -> tuple[str, ...]:
        """Wait until every part has ended, for `limit_s` seconds at most; returns a note for each part left out.

        Raises what a part raised. A part that is late is cancelled; nobody waits for that.
        """
        tasks = [part.task for part in self._parts]
        if not tasks:
            return ()
        try:
            done, _ = await asyncio.wait(tasks, timeout=limit_s, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
            return tuple(f"{part.name} took longer than {limit_s:g} s" for part in self._parts if not part.task.done())
        finally:
            for task in tasks:
                task.add_done_callback(_retrieve)
                task.cancel()


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Take the error of a part that was given up, so that asyncio does not report it."""
    if not task.cancelled():
        task.exception()
