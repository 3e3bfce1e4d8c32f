"""Tools of a client: what it offers with a message, and the call that a turn waits for the client to make."""

from __future__ import annotations

import json
from collections.abc import Mapping

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

    @property
    def as_text(self) -> str:
        """It as it is noted."""
        return json.dumps([self.id, self.name, self.arguments])


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


def call_from_text(text: str) -> CallOfClient | None:
    """The call that a noted text has."""
    return CallOfClient(*json.loads(text)) if text else None
