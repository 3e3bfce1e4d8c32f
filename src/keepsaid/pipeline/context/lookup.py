"""Lookup: the tool that reads the body of a skill, as the skills stood when the turn began."""

from __future__ import annotations

from collections.abc import Mapping

from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json
from keepsaid.domain.skill import Skills
from keepsaid.errors import ToolError
from keepsaid.ports.model import Tool

_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"name": {"type": "string", "description": "a name from the list of skills"}},
    "required": ["name"],
    "additionalProperties": False,
}


def skill_tool(shelf: Skills) -> Tool:
    """A tool that gives one skill's text."""

    async def run(arguments: dict[str, Json]) -> str:
        name = arguments.get("name")
        found = shelf.named(name) if isinstance(name, str) else None
        if found is None:
            known = ", ".join(one.name for one in shelf.known)
            raise ToolError(f"there is no such skill; there are: {known}")
        return found.body

    return Tool("skill", "Read how to do something that is listed under [Skills].", _SCHEMA, run, output=Trust.OWNER)
