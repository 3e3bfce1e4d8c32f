"""When a writer does its upkeep: after each group, or in a quiet moment, and then as long as any is due."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from keepsaid.adapters.sql.writer import Writer
from keepsaid.domain.commits import Tell

_SOON_S = 30.0


class Ledger:
    """Keeps nothing, and notes what it is told to do; its upkeep has some steps."""

    def __init__(self, quiet_s: float, steps: int = 1) -> None:
        self.quiet_s, self._steps = quiet_s, steps
        self.done: list[str] = []
        self.is_tidy = threading.Event()

    def apply(self, commits: Sequence[object]) -> list[Any]:
        """Note a group."""
        self.done.append("group")
        return [None] * len(commits)

    def tidy(self) -> bool:
        """Note a step; says whether there are more."""
        self.done.append("step")
        self._steps -= 1
        if self._steps <= 0:
            self.is_tidy.set()
        return self._steps > 0

    def close(self, *, broken: bool = False) -> None:
        """Do nothing."""


@asynccontextmanager
async def writing(ledger: Ledger) -> AsyncIterator[Writer]:
    """A writer, closed at the end."""
    writer = Writer(ledger, "test")
    try:
        yield writer
    finally:
        await writer.close()


async def become_tidy(ledger: Ledger) -> None:
    """Wait until no step is left."""
    assert await asyncio.to_thread(ledger.is_tidy.wait, _SOON_S)


TOLD = Tell("test", "{}", 0)


@pytest.mark.parametrize("steps", [1, 3])
async def test_what_is_due_is_done_while_nothing_comes(steps: int) -> None:
    ledger = Ledger(0.001, steps)
    async with writing(ledger) as writer:
        await writer.apply(TOLD)
        await become_tidy(ledger)
    assert ledger.done == ["group", *["step"] * steps]


async def test_a_commit_does_not_wait_for_upkeep_that_a_quiet_moment_will_do() -> None:
    ledger = Ledger(_SOON_S)
    async with writing(ledger) as writer:
        await writer.apply(TOLD)
        await writer.apply(TOLD)
    assert ledger.done == ["group", "group"]


async def test_upkeep_is_done_also_where_no_moment_is_quiet() -> None:
    ledger = Ledger(_SOON_S)
    async with asyncio.timeout(_SOON_S), writing(ledger) as writer:
        while not ledger.is_tidy.is_set():
            await writer.apply(TOLD)
        assert ledger.done.count("step") == 1


async def test_a_file_is_tidied_after_each_group() -> None:
    ledger = Ledger(0.0)
    async with writing(ledger) as writer:
        await writer.apply(TOLD)
        await become_tidy(ledger)
        await writer.apply(TOLD)
    assert ledger.done == ["group", "step", "group", "step"]
