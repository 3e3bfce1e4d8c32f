"""Skills: what the agent can look up how to do; a body comes by the tool `skill`."""

from __future__ import annotations

from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.pipeline.context.layer import fitting, layer

_HEADING = "[Skills] Before you do what one of these is for, read it with the tool `skill`."


def skills(scene: Scene, chars_max: int) -> Layer:
    """A line for each skill, by name; the last names are left out first, and broken ones are named."""
    shelf = scene.standing.skills
    lines = [f"- {one.name}: {' '.join(one.description.split())}" for one in shelf.known]
    made = fitting("skills", _HEADING, lines, chars_max, "skill") if lines else layer("skills", "")
    broken = "; ".join(f"{name} is broken: {why}" for name, why in shelf.broken)
    return layer("skills", made.text, "; ".join(filter(None, (made.cut, broken))))
