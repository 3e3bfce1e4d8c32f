"""What is told of lanes and their sessions: compaction, reset, sleep, end."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.events.schema import Schema, an_id, lane, number, word

_WENT = {
    "lane": lane(),
    "version": number("of what its context begins with"),
    "first": number("the first record that went"),
    "last": number("the last one"),
    "messages": number("how many of them people and agent said"),
}

LANES: Mapping[str, Schema] = MappingProxyType(
    {
        "lane.summarised": Schema(
            "A summary stands for records of a lane.",
            "",
            {
                "lane": lane(),
                "version": number("of the summary"),
                "first": number("the first record that it stands for anew"),
                "last": number("the last one"),
                "made": word("how"),
            },
        ),
        "lane.summary_failed": Schema(
            "A summary could not be made.",
            "",
            {
                "lane": lane(),
                "version": number("of the summary in force"),
                "attempts": number("so far"),
                "error": word("what it was"),
            },
        ),
        "lane.cut": Schema("Records left a lane's context without a summary.", "", _WENT),
        "lane.reset": Schema("A lane begins anew.", "", _WENT),
        "session.started": Schema(
            "A session began.",
            "session",
            {
                "session": an_id("session", "its id"),
                "reason": word("how the one before ended"),
                "first": number("its first record"),
            },
        ),
        "session.woke": Schema(
            "A session that slept goes on.",
            "session",
            {"session": an_id("session", "its id"), "reason": word("why")},
        ),
        "session.sleeping": Schema(
            "A session sleeps, because its lane is quiet.",
            "session",
            {"session": an_id("session", "its id"), "reason": word("why")},
        ),
        "session.ended": Schema(
            "A session ended.",
            "session",
            {
                "session": an_id("session", "its id"),
                "reason": word("why"),
                "first": number("its first record"),
                "last": number("its last"),
            },
        ),
    }
)
"""Topics of lanes and sessions."""
