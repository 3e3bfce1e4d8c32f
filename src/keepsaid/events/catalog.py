"""The catalogue of events: every topic of the core with the fields of its payload, and which topics others may use."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.domain.compaction import CutReason
from keepsaid.domain.context import Made
from keepsaid.domain.event import RECEIVED, ROUTED, STARTED, AbandonReason
from keepsaid.domain.prompt import Json
from keepsaid.domain.session import SessionEnd
from keepsaid.domain.work import TaskKind
from keepsaid.errors import InputError
from keepsaid.events.schema import Field, Schema, an_id, flag, ids, lane, number, word

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
            {**_TURN, "why": word("what became of its batch", *AbandonReason)},
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
_ROTATED = tuple(one for one in SessionEnd if one is not SessionEnd.IDLE)

LANES: Mapping[str, Schema] = MappingProxyType(
    {
        "lane.compacted": Schema(
            "Records left a lane's context: a summary stands for them, or they did not fit (`guard`).",
            "",
            {**_WENT, "how": word("how", *Made, CutReason.GUARD)},
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
            {**_OVER, "reason": word("why", SessionEnd.IDLE)},
        ),
    }
)
"""Topics of lanes and sessions."""


_TASK = an_id("task", "its id")
_ATTEMPTS = number("attempts that were charged to it")

TASKS: Mapping[str, Schema] = MappingProxyType(
    {
        "task.created": Schema(
            "Work was written down, by a rule or by somebody's word.",
            "task",
            {
                "task": _TASK,
                "kind": word("who is to do it", *TaskKind),
                "after": number("how many tasks must be completed first"),
            },
        ),
        "task.started": Schema(
            "Somebody began to work on it, or began again.",
            "task",
            {"task": _TASK, "attempt": number("which attempt that is, from 1; what is not charged does not count")},
        ),
        "task.completed": Schema("It was done; its result is on disk.", "task", {"task": _TASK, "attempts": _ATTEMPTS}),
        "task.failed": Schema(
            "It came to nothing, or what it waits for did.",
            "task",
            {"task": _TASK, "attempts": _ATTEMPTS, "upstream": an_id("task", "the one that failed before it").if_any()},
        ),
        "task.cancelled": Schema("Somebody ended it.", "task", {"task": _TASK}),
        "task.needs_review": Schema(
            "It waits for a person's word: a call that must not be repeated may have been made.",
            "task",
            {"task": _TASK, "attempts": _ATTEMPTS},
        ),
    }
)
"""Topics that begin with `task.`."""


_SCHEDULE = {"schedule": an_id("schedule", "its id")}
_RUN = {**_SCHEDULE, "due": number("the time the run is for, milliseconds UTC")}


def _of_run(meaning: str, **more: Field) -> Schema:
    return Schema(meaning, "schedule", {**_RUN, **more})


def _of_schedule(meaning: str, **more: Field) -> Schema:
    return Schema(meaning, "schedule", {**_SCHEDULE, **more})


SCHEDULES: Mapping[str, Schema] = MappingProxyType(
    {
        "schedule.added": _of_schedule(
            "A schedule was added.",
            source=word("who asked for it"),
            what=word("what is done", "say", "ask", "run", "task"),
        ),
        "schedule.fired": _of_run(
            "The time of a schedule came, and a run is due.", late_ms=number("milliseconds after its time")
        ),
        "schedule.executed": _of_run("A run was executed.", reason=word("what is said of it").if_any()),
        "schedule.delivered": _of_run("What a run had to say has left."),
        "schedule.undelivered": _of_run("What a run had to say cannot be delivered.", reason=word("why").if_any()),
        "schedule.silent": _of_run("The agent was asked, and had no answer.", reason=word("why").if_any()),
        "schedule.failed": _of_run("A run failed.", reason=word("why").if_any()),
        "schedule.skipped": _of_run("A time was not run for.", reason=word("why")),
        "schedule.interrupted": _of_run("A run ended with its process, or with its task.", reason=word("why").if_any()),
        "schedule.disabled": _of_schedule(
            "A schedule failed too often in a row, and comes no more.",
            failures=number("how often"),
            reason=word("why, the last time"),
        ),
        "schedule.paused": _of_schedule("A person paused a schedule."),
        "schedule.resumed": _of_schedule("A person let a schedule come again."),
        "schedule.cancelled": _of_schedule("A schedule was cancelled."),
        "schedule.done": _of_schedule("A schedule came for the last time."),
    }
)
"""Topics that begin with `schedule.`."""


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


EXTENSIONS: Mapping[str, Schema] = MappingProxyType(
    {
        "extension.started": Schema("An extension was let in.", "extension", {"extension": word("its id")}),
        "extension.quarantined": Schema(
            "An extension failed, or could not be let in.",
            "extension",
            {"extension": word("its id"), "phase": word("what was being done")},
        ),
    }
)
"""Topics that begin with `extension.`."""


CORE: Mapping[str, Schema] = MappingProxyType({**ROAD, **LANES, **MEMORY, **TASKS, **SCHEDULES, **EXTENSIONS})
"""What the core tells of, each with the schema of its payload."""

ALIASES: Mapping[str, str] = MappingProxyType({one.alias: topic for topic, one in CORE.items() if one.alias})
"""Other names of topics, as seed 002 has them: `user_message`, `agent_response`."""

USER_MESSAGE = "user.message"
"""What seed 002's channels emit for what somebody said: no fact to tell of, but a message for the buffer."""

_TOPIC = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
_PATTERN = re.compile(r"([a-z][a-z0-9_]*|\*)(\.([a-z0-9_]+|\*))+")
_TOPIC_CHARS_MAX = 200
_PAYLOAD_BYTES_MAX = 64_000
_OURS = frozenset(topic.partition(".")[0] for topic in CORE) | {"batch", "reply", "task", "schedule", "extension"}
_UNTOLD = "Nothing was told."


def topics_of(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The patterns, with topics for aliases; raises InputError unless each is a topic, one with `*`, or an alias."""
    patterns = tuple(ALIASES.get(one, one) for one in patterns)
    wrong = [one for one in patterns if len(one) > _TOPIC_CHARS_MAX or not _PATTERN.fullmatch(one)]
    if wrong or not patterns:
        named = ", ".join(map(repr, wrong)) or "nothing"
        raise InputError(
            f"{named} cannot be subscribed to: a topic is words joined by dots, as turn.committed or memory.*",
            safe="Nothing was changed.",
            hint="keepsaid events topics",
        )
    return patterns


def checked(topic: str, payload: Mapping[str, Json]) -> str:
    """The payload as it is kept; raises InputError for a topic of the core, no topic, or too large a payload."""
    if len(topic) > _TOPIC_CHARS_MAX or not _TOPIC.fullmatch(topic):
        raise InputError(f"{topic!r} is no topic: words joined by dots, as deploy.finished", safe=_UNTOLD)
    if topic == USER_MESSAGE:
        raise InputError(f"{topic} is what somebody said: it is handed over as a message, not told", safe=_UNTOLD)
    if topic.partition(".")[0] in _OURS:
        raise InputError(f"{topic}: topics that begin so are the runtime's own", safe=_UNTOLD)
    try:
        kept = json.dumps(dict(payload), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the payload of {topic} is not JSON: {error}", safe=_UNTOLD) from error
    if len(kept.encode("utf-8", "surrogatepass")) > _PAYLOAD_BYTES_MAX:
        raise InputError(f"the payload of {topic} is over 64 kB", safe=_UNTOLD)
    return kept
