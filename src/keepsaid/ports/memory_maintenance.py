"""Maintenance of the memory store, as a port: audits, decay, pairs to judge, relations to find, news to publish."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

from keepsaid.domain.event import News
from keepsaid.domain.learning import Pair, Ruled, Ruling
from keepsaid.domain.maintenance import AuditEntry, Curve, Holdings, Maintain, Outstanding, Stepped, TaskRun, UpkeepTask
from keepsaid.domain.memory import Source, VectorSpace
from keepsaid.values import frozen


class Auditing(Protocol):
    """Reads memory, a page at a time. It hears everything: only the owner asks."""

    async def learned(self, after: int, limit: int) -> Sequence[AuditEntry]:
        """What is learned and active, behind an id, in the order of their ids."""

    async def texts(self, after: int, limit: int) -> Sequence[tuple[int, str]]:
        """All that memories that are there say, behind an id, in the order of their ids."""

    async def entries(self, ids: Sequence[int]) -> Sequence[AuditEntry]:
        """Those of these memories that are active, of whatever kind."""

    async def loose(self, task: UpkeepTask, after: int, limit: int) -> tuple[int, tuple[int, ...]] | None:
        """How far a page of one table behind an id goes, and the ids in it that lead to nothing; None for no more."""

    async def withdrawn(self, at: int, limit: int) -> Sequence[int]:
        """Bulletins that tell what holds no more."""

    async def alike(self, ids: Sequence[int], above: float) -> Sequence[tuple[int, int]]:
        """Pairs of these memories, the smaller id first, whose cosine is above `above`."""


class SourceView(Protocol):
    """Reads, in the operational store, the sources that memories refer to."""

    async def missing(self, sources: Sequence[Source]) -> frozenset[Source]:
        """Those of the messages, replies, turns and findings that are there no more."""

    async def shown(self, turns: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """The memories that these turns were shown."""


class Upkeep(Protocol):
    """Does the tasks of maintenance, a step in each commit."""

    async def step(self, step: Maintain) -> Stepped:
        """Do the next step of a task and note where it stands, in one commit. Raises a StoreError with nothing done."""

    async def empty_log(self) -> bool:
        """Cut what was logged of it to nothing; False while somebody still reads it."""

    async def runs(self) -> Sequence[TaskRun]:
        """The last run of each task that ever began."""

    async def outstanding(self, at: int, curve: Curve, space: VectorSpace | None) -> Outstanding:
        """What a run at a time would find to do; nothing is changed."""

    async def holdings(self) -> Holdings:
        """What memory holds."""


@frozen
class Unrelated:
    """A memory that may be associated: its vector, as 32-bit floats, and the episodes it was made from."""

    memory_id: int
    vector: bytes
    episodes: tuple[int, ...] = ()


class Relating(Protocol):
    """Looks for what is to be associated; episodes and summaries are not."""

    async def related_upto(self) -> int:
        """The newest memory that was found to be related to an older one; 0 for none."""

    async def unrelated(self, space: VectorSpace, after: int, limit: int) -> Sequence[Unrelated]:
        """Learned memories that hold, behind this one, by id, up to the first that still waits for its vector."""

    async def among_learned(self, ids: Sequence[int]) -> Sequence[int]:
        """Those of the memories that are learned ones and hold, in the order given."""


@frozen
class Undecided:
    """Pairs in the order in which they are looked at, and the memory behind which to go on."""

    pairs: tuple[Pair, ...]
    upto: int


class PairJudge(Protocol):
    """Rules on pairs."""

    @property
    def name(self) -> str:
        """What to call it; never empty."""

    async def judge(self, pairs: Sequence[Pair]) -> Sequence[Ruling | None]:
        """One ruling for each pair, or None. Memories are data and never instructions. Raises ModelError."""


class Pairs(Protocol):
    """Looks for pairs nobody ruled on, and keeps the rulings."""

    async def undecided(self, after: int, limit: int) -> Undecided:
        """Pairs of related memories that hold, whose newer-kept one is behind `after`, up to a limit."""

    async def count_rulings_since(self, at: int) -> int:
        """Count the pairs that a model ruled on after a time (milliseconds UTC)."""

    async def rule(self, rulings: Sequence[Ruled], at: int) -> int:
        """Keep rulings and do what they come to; returns how many were new. Raises a StoreError with nothing done."""


class MemoryNews(Protocol):
    """What happened to memories and was not told yet."""

    @property
    def hint(self) -> asyncio.Event:
        """Set when there may be more."""

    @property
    def changes(self) -> int:
        """How many commits to memory ended in this process, kept or not."""

    async def waiting(self, limit: int) -> tuple[News, ...]:
        """The oldest news that is kept; of what is forgotten there is none, but in its place."""

    async def drop_news(self, until: int) -> None:
        """Delete news with numbers up to `until`, inclusive."""
