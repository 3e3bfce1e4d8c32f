"""Saving: the tools by which the agent keeps, corrects and confirms what it knows; done once its turn is committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from keepsaid.domain.ids import show
from keepsaid.domain.learning import LEARNABLE, junk
from keepsaid.domain.memory import IMPORTANCE, Listener, Memory, NewMemory
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json
from keepsaid.domain.staged import NAME_CHARS_MAX, TEXT_CHARS_MAX, Deed, StageMemory, deed_in
from keepsaid.domain.turn import Claimed
from keepsaid.domain.visibility import least
from keepsaid.errors import ToolError
from keepsaid.memory.tools import Opening
from keepsaid.ports.model import Tool

_TEXT: Mapping[str, Json] = {"type": "string", "maxLength": TEXT_CHARS_MAX}
_NAME: Mapping[str, Json] = {"type": "string", "maxLength": NAME_CHARS_MAX}
_ID: Mapping[str, Json] = {"type": "string", "description": "a memory as memory_search names it: mem_..."}
_PROPERTIES: Mapping[Deed, Mapping[str, Json]] = {
    Deed.SAVE: {
        "text": {**_TEXT, "description": "one sentence that can stand alone: Ann lives in Porto"},
        "kind": {"type": "string", "enum": [str(kind) for kind in IMPORTANCE], "default": "fact"},
        "subject": {**_NAME, "description": "whom or what it is about: Ann"},
        "attribute": {**_NAME, "description": "what of it, if it is one thing: lives in"},
        "value": {**_NAME, "description": "and which: Porto"},
        "valid_from": {**_NAME, "description": "since when, if not since now: a day or a time, UTC"},
        "valid_to": {**_NAME, "description": "until when, if that is known"},
    },
    Deed.CORRECT: {
        "id": {**_ID},
        "text": {**_TEXT, "description": "what is right: Ann lives in Porto"},
        "value": {**_NAME, "description": "the right value, where the memory has one: Porto"},
    },
    Deed.CONFIRM: {"id": {**_ID}},
}
_NEEDED: Mapping[Deed, list[Json]] = {Deed.SAVE: ["text"], Deed.CORRECT: ["id", "text"], Deed.CONFIRM: ["id"]}
_SAYS = {
    Deed.SAVE: "Remember something for good, when a person asks for it or will want it later.",
    Deed.CORRECT: "Put a memory right when a person says that it is wrong. What it said before is kept as past.",
    Deed.CONFIRM: "Take a memory for certain when a person says that it is right.",
}


def memory_deeds(memories: Opening, listener: Listener, claimed: Claimed) -> tuple[Tool, ...]:
    """The tools, where the turn answers people alone: what outsiders wrote asks nothing of memory."""
    trust = least(message.inbound.origin.trust for message in claimed.heard)
    if trust is Trust.EXTERNAL:
        return ()
    hearing = replace(listener, everything=False)

    def tool(deed: Deed) -> Tool:
        async def run(arguments: dict[str, Json]) -> str:
            asked = _asked(deed, arguments)
            if deed is Deed.SAVE:
                return "It is remembered once your answer is written."
            memory = await memories.get(hearing, asked.memory_id)
            _check(memory, asked.memory_id, trust)
            what = "is put right" if deed is Deed.CORRECT else "is taken for certain"
            return f"{show('memory', asked.memory_id)} {what} once your answer is written."

        schema: Mapping[str, Json] = {
            "type": "object",
            "properties": {**_PROPERTIES[deed]},
            "required": _NEEDED[deed],
            "additionalProperties": False,
        }
        return Tool(
            deed, _SAYS[deed], schema, run, serves=Trust.KNOWN if deed is Deed.SAVE else trust, output=Trust.OWNER
        )

    return tuple(tool(deed) for deed in Deed)


def _asked(deed: Deed, arguments: Mapping[str, Json]) -> StageMemory:
    unknown = sorted(set(arguments) - set(_PROPERTIES[deed]))
    if unknown:
        raise ToolError(f"there is no argument {unknown[0]!r}; there are {', '.join(_PROPERTIES[deed])}")
    try:
        asked = deed_in(deed, arguments)
    except ValueError as error:
        raise ToolError(str(error)) from None
    if deed is not Deed.CONFIRM:
        said = NewMemory("", asked.kind, asked.text, "", Trust.KNOWN, subject=asked.subject, attribute=asked.attribute)
        why = junk(replace(said, value=asked.value))
        if why:
            raise ToolError(f"this is not worth remembering: {why}")
    return asked


def _check(memory: Memory | None, memory_id: int, trust: Trust) -> None:
    if memory is None:
        raise ToolError(f"there is no memory {show('memory', memory_id)} that may be heard here")
    if memory.new.kind not in LEARNABLE:
        raise ToolError(f"{show('memory', memory_id)} is what was said; what is known now can be saved beside it")
    if memory.new.trust is Trust.OWNER and trust is not Trust.OWNER:
        raise ToolError(f"only the owner can change {show('memory', memory_id)}")
