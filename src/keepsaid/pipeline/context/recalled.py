"""Recalled memory: what came to mind for this turn; its budget is kept where it is chosen."""

from __future__ import annotations

from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.pipeline.context.labels import MEMORY
from keepsaid.pipeline.context.layer import of_lines


def recalled(scene: Scene) -> Layer:
    """The block as it was written, below its heading."""
    block = scene.injection.block
    return of_lines("memory", [f"{MEMORY}:", *block.splitlines()] if block else [], scene.injection.skipped)
