"""Speak: the tool by which a person has the agent speak otherwise, and what a turn leaves behind of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from keepsaid.domain.effects import SetPersonality
from keepsaid.domain.memory import person_of
from keepsaid.domain.message import Trust
from keepsaid.domain.personality import PERSONALITY_CHARS_MAX, settable
from keepsaid.domain.prompt import Json, Record, Role, ToolCall
from keepsaid.domain.provenance import least
from keepsaid.domain.text import normalise
from keepsaid.domain.turn import Claimed
from keepsaid.errors import ToolError
from keepsaid.ports.model import Tool

SET_PERSONALITY = "set_personality"
_REFUSED = "error:"


def set_personality(claimed: Claimed) -> tuple[Tool, ...]:
    """The tool, for who may; it takes effect with the turn's commit, and shows in the next turn."""
    allowed = settable(claimed.batch.lane, claimed.heard)
    if not allowed:
        return ()

    async def run(arguments: dict[str, Json]) -> str:
        name, text = _read(arguments, allowed)
        where = {"session": "in this lane", "person": "with this person", "global": "everywhere"}[name]
        return f"Set {where}, from the next turn on." if text else f"Taken back {where}."

    schema: Mapping[str, Json] = {
        "type": "object",
        "properties": {
            "text": {"type": "string", "maxLength": PERSONALITY_CHARS_MAX, "description": "how; empty takes it back"},
            "scope": {"type": "string", "enum": [*allowed], "default": next(iter(allowed))},
        },
        "required": ["text"],
        "additionalProperties": False,
    }
    says = "Set how you speak, when the person asks you to speak otherwise."
    whose = least(one.inbound.origin.trust for one in claimed.heard)
    return (Tool(SET_PERSONALITY, says, schema, run, serves=whose, output=Trust.OWNER),)


def set_in(records: Sequence[Record], claimed: Claimed) -> tuple[SetPersonality, ...]:
    """What a turn's records set: every call that was answered and not refused, in order."""
    allowed = settable(claimed.batch.lane, claimed.heard)
    done = {one.call_id for one in records if one.role is Role.TOOL and not one.text.startswith(_REFUSED)}
    calls = [call for one in records for call in one.calls if call.name == SET_PERSONALITY and call.id in done]
    by = person_of(claimed.heard[-1].inbound.origin)
    read = (_read_again(call, allowed) for call in calls)
    return tuple(SetPersonality(allowed[one[0]], one[1], by) for one in read if one is not None)


def _read_again(call: ToolCall, allowed: Mapping[str, str]) -> tuple[str, str] | None:
    """What a call that was made sets; None when somebody joined the turn since, before whom it may not."""
    try:
        return _read(json.loads(call.arguments or "{}"), allowed)
    except ToolError:
        return None


def _read(arguments: Mapping[str, Json], allowed: Mapping[str, str]) -> tuple[str, str]:
    text, name = arguments.get("text"), arguments.get("scope", next(iter(allowed), None))
    if not isinstance(text, str) or len(text.strip()) > PERSONALITY_CHARS_MAX:
        raise ToolError(f"text must be a text of at most {PERSONALITY_CHARS_MAX:,} characters")
    if not isinstance(name, str) or name not in allowed:
        raise ToolError(f"scope must be one of {', '.join(allowed)}")
    return name, normalise(text).strip()
