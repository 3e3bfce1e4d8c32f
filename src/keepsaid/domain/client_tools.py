"""Tools of a client: what it offers with a message, and the call that a turn waits for the client to make."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from keepsaid.domain.prompt import Json
from keepsaid.values import frozen

WAIT_S = 600
"""So long a turn waits for a client to send what its tool returned (spec: doors, A7)."""

TOOLS_MAX = 128
"""Tools that one call offers, as the protocol has it."""


@frozen
class OfferedTool:
    """A tool of a client; `schema` is the JSON Schema of its arguments."""

    name: str
    description: str
    schema: Mapping[str, Json]


@frozen
class CallOfClient:
    """A call that the client is to make: `id` names it, `arguments` are a JSON object."""

    id: str
    name: str
    arguments: str


@frozen
class ResultOfClient:
    """What a client's tool returned for a call."""

    call_id: str
    text: str


def tools_as_text(tools: tuple[OfferedTool, ...]) -> str:
    """The tools of one message as they are kept."""
    return json.dumps([[one.name, one.description, dict(one.schema)] for one in tools], sort_keys=True)


def tools_from_text(text: str) -> tuple[OfferedTool, ...]:
    """The tools that a kept text has."""
    return tuple(OfferedTool(*one) for one in json.loads(text)) if text else ()


def calls_as_text(calls: Sequence[CallOfClient]) -> str:
    """The calls of one step as they are noted."""
    return json.dumps([[one.id, one.name, one.arguments] for one in calls])


def calls_from_text(text: str) -> tuple[CallOfClient, ...]:
    """The calls that a noted text has; an older one has one call alone."""
    noted = json.loads(text) if text else []
    return tuple(CallOfClient(*one) for one in ([noted] if noted and isinstance(noted[0], str) else noted))
