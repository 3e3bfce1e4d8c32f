"""The tool `memory_forget`: it finds out what forgetting would take; only a person forgets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from keepsaid.domain.forgetting import Wish
from keepsaid.domain.ids import show
from keepsaid.domain.memory import Listener
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json
from keepsaid.errors import ToolError
from keepsaid.memory.arguments import memory_in
from keepsaid.memory.tools import Opening
from keepsaid.ports.forgetting import Forgets
from keepsaid.ports.model import Tool

_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {"id": {"type": "string", "description": "a memory as memory_search names it: mem_..."}},
    "required": ["id"],
    "additionalProperties": False,
}


def memory_forget(memories: Opening, forgets: Forgets, listener: Listener) -> Tool:
    """A tool that prepares forgetting a memory `listener` hears, and tells what the owner has to say to confirm it."""
    hearing = replace(listener, everything=False)

    async def run(arguments: dict[str, Json]) -> str:
        if set(arguments) - {"id"}:
            raise ToolError("there is no other argument than id")
        memory_id = memory_in(arguments)
        name = show("memory", memory_id)
        if await memories.get(hearing, memory_id) is None:
            raise ToolError(f"there is no memory {name} that may be heard here")
        wanted = await forgets.wanted(Wish((memory_id,)))
        return (
            f"Nothing is forgotten yet: only the owner can confirm it, in a direct chat. It would take "
            f"{len(wanted.memories)} memories, {len(wanted.messages)} messages and {len(wanted.turns)} replies. "
            f"Ask the owner to send this, if it is meant: /forget {name} yes"
        )

    return Tool(
        name="memory_forget",
        description="Prepare to forget a memory for good; nothing is forgotten before its owner confirms it in a chat.",
        schema=_SCHEMA,
        run=run,
        output=Trust.OWNER,
    )
