"""Upkeep of memory, as those need it who do it or tell of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.decay import Curve
from keepsaid.domain.space import VectorSpace
from keepsaid.domain.upkeep import Holdings, Maintain, Outstanding, Stepped, TaskRun


class Upkeep(Protocol):
    """Does the tasks of maintenance, a step in each commit."""

    async def step(self, step: Maintain) -> Stepped:
        """Do the next step of a task and note where it stands, in one commit. Raises a StoreError with nothing done."""
        ...

    async def empty_log(self) -> bool:
        """Cut what was logged of it to nothing; False while somebody still reads it."""
        ...

    async def runs(self) -> Sequence[TaskRun]:
        """The last run of each task that ever began."""
        ...

    async def outstanding(self, at: int, curve: Curve, space: VectorSpace | None) -> Outstanding:
        """What a run at a time would find to do; nothing is changed."""
        ...

    async def holdings(self) -> Holdings:
        """What memory holds."""
        ...
