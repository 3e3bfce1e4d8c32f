"""What is told of memory: in the operational commit by which what memory did is known to be done."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.events.schema import Schema, an_id, number, word

_MEMORY = {"memory": an_id("memory", "its id"), "kind": word("its kind")}

MEMORY: Mapping[str, Schema] = MappingProxyType(
    {
        "memory.saved": Schema(
            "Something is known: found in what was said, asked for by a turn, added by a person, or made of others. "
            "Episodes are not told of; their messages and turns are.",
            "memory",
            _MEMORY,
            together=True,
        ),
        "memory.superseded": Schema(
            "A memory holds no more, because another took its place.",
            "memory",
            {**_MEMORY, "by": an_id("memory", "the one that did, where it is one").if_any()},
            together=True,
        ),
        "memory.archived": Schema(
            "A memory was put away, by maintenance or a person.", "memory", _MEMORY, together=True
        ),
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
