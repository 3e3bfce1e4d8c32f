"""Tools: what the agent may ask memory itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from keepsaid.domain.ids import show
from keepsaid.domain.memory import Listener, Recalled
from keepsaid.domain.prompt import Json
from keepsaid.errors import ToolError
from keepsaid.memory.block import line
from keepsaid.ports.model import Tool
from keepsaid.ports.recall import Recall

LIMIT_DEFAULT = 10
LIMIT_MAX = 50
_CHARS_MAX = 2_000
_SCHEMA: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "words to look for; any text"},
        "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
    },
    "required": ["query"],
    "additionalProperties": False,
}


def memory_search(recall: Recall, listener: Listener) -> Tool:
    """A tool that searches memory as `listener` hears it, other lanes included, but never outside its scopes."""
    hearing = replace(listener, cross=True, everything=False)

    async def run(arguments: dict[str, Json]) -> str:
        query, limit = _query(arguments), _limit(arguments)
        return _written(await recall.recall(hearing, query, limit))

    return Tool(
        name="memory_search",
        description="Search what was said and learned before. Returns one memory a line, best first.",
        schema=_SCHEMA,
        run=run,
    )


def _query(arguments: Mapping[str, Json]) -> str:
    query = arguments.get("query")
    if not isinstance(query, str) or not query.strip():
        raise ToolError("query must be a text that is not empty")
    return query


def _limit(arguments: Mapping[str, Json]) -> int:
    limit = arguments.get("limit", LIMIT_DEFAULT)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LIMIT_MAX:
        raise ToolError(f"limit must be a whole number from 1 to {LIMIT_MAX}")
    return limit


def _written(recalled: Recalled) -> str:
    lines = [f"{show('memory', hit.memory.id)} {line(hit.memory, _CHARS_MAX)}" for hit in recalled.hits]
    if not lines:
        lines.append("Nothing found.")
    if recalled.missing:
        lines.append(f"Not searched: {'; '.join(recalled.missing)}.")
    return "\n".join(lines)
