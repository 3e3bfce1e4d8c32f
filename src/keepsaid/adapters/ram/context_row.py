"""What the RAM store holds of a lane's context: its head, its summaries, its cuts."""

from __future__ import annotations

from dataclasses import dataclass, field

from keepsaid.domain.compaction import Cut
from keepsaid.domain.summary import Summary


@dataclass(frozen=True, slots=True)
class CutRow:
    """A span that left a lane's context without a summary."""

    version: int
    first: int
    last: int
    why: Cut
    left_out: int
    at: int


@dataclass(slots=True, eq=False)
class ContextRow:
    """The head of a lane's context, and every summary and cut that was made."""

    version: int = 0
    summarised_until: int = 0
    floor: int = 0
    left_out: int = 0
    summary: Summary | None = None
    changed_at: int = 0
    attempts: int = 0
    next_at: int = 0
    error: str = ""
    summaries: list[Summary] = field(default_factory=list)
    took: dict[int, tuple[int, int]] = field(default_factory=dict)
    cuts: list[CutRow] = field(default_factory=list)

    @property
    def covered(self) -> int:
        """The last position that is not part of the tail."""
        return max(self.summarised_until, self.floor)
