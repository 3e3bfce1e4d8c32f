"""Recalled memory: what came to mind for this turn; its budget is kept where it is chosen."""

from __future__ import annotations

from keepsaid.domain.fence import Fence
from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.pipeline.context.labels import MEMORY
from keepsaid.pipeline.context.layer import of_lines


def recalled(scene: Scene, fence: Fence) -> Layer:
    """The block as it was written, below its heading and above the line that ends it."""
    block = scene.injection.block
    return of_lines("memory", fence.within(MEMORY, block).splitlines() if block else [], scene.injection.skipped)
