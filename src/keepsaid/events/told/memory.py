"""What is told of memory: in the operational commit by which what memory did is known to be done."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.events.schema import Schema, an_id, number, word

MEMORY: Mapping[str, Schema] = MappingProxyType(
    {
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
