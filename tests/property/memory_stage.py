"""A memory store that lives as long as a test module: property tests ask it thousands of questions."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy  # noqa: F401 - no search is timed while it is imported

from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.domain.memory import NewMemory
from keepsaid.testing.clock import CountingIds

T = TypeVar("T")


class Stage:
    """A store on a loop of its own."""

    def __init__(self, runner: asyncio.Runner, store: SqliteMemories) -> None:
        self._runner = runner
        self.store = store

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work gives."""
        return self._runner.run(work)

    def keep(self, *memories: NewMemory) -> tuple[int, ...]:
        """Write memories; returns their ids."""
        kept: Sequence[NewMemory] = memories
        return self.run(self.store.keep(kept, 1))


@contextmanager
def stage(folder: Path) -> Iterator[Stage]:
    """A store in a folder, closed at the end."""
    with asyncio.Runner() as runner:
        store = runner.run(open_memories(folder / "memory.db", CountingIds()))
        try:
            yield Stage(runner, store)
        finally:
            runner.run(store.close())
