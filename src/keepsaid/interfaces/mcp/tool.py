"""One tool of the MCP server: what it is called, takes and returns, and how much of an answer fits (spec: doors, b)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from keepsaid.interfaces.shapes import Shape

Ask = Callable[[str, Mapping[str, object]], Awaitable[Shape]]
"""Makes a call of an agent by its name, in the name of one principal."""

Act = Callable[[Ask, Mapping[str, Any]], Awaitable[Shape]]
"""What a tool does with its arguments."""

ANSWER_BYTES_MAX = 32_000


class McpTool(NamedTuple):
    """One tool: what it is called and says, the JSON schemas of what it takes and returns, and its hints.

    `act` changes something, and does it again when it is called again.
    """

    name: str
    says: str
    takes: Mapping[str, Any]
    gives: Mapping[str, Any]
    run: Act
    hint: Literal["read", "idempotent", "act", "destructive"]


TEXT = {"type": "string"}
WHERE = {"type": "string", "description": "your name for this conversation"}


def arguments(needed: Sequence[str] = (), **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of what a tool takes, and of nothing else; `needed` must be there."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**schema, "required": list(needed)} if needed else schema


def returns(**kinds: str) -> Mapping[str, Any]:
    """The schema of what a tool returns: the kinds of its fields."""
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in kinds.items()}}


def bounded(name: str, rows: Sequence[Shape]) -> Shape:
    """The rows that fit into an answer, and the ids of those that are left."""
    kept: list[Shape] = []
    room = ANSWER_BYTES_MAX - 1_000
    for row in rows:
        room -= len(json.dumps(row, ensure_ascii=False).encode())
        if room < 0 and kept:
            break
        kept.append(row)
    rest = [str(row.get("id") or row.get("memory", {}).get("id", "")) for row in rows[len(kept) :]]
    return {name: kept, "rest": list(filter(None, rest))} if rest else {name: kept}
