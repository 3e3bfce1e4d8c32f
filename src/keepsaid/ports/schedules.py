"""Schedules and their runs, read only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.schedule import Heard, Run, Schedule


class ScheduleView(Protocol):
    """Reads schedules; the commits of `domain/scheduling.py` write them. Times are milliseconds UTC."""

    async def due(self, at: int, limit: int, *, once: bool = True) -> Sequence[Schedule]:
        """Active schedules whose time has come, those that wait longest first; without `once` those that come again."""
        ...

    async def next_due(self) -> int | None:
        """When the next schedule comes, or a run may begin; None when nothing waits for a time."""
        ...

    async def ready(self, at: int, limit: int, errands: int) -> Sequence[tuple[Run, Schedule]]:
        """Runs that are due and may begin, those first that may the longest; of what is run so many at most."""
        ...

    async def heard(self, limit: int) -> Sequence[Heard]:
        """Runs whose output stands where it can be settled further."""
        ...

    async def worked(self, limit: int) -> Sequence[Run]:
        """Runs that are under way though their task has ended, or is no more."""
        ...

    async def schedule(self, schedule_id: int) -> Schedule | None:
        """One schedule."""
        ...

    async def schedules(self, states: Sequence[str], after: int, limit: int) -> Sequence[Schedule]:
        """Schedules in these states with ids above `after`, oldest first."""
        ...

    async def runs(self, schedule_id: int, limit: int) -> Sequence[Run]:
        """The runs of a schedule, latest first."""
        ...

    async def latest(self) -> int | None:
        """The latest time at which a run was made; None when there was none."""
        ...
