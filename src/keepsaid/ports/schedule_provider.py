"""What does the work of schedules that a manifest names."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class ScheduleProvider(Protocol):
    """Is called when a schedule of its manifest is due; a method marked `@schedule` is called instead of this."""

    async def execute(self, schedule: str) -> str | None:
        """Do what the schedule with this name is for; what is returned is told to the owner."""
        ...
