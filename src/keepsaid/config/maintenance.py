"""Settings of maintenance."""

from __future__ import annotations

from pydantic import Field

from keepsaid.config.section import Section
from keepsaid.domain.decay import Curve


class MaintenanceConfig(Section):
    """What is done to memory at night, and how fast what nobody uses fades."""

    enabled: bool = True
    """Whether it is done every night; `keepsaid memory maintain` does it in any case."""
    hour: float = Field(3.0, ge=0, lt=24)
    """The hour of the day (UTC) at which it begins."""
    rate: float = Field(0.02, ge=0, le=10)
    """How fast importance fades: of a memory unused for d days exp(-rate * d^0.8) is left. 0 lets nothing fade."""
    floor: float = Field(0.05, ge=0, le=1)
    """Importance below which a memory is archived: it comes to mind no more, and is found where archived ones are
    searched."""
    grace_days: float = Field(30.0, ge=0)
    """Days after its last use in which a memory is never archived."""
    step_ms: float = Field(4.0, ge=0, le=1_000)
    """Milliseconds for which one step works before the store is left to others; 0 sets no limit but a number of
    memories."""
    judge_pairs_a_day: int = Field(100, ge=0, le=100_000)
    """On so many close pairs of memories the chat model is asked in 24 hours, ten in a call; 0 asks on none."""

    def curve(self) -> Curve:
        """The curve by which memories fade."""
        return Curve(self.rate, self.floor, self.grace_days)
