"""Tools: what the agent may ask memory itself, heard as its turn hears it and never wider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from keepsaid.domain.ids import show
from keepsaid.domain.memory import Listener, Memory, Recalled
from keepsaid.domain.message import Trust, Trusted
from keepsaid.domain.prompt import Json
from keepsaid.domain.receipt import MEMORY_OPEN
from keepsaid.domain.search import Narrowing
from keepsaid.domain.visibility import least
from keepsaid.errors import ToolError
from keepsaid.memory.arguments import (
    AROUND_DEFAULT,
    AROUND_MAX,
    LIMIT_DEFAULT,
    LIMIT_MAX,
    archived_in,
    around_in,
    limit_in,
    memory_in,
    narrowing_in,
    query_in,
)
from keepsaid.memory.block import line
from keepsaid.ports.memory_store import Library
from keepsaid.ports.model import Tool
from keepsaid.ports.recall import Recall

_CHARS_MAX, _OPENED_CHARS_MAX, _BESIDE_CHARS_MAX = 2_000, 8_000, 600
_ANSWER_CHARS_MAX = 16_000
_DEEP = 200
"""So many memories are looked at for a narrower search."""

_SOURCES_MAX = 5

_TIME = {"type": "string", "description": "a day (2026-05-04) or a time (2026-05-04T18:00, UTC)"}
_SEARCH: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "words to look for; any text"},
        "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
        "kind": {"type": "string", "description": "only memories of this kind: episode, fact, decision, todo, ..."},
        "person": {"type": "string", "description": "only what this person said, or what is about this person"},
        "since": {**_TIME},
        "until": {**_TIME},
        "as_of": {**_TIME, "description": "only what was known and held true at this day or time"},
        "archived": {"type": "boolean", "description": "search what faded instead; without the limits above"},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_OPEN: Mapping[str, Json] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "a memory as memory_search names it: mem_..."},
        "around": {"type": "integer", "minimum": 0, "maximum": AROUND_MAX, "default": AROUND_DEFAULT},
    },
    "required": ["id"],
    "additionalProperties": False,
}


class Opening(Protocol):
    """Where one memory is read."""

    async def get(self, listener: Listener, memory_id: int) -> Memory | None:
        """One memory, if the listener may hear it."""
        ...


def memory_search(recall: Recall, library: Library, listener: Listener, archive: Recall | None = None) -> Tool:
    """A tool that searches memory as `listener` hears it, never outside its scopes; and the archive, if given."""
    hearing = _hearing(listener)

    async def run(arguments: dict[str, Json]) -> str:
        _known(arguments, _SEARCH)
        query, limit, narrowing = query_in(arguments), limit_in(arguments), narrowing_in(arguments)
        if archived_in(arguments):
            return _written(await archive.recall(hearing, query, limit, narrowing.as_of) if archive else Recalled(()))
        if narrowing == Narrowing():
            return _written(await recall.recall(hearing, query, limit))
        recalled = await recall.recall(hearing, query, _DEEP, narrowing.as_of)
        fitting = set(await library.narrowed(hearing, [hit.memory.id for hit in recalled.hits], narrowing))
        hits = tuple(hit for hit in recalled.hits if hit.memory.id in fitting and narrowing.about(hit.memory))
        return _written(replace(recalled, hits=hits[:limit]))

    return Tool(
        name="memory_search",
        description="Search what was said and learned before. Returns one memory a line, best first.",
        schema=_SEARCH,
        run=run,
        output=Trust.OWNER,
    )


def memory_open(memories: Opening, library: Library, listener: Listener) -> Tool:
    """A tool that shows one memory whole, and what was said around the messages it came from."""
    hearing = _hearing(listener)

    async def run(arguments: dict[str, Json]) -> str:
        _known(arguments, _OPEN)
        memory_id, each = memory_in(arguments), around_in(arguments)
        memory = await memories.get(hearing, memory_id)
        if memory is None:
            raise ToolError(f"there is no memory {show('memory', memory_id)} that may be heard here")
        sources = await library.sources(hearing, memory, _SOURCES_MAX)
        return await _opened(memory, [(one, await library.around(hearing, one, each)) for one in sources])

    return Tool(
        name=MEMORY_OPEN,
        description="Show one memory in full, with what was said around the messages it came from.",
        schema=_OPEN,
        run=run,
        output=Trust.OWNER,
    )


def _hearing(listener: Listener) -> Listener:
    return replace(listener, everything=False, asked=True)


def _known(arguments: Mapping[str, Json], schema: Mapping[str, Json]) -> None:
    properties = schema["properties"]
    assert isinstance(properties, dict), "schemas are written above"
    unknown = sorted(set(arguments) - set(properties))
    if unknown:
        raise ToolError(f"there is no argument {unknown[0]!r}; there are {', '.join(properties)}")


def _written(recalled: Recalled) -> str:
    lines = [f"{show('memory', hit.memory.id)} {line(hit.memory, _CHARS_MAX)}" for hit in recalled.hits]
    lines = _bounded(lines) or ["Nothing found."]
    if recalled.missing:
        lines.append(f"Not searched: {'; '.join(recalled.missing)}.")
    return Trusted("\n".join(lines), least([Trust.OWNER, *(hit.memory.new.trust for hit in recalled.hits)]))


async def _opened(memory: Memory, sources: Sequence[tuple[Memory, Sequence[Memory]]]) -> str:
    """The memory by its name, then each of its sources, marked, among its neighbours; nothing twice."""
    state = "" if memory.state == "active" else f" (no longer valid: {memory.state})"
    lines = [f"{show('memory', memory.id)}{state} {line(memory, _OPENED_CHARS_MAX)}"]
    marked, told = {source.id for source, _ in sources}, set[int]()
    for source, beside in sources:
        said = [one for one in (beside or (source,)) if one.id not in told]
        told.update(one.id for one in said)
        if said:
            lines.append("Said there:")
            lines += [f"{'>' if one.id in marked else ' '} {line(one, _BESIDE_CHARS_MAX)}" for one in said]
    shown = (one.new.trust for source, beside in sources for one in (source, *beside))
    return Trusted("\n".join(_bounded(lines)), least([memory.new.trust, *shown]))


def _bounded(lines: Sequence[str]) -> list[str]:
    """The lines that fit into one answer, and how many did not."""
    kept: list[str] = []
    room = _ANSWER_CHARS_MAX
    for one in lines:
        room -= len(one) + 1
        if room < 0:
            kept.append(f"({len(lines) - len(kept)} more do not fit.)")
            break
        kept.append(one)
    return kept
