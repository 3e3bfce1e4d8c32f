"""What is told of lanes and their sessions: compaction, reset, sleep, end."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.domain.compaction import Cut
from keepsaid.domain.session import Ending
from keepsaid.domain.summary import Made
from keepsaid.events.schema import Schema, an_id, lane, number, word

_WENT = {
    "lane": lane(),
    "version": number("of what its context begins with"),
    "first": number("the first record that went"),
    "last": number("the last one"),
    "messages": number("how many of them people and agent said"),
}

_OVER = {
    "session": an_id("session", "its id"),
    "first": number("its first record"),
    "last": number("its last"),
}
_ROTATED = tuple(one for one in Ending if one is not Ending.IDLE)

LANES: Mapping[str, Schema] = MappingProxyType(
    {
        "lane.compacted": Schema(
            "Records left a lane's context: a summary stands for them, or they did not fit (`guard`).",
            "",
            {**_WENT, "how": word("how", *Made, Cut.GUARD)},
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
        "session.rotated": Schema(
            "A session ended, and what comes next in its lane begins another.",
            "session",
            {**_OVER, "reason": word("why", *_ROTATED)},
        ),
        "session.ended": Schema(
            "A session ended, because its lane was quiet for long.",
            "session",
            {**_OVER, "reason": word("why", Ending.IDLE)},
        ),
    }
)
"""Topics of lanes and sessions."""
