"""Extension context: what extensions contribute to this turn, by priority; memory stands at 100 (seed 002)."""

from __future__ import annotations

from keepsaid.domain.fence import Fence
from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import MEMORY_PRIORITY, Contribution, Scene
from keepsaid.domain.text import named_short
from keepsaid.pipeline.context.labels import FROM, unforged
from keepsaid.pipeline.context.layer import of_lines

_NAME = "extensions"


def extensions(scene: Scene, chars_max: int, fence: Fence) -> tuple[Layer, Layer]:
    """What stands above memory, and what below; the last by priority and name are left out first, and named."""
    above: list[str] = []
    below: list[str] = []
    left: list[str] = []
    full = False
    room = chars_max
    for one in sorted(scene.passing.contributions, key=lambda one: (one.priority, one.name)):
        if one.missing:
            left.append(f"{one.name} ({one.missing})")
            continue
        text = _written(one, fence)
        room -= len(text) + 1
        full = full or room < 0
        if full:
            left.append(one.name)
        else:
            (below if one.priority > MEMORY_PRIORITY else above).append(text)
    return of_lines(_NAME, above, f"left out: {', '.join(left)}" if left else ""), of_lines(_NAME, below)


def _written(one: Contribution, fence: Fence) -> str:
    return fence.within(f"{FROM} {named_short(one.name)}", unforged(one.text))
