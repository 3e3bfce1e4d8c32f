"""Worker capabilities: what side work can be started for."""

from __future__ import annotations

from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.pipeline.context.layer import fitting

_HEADING = "[Workers] What can be given to a worker:"


def workers(scene: Scene, chars_max: int) -> Layer:
    """A line for each capability, in the order given; the last are left out first."""
    return fitting("workers", _HEADING, scene.standing.capabilities, chars_max, "capability")
