"""What is told of the road of a message: in, grouped, answered, out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.domain.event import RECEIVED
from keepsaid.events.schema import Schema, an_id, flag, ids, number, word

ROAD: Mapping[str, Schema] = MappingProxyType(
    {
        RECEIVED: Schema(
            "A message is on disk.",
            "message",
            {
                "message": an_id("message", "its id"),
                "channel": word("the channel it came by"),
                "number": number("its number in its lane"),
            },
            alias="user_message",
            together=True,
        ),
        "turn.committed": Schema(
            "A turn was settled, with its transcript and its reply.",
            "turn",
            {
                "turn": an_id("turn", "its id"),
                "batch": an_id("batch", "the batch it answers"),
                "replied": flag("whether there is a reply"),
                "steered": ids("batch", "batches that joined it, where some did").if_any(),
            },
            alias="agent_response",
        ),
        "command.executed": Schema(
            "A turn obeyed a command.",
            "turn",
            {
                "name": word("the command"),
                "outcome": word("what became of it"),
                "arguments": number("characters that followed its name"),
            },
        ),
        "buffer.backlog": Schema(
            "More waits, or for longer, than a limit allows.",
            "",
            {
                "what": word("which limit"),
                "waiting": number("messages"),
                "oldest_age_ms": number("of the oldest"),
                "limit": number("the limit"),
            },
        ),
    }
)
"""Topics of the road."""
