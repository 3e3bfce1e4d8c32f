"""Session summary: what stands for the past of the other lanes of the conversation (seed 003)."""

from __future__ import annotations

from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.pipeline.context.labels import SESSION_SUMMARY
from keepsaid.pipeline.context.layer import within


def session_summary(scene: Scene, chars_max: int) -> Layer:
    """The summary of the conversation without this lane, cut at its end."""
    return within("session_summary", scene.standing.session_summary, chars_max, SESSION_SUMMARY)
