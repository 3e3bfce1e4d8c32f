"""The desk: tools that belong to a context, over what it held when the turn began."""

from __future__ import annotations

from keepsaid.domain.scene import Scene
from keepsaid.pipeline.context.lookup import skill_tool
from keepsaid.ports.model import Tool


def tools_of(scene: Scene) -> tuple[Tool, ...]:
    """A tool for the skills, if there are any."""
    shelf = scene.standing.skills
    return (skill_tool(shelf),) if shelf.known else ()
