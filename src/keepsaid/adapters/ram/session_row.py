"""What the RAM store holds of sessions and of what was found in them."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.finding import Finding
from keepsaid.domain.session import Session


@dataclass(slots=True, eq=False)
class FindingRow:
    """A finding, and when all of it was in memory."""

    finding: Finding
    applied_at: int | None = None


@dataclass(slots=True, eq=False)
class SessionRow:
    """A session and its mark for collection; positions count records of the transcript, from 1."""

    id: int
    first: int
    started_at: int
    started_reason: str
    active_at: int = 0
    quiet_since: int = 0
    state: str = "active"
    last: int | None = None
    ended_at: int | None = None
    ended_reason: str = ""
    invalidated_at: int | None = None
    invalidated_reason: str = ""
    processed_until: int | None = None
    ruled_until: int = 0
    firm_until: int = 0
    collection: str = "clean"
    collect_at: int | None = None
    owner: str = ""
    fence: int = 0
    attempts: int = 0
    error: str = ""

    def value(self, told: int) -> Session:
        """The session as the domain knows it, in a lane of that many records."""
        return Session(
            id=self.id,
            state=self.state,
            first=self.first,
            last=told if self.last is None else self.last,
            started_at=self.started_at,
            active_at=self.active_at,
            started_reason=self.started_reason,
            ended_at=self.ended_at,
            ended_reason=self.ended_reason,
            invalidated_at=self.invalidated_at,
            invalidated_reason=self.invalidated_reason,
            processed_until=self.processed_until,
        )
