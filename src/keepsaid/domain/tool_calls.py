"""Tool calls: the JSON Schema of their arguments, and the calls in a turn's records that were not refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json, Record, Role, ToolCall

REFUSED = "error:"
"""How the answer to a refused call begins."""


def object_schema(properties: Mapping[str, Json], *required: str) -> Mapping[str, Json]:
    """Return the schema of an object with these properties and no others."""
    needed: dict[str, Json] = {"required": list(required)} if required else {}
    return {"type": "object", "properties": {**properties}, **needed, "additionalProperties": False}


class AnsweredCall(NamedTuple):
    """A call, the text that the tool returned, and the trust of the turn when it called; None where none is stored."""

    call: ToolCall
    text: str
    trust: Trust | None

    @property
    def arguments(self) -> dict[str, Json]:
        """The arguments as an object; empty if they are none."""
        arguments: Json = json.loads(self.call.arguments or "{}")
        return arguments if isinstance(arguments, dict) else {}


def answered_calls(records: Sequence[Record], *names: str) -> Iterator[AnsweredCall]:
    """Yield the calls of these tools that were answered and not refused, in order.

    A later step may use the ids of calls again: an answer belongs to the newest call with its id.
    """
    calls: dict[str, ToolCall] = {}
    trust = None
    for record in records:
        if record.role is Role.ASSISTANT:
            calls = {call.id: call for call in record.calls if call.name in names}
            trust = record.trust
        elif record.role is Role.TOOL and record.call_id in calls and not record.text.startswith(REFUSED):
            yield AnsweredCall(calls[record.call_id], record.text, trust)
