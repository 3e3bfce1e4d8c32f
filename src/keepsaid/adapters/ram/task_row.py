"""What the RAM store holds of a task."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.lane import Lane


@dataclass(slots=True, eq=False)
class TaskRow:
    """Spawned work."""

    id: int
    key: str
    lane: Lane
    rule: str
    description: str
    messages: int
    created_at: int
    state: str = "pending"
