"""What is told of the road of a message: in, grouped, answered, out."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.domain.event import RECEIVED
from keepsaid.domain.fact import ROUTED, STARTED, Over
from keepsaid.events.schema import Schema, an_id, flag, ids, number, word

_BATCH = {"batch": an_id("batch", "its id")}
_TURN = {"turn": an_id("turn", "its id"), "batch": an_id("batch", "the batch it answers")}
_REPLY = {
    "reply": an_id("reply", "its id"),
    "turn": an_id("turn", "the turn that made it").if_any(),
    "batch": an_id("batch", "the batch it answers").if_any(),
    "tries": number("how often it was sent"),
}

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
        ROUTED: Schema(
            "A rule put messages into a batch: a new one, or one that waited and takes them in.",
            "batch",
            {
                "batch": an_id("batch", "its id"),
                "messages": number("how many came with this"),
                "action": word("what the rule asks for", "forward", "spawn"),
                "rule": word("the rule; empty for what no rule matched"),
                "task": an_id("task", "the task it became, where it was spawned").if_any(),
            },
            together=True,
        ),
        "batch.dropped": Schema(
            "A batch is answered by nobody.",
            "batch",
            {
                "batch": an_id("batch", "its id"),
                "messages": number("how many it holds"),
                "rule": word("the rule that says so; missing where a person did").if_any(),
            },
        ),
        "batch.dead": Schema("A batch is given up after its last attempt.", "batch", _BATCH),
        "batch.parked": Schema(
            "A batch waits for a person's word: it may have done what must not be repeated.", "batch", _BATCH
        ),
        STARTED: Schema(
            "A turn began, with the first claim of its batch; a later attempt goes on with it.",
            "turn",
            _TURN,
            together=True,
        ),
        "turn.committed": Schema(
            "A turn was settled, with its transcript and its reply.",
            "turn",
            {
                **_TURN,
                "replied": flag("whether there is a reply"),
                "steered": ids("batch", "batches that joined it, where some did").if_any(),
            },
            alias="agent_response",
        ),
        "turn.abandoned": Schema(
            "A turn is over without an answer.",
            "turn",
            {**_TURN, "why": word("what became of its batch", *Over)},
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
        "reply.sent": Schema("A reply reached its channel, or was pulled.", "reply", _REPLY),
        "reply.unknown": Schema(
            "A reply may have arrived, or not: it is sent again, marked, or given up.", "reply", _REPLY
        ),
        "reply.dead": Schema("A reply is given up.", "reply", _REPLY),
        "reply.not_deliverable": Schema(
            "A reply will never be sent: its channel refused it, or a person did.", "reply", _REPLY
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
