"""What the RAM store holds of schedules and their runs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from keepsaid.domain.schedule import NewSchedule, Run, Schedule
from keepsaid.domain.states import move


@dataclass(slots=True)
class ScheduleRow:
    """A schedule."""

    new: NewSchedule
    next_at: int | None
    created_at: int
    state: str = "active"
    failures: int = 0
    reason: str = ""
    turn_id: int | None = None

    @property
    def value(self) -> Schedule:
        """The schedule as the domain knows it."""
        return Schedule(self.new, self.state, self.next_at, self.failures, self.reason, self.created_at)

    def go(self, verb: str) -> None:
        """Move on."""
        self.state = move("schedule", self.state, verb)


@dataclass(slots=True)
class RunRow:
    """A run."""

    run: Run

    def end(self, verb: str, at: int, reason: str) -> None:
        """Move on, to an end or back to where it can begin."""
        state = move("run", self.run.state, verb)
        self.run = replace(self.run, state=state, reason=reason, ended_at=None if state == "due" else at)

    def hear(self, verb: str, reason: str = "") -> None:
        """What is heard of it moves on."""
        output = move("output", self.run.output, verb)
        self.run = replace(self.run, output=output, reason=reason or self.run.reason)
