"""Legs: the ways to search memory, each on its own feet; one that fails is left out and named."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from keepsaid.domain.graph import Seed
from keepsaid.domain.memory import Found, Listener
from keepsaid.memory.recall.confidence import Confidence, steady
from keepsaid.memory.recall.fusion import Share

TEXT, VECTOR, GRAPH = "text", "vector", "graph"
"""The names of the legs, as receipts have them: by words, by meaning, by what is associated."""

T = TypeVar("T")
Search = Callable[[Listener, str, int], Awaitable[tuple[Found, ...]]]
Walk = Callable[[Listener, str, Sequence[Seed], int], Awaitable[tuple[Found, ...]]]


@dataclass(frozen=True, slots=True)
class Leg:
    """One way to search: its weight among the others, and how long it may take, in milliseconds.

    `confidence` says from what it found how much more or less than usual the weight is for this query.
    """

    name: str
    search: Search
    weight: float = 1.0
    limit_ms: float = 100.0
    confidence: Confidence = steady

    def share(self, found: tuple[Found, ...]) -> Share:
        """What it found as a part of the whole."""
        return Share(self.name, self.weight * self.confidence(found), found)


@dataclass(frozen=True, slots=True)
class GraphLeg:
    """The leg that goes on from what the others found: its weight beside theirs, and how long it may take."""

    walk: Walk
    weight: float = 0.2
    limit_ms: float = 25.0
    name: str = GRAPH

    def share(self, found: tuple[Found, ...]) -> Share:
        """What it found as a part of the whole; its scores are shares of what the best seed came to already."""
        return Share(self.name, self.weight, found, top=1.0)


@dataclass(frozen=True, slots=True)
class Missing:
    """What could not answer, and why: `text: slower than 100 ms`."""

    why: str


async def ask(name: str, work: Callable[[], Awaitable[T]], limit_ms: float) -> T | Missing:
    """What `work` gives, or why there is nothing: it raised, or took longer than `limit_ms` milliseconds.

    It is called, not handed over begun: who is cancelled first leaves nothing behind that was never awaited.
    """
    try:
        async with asyncio.timeout(limit_ms / 1_000) as limit:
            return await work()
    except Exception as error:  # noqa: BLE001  # guard: recall leg - a turn goes on without what could not be recalled
        slow = limit.expired() and isinstance(error, TimeoutError)
        return Missing(f"{name}: slower than {limit_ms:g} ms" if slow else f"{name}: {type(error).__name__}: {error}")
