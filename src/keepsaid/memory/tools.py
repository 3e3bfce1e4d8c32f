"""Memory tools: the agent saves, corrects, confirms and searches; their arguments are read, mistakes explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from keepsaid.domain import ids, learning, receipt, turn
from keepsaid.domain.effects import MemoryAction, StageMemory, parse_staged_request
from keepsaid.domain.memory import IMPORTANCE, Kind, Listener, Memory, Narrowing, NewMemory, Recalled
from keepsaid.domain.message import SYSTEM, Trust, Trusted
from keepsaid.domain.prompt import Json, object_schema
from keepsaid.domain.visibility import least
from keepsaid.errors import ToolError
from keepsaid.memory.block import line
from keepsaid.memory.recall.recollection import narrowed
from keepsaid.ports import model
from keepsaid.ports.memory_store import Library, Recall

LIMIT_DEFAULT, LIMIT_MAX = 10, 50
AROUND_DEFAULT, AROUND_MAX = 3, 10
_PERSON_CHARS_MAX = 200


def memory_in(arguments: Mapping[str, Json]) -> int:
    """The memory that is meant."""
    given = arguments.get("id")
    number = ids.read("memory", given) if isinstance(given, str) else None
    if number is None:
        raise ToolError("id must name a memory as memory_search does: mem_ and 13 letters or digits")
    return number


def narrowing_in(arguments: Mapping[str, Json]) -> Narrowing:
    """What the search keeps to."""
    since, until = _time(arguments, "since"), _time(arguments, "until", ends=True)
    if since is not None and until is not None and since > until:
        raise ToolError("since must not be later than until")
    kind, person = arguments.get("kind"), arguments.get("person")
    if kind is not None and kind not in list(Kind):
        raise ToolError(f"kind must be one of {', '.join(Kind)}")
    if person is not None and not (isinstance(person, str) and person.strip() and len(person) <= _PERSON_CHARS_MAX):
        raise ToolError(f"person must be a name of at most {_PERSON_CHARS_MAX} characters")
    as_of = _time(arguments, "as_of", ends=True)
    return Narrowing(None if kind is None else Kind(str(kind)), str(person or ""), since, until, as_of)


def _number(arguments: Mapping[str, Json], name: str, default: int, bounds: tuple[int, int]) -> int:
    number = arguments.get(name, default)
    least, most = bounds
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise ToolError(f"{name} must be a whole number from {least} to {most}")
    return number


def _time(arguments: Mapping[str, Json], name: str, *, ends: bool = False) -> int | None:
    """Milliseconds UTC; a day means its beginning, or its end where it `ends` something."""
    if (given := arguments.get(name)) is None:
        return None
    try:
        return ids.moment(given if isinstance(given, str) else "", ends=ends)
    except ValueError as error:
        raise ToolError(f"{name} must be {error}") from None


_CHARS_MAX, _OPENED_CHARS_MAX, _NEIGHBOUR_CHARS_MAX = 2_000, 8_000, 600
_ANSWER_CHARS_MAX = 16_000
_SOURCES_MAX = 5

_TEXT: Mapping[str, Json] = {"type": "string"}
_ID: Mapping[str, Json] = {"type": "string", "description": "mem_..., as memory_search names it"}
_SEARCH = object_schema(
    {
        "query": {**_TEXT},
        "limit": {"type": "integer", "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT},
        "kind": {**_TEXT, "description": "only this kind: episode, fact, decision, todo, ..."},
        "person": {**_TEXT, "description": "only what this person said, or what is about them"},
        "since": {**_TEXT, "description": "2026-05-04 or 2026-05-04T18:00, UTC"},
        "until": {**_TEXT},
        "as_of": {**_TEXT, "description": "only what held true then"},
        "archived": {"type": "boolean", "description": "search what faded instead, without these limits"},
    },
    "query",
)
_OPEN = object_schema(
    {
        "id": {**_ID},
        "around": {"type": "integer", "maximum": AROUND_MAX, "default": AROUND_DEFAULT},
    },
    "id",
)


class Opening(Protocol):
    """Reads one memory, if the listener may read it."""

    async def get(self, listener: Listener, memory_id: int) -> Memory | None: ...


def memory_search(recall: Recall, library: Library, listener: Listener, archive: Recall | None = None) -> model.Tool:
    """A tool that searches memory as `listener` hears it, never outside its scopes; and the archive, if given."""
    hearing = _restrict_listener(listener)

    async def run(arguments: dict[str, Json]) -> str:
        _known(arguments, _SEARCH)
        query, archived = arguments.get("query"), arguments.get("archived", False)
        if not isinstance(query, str) or not query.strip():
            raise ToolError("query must be a text that is not empty")
        narrowing = narrowing_in(arguments)
        limit = _number(arguments, "limit", LIMIT_DEFAULT, (1, LIMIT_MAX))
        if not isinstance(archived, bool):
            raise ToolError("archived must be true or false")
        if archived:
            return _written(await archive.recall(hearing, query, limit, narrowing.as_of) if archive else Recalled(()))
        return _written(await narrowed(recall, library, hearing, (query, limit), narrowing))

    says = "Search what was said and learned before."
    return model.Tool("memory_search", says, _SEARCH, run, output=Trust.OWNER)


def memory_open(memories: Opening, library: Library, listener: Listener) -> model.Tool:
    """A tool that shows one memory whole, and what was said around the messages it came from."""
    hearing = _restrict_listener(listener)

    async def run(arguments: dict[str, Json]) -> str:
        _known(arguments, _OPEN)
        memory_id, each = memory_in(arguments), _number(arguments, "around", AROUND_DEFAULT, (0, AROUND_MAX))
        if (memory := await memories.get(hearing, memory_id)) is None:
            raise ToolError(f"there is no memory {ids.show('memory', memory_id)} that can be read here")
        sources = await library.sources(hearing, memory, _SOURCES_MAX)
        return await _opened(memory, [(one, await library.around(hearing, one, each)) for one in sources])

    says = "Show one memory in full, with what was said around it."
    return model.Tool(receipt.MEMORY_OPEN, says, _OPEN, run, output=Trust.OWNER)


def _restrict_listener(listener: Listener) -> Listener:
    return replace(listener, everything=False, asked=True)


def _known(arguments: Mapping[str, Json], schema: Mapping[str, Json]) -> None:
    properties = schema["properties"]
    assert isinstance(properties, dict), "schemas are written above"
    if unknown := sorted(set(arguments) - set(properties)):
        raise ToolError(f"there is no argument {unknown[0]!r}; there are {', '.join(properties)}")


def _written(recalled: Recalled) -> str:
    lines = [f"{ids.show('memory', hit.memory.id)} {line(hit.memory, _CHARS_MAX)}" for hit in recalled.hits]
    lines = _bounded(lines) or ["Nothing found."]
    if recalled.missing:
        lines.append(f"Not searched: {'; '.join(recalled.missing)}.")
    return Trusted("\n".join(lines), least([Trust.OWNER, *(hit.memory.new.trust for hit in recalled.hits)]))


async def _opened(memory: Memory, sources: Sequence[tuple[Memory, Sequence[Memory]]]) -> str:
    """The memory by its name, then each of its sources, marked, among its neighbours; nothing twice."""
    state = "" if memory.state == "active" else f" (no longer valid: {memory.state})"
    lines = [f"{ids.show('memory', memory.id)}{state} {line(memory, _OPENED_CHARS_MAX)}"]
    marked, shown_ids = {source.id for source, _ in sources}, set[int]()
    for source, neighbours in sources:
        said = [one for one in (neighbours or (source,)) if one.id not in shown_ids]
        shown_ids.update(one.id for one in said)
        if said:
            lines.append("Said there:")
            lines += [f"{'>' if one.id in marked else ' '} {line(one, _NEIGHBOUR_CHARS_MAX)}" for one in said]
    shown = (one.new.trust for source, neighbours in sources for one in (source, *neighbours))
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


_SAVED: Mapping[str, Json] = {
    "text": {**_TEXT, "description": "one sentence that is clear alone: Ann lives in Porto"},
    "kind": {"type": "string", "enum": [str(kind) for kind in IMPORTANCE], "default": "fact"},
    "subject": {**_TEXT, "description": "whom or what it is about: Ann"},
    "attribute": {**_TEXT, "description": "if it is one thing: lives in"},
    "value": {**_TEXT, "description": "Porto"},
    "valid_from": {**_TEXT, "description": "a day or time, if not now"},
    "valid_to": {**_TEXT},
}
_CORRECTED: Mapping[str, Json] = {
    "id": {**_ID},
    "text": {**_TEXT, "description": "what is right: Ann lives in Porto"},
    "value": {**_TEXT, "description": "the right value, if it has one: Porto"},
}
_SCHEMAS = {
    MemoryAction.SAVE: object_schema(_SAVED, "text"),
    MemoryAction.CORRECT: object_schema(_CORRECTED, "id", "text"),
    MemoryAction.CONFIRM: object_schema({"id": {**_ID}}, "id"),
}
_SAYS = {
    MemoryAction.SAVE: "Remember something for good, when a person asks for it or will want it later.",
    MemoryAction.CORRECT: "Put a memory right when a person says that it is wrong.",
    MemoryAction.CONFIRM: "Take a memory for certain when a person says that it is right.",
}


def memory_action_tools(memories: Opening, listener: Listener, claimed: turn.ClaimedBatch) -> tuple[model.Tool, ...]:
    """Return the tools that change memory; none if a stranger wrote.

    A turn that the program began is offered them too, so that the list of tools stays as it is from turn to turn; one
    that shows text from outside may call none.
    """
    origins = [message.inbound.origin for message in claimed.all_messages]
    if any(one.trust is Trust.EXTERNAL for one in origins if one.sender != SYSTEM):
        return ()
    trust = least(one.trust for one in origins)
    hearing = replace(listener, everything=False)

    def tool(action: MemoryAction) -> model.Tool:
        async def run(arguments: dict[str, Json]) -> str:
            asked = _parse_call(action, arguments)
            if action is MemoryAction.SAVE:
                return "It is remembered once your answer is written."
            _check(await memories.get(hearing, asked.memory_id), asked.memory_id, trust)
            what = "is put right" if action is MemoryAction.CORRECT else "is taken for certain"
            return f"{ids.show('memory', asked.memory_id)} {what} once your answer is written."

        serves = trust if action is not MemoryAction.SAVE and trust is not Trust.EXTERNAL else Trust.KNOWN
        return model.Tool(action, _SAYS[action], _SCHEMAS[action], run, serves=serves, output=Trust.OWNER)

    return tuple(tool(action) for action in MemoryAction)


def _parse_call(action: MemoryAction, arguments: Mapping[str, Json]) -> StageMemory:
    _known(arguments, _SCHEMAS[action])
    try:
        asked = parse_staged_request(action, arguments)
    except ValueError as error:
        raise ToolError(str(error)) from None
    if action is not MemoryAction.CONFIRM:
        said = NewMemory("", asked.kind, asked.text, "", Trust.KNOWN, subject=asked.subject, attribute=asked.attribute)
        if why := learning.junk(replace(said, value=asked.value)):
            raise ToolError(f"this is not worth remembering: {why}")
    return asked


def _check(memory: Memory | None, memory_id: int, trust: Trust) -> None:
    if memory is None:
        raise ToolError(f"there is no memory {ids.show('memory', memory_id)} that can be read here")
    if memory.new.kind not in learning.LEARNABLE:
        raise ToolError(f"{ids.show('memory', memory_id)} is what was said; what is known now can be saved beside it")
    if memory.new.trust is Trust.OWNER and trust is not Trust.OWNER:
        raise ToolError(f"only the owner can change {ids.show('memory', memory_id)}")
