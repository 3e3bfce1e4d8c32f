"""Settings of tasks: how workers run."""

from __future__ import annotations

from pydantic import Field

from keepsaid.config.section import Section


class TasksConfig(Section):
    """How tasks run."""

    concurrent_max: int = Field(5, ge=1, le=100)
    """Tasks at the same time, beside the turns."""
    branches_max: int = Field(5, ge=1, le=100)
    """Branches at the same time, beside the turns and the tasks of workers."""
    timeout_s: int = Field(1_800, ge=1)
    """Seconds a task may take, where its rule does not say."""
    retriggers_max: int = Field(3, ge=0, le=100)
    """How often a lane is told what its tasks came to, since a person last said something there; 0 for never."""
    steps_max: int = Field(50, ge=1, le=1_000)
    """Calls of the model in one task."""
    tokens_in_max: int = Field(1_000_000, ge=1)
    """Tokens that one task may read in all its calls."""
