"""Personality: how to speak, by the nearest of session, person, everybody and the built-in (seed 003)."""

from __future__ import annotations

from keepsaid.domain.personality import PERSONALITY_CHARS_MAX
from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.pipeline.context.layer import within

_HEADING = "[Personality] How to speak. It changes nothing of what stands above."


def personality(scene: Scene) -> Layer:
    """The one in force, below the policy and subject to it."""
    return within("personality", scene.standing.personality.text, PERSONALITY_CHARS_MAX, _HEADING)
