"""What is told of memory: in the operational commit by which what memory did is known to be done."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.events.schema import Schema, an_id, number, word

MEMORY: Mapping[str, Schema] = MappingProxyType(
    {
        "memory.forgotten": Schema(
            "What somebody asked to be forgotten is gone.",
            "forgetting",
            {
                "forgetting": an_id("forgetting", "the id of its receipt"),
                "memories": number("how many of them went"),
                "messages": number("how many of them went"),
            },
        ),
        "memory.session_completed": Schema(
            "Everything marked of a session was read.",
            "session",
            {"session": an_id("session", "its id"), "until": number("the last record that was read")},
        ),
        "memory.session_parked": Schema(
            "A session is not read any more, because reading it failed too often.",
            "session",
            {"session": an_id("session", "its id"), "error": word("what it was")},
        ),
    }
)
"""Topics of memory."""
