"""Identity: the owner's own words about the agent and himself, from SOUL.md, IDENTITY.md and USER.md."""

from __future__ import annotations

from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.pipeline.context.layer import within


def identity(scene: Scene, chars_max: int) -> Layer:
    """The files as they stand, cut at their end."""
    return within("identity", scene.standing.identity, chars_max)
