"""Auditing: what is read of both stores to find out what is wrong with what is remembered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from keepsaid.domain.audit import Entry
from keepsaid.domain.memory import Source
from keepsaid.domain.upkeep import Task


class Auditing(Protocol):
    """Reads memory, a page at a time. It hears everything: only the owner asks."""

    async def learned(self, after: int, limit: int) -> Sequence[Entry]:
        """What is learned and active, behind an id, in the order of their ids."""
        ...

    async def texts(self, after: int, limit: int) -> Sequence[tuple[int, str]]:
        """All that memories that are there say, behind an id, in the order of their ids."""
        ...

    async def entries(self, ids: Sequence[int]) -> Sequence[Entry]:
        """Those of these memories that are active, of whatever kind."""
        ...

    async def loose(self, task: Task, after: int, limit: int) -> tuple[int, tuple[int, ...]] | None:
        """How far a page of one table behind an id goes, and the ids in it that lead to nothing; None for no more."""
        ...

    async def withdrawn(self, at: int, limit: int) -> Sequence[int]:
        """Bulletins that tell what holds no more."""
        ...

    async def alike(self, ids: Sequence[int], above: float) -> Sequence[tuple[int, int]]:
        """Pairs of these memories, the smaller id first, whose cosine is above `above`."""
        ...


class Trails(Protocol):
    """Reads, in the operational store, where memories come from."""

    async def missing(self, sources: Sequence[Source]) -> frozenset[Source]:
        """Those of the messages, replies, turns and findings that are there no more."""
        ...

    async def shown(self, turns: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """The memories that these turns were shown."""
        ...
