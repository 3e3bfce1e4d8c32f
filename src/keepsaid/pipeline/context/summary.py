"""Summary: what stands for the messages of the lane before the recent ones."""

from __future__ import annotations

from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.pipeline.context.labels import SUMMARY
from keepsaid.pipeline.context.layer import within


def summary(scene: Scene, chars_max: int) -> Layer:
    """The lane's summary in force, cut at its end."""
    return within("summary", scene.tail.standing_for, chars_max, SUMMARY)
