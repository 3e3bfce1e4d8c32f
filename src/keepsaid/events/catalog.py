"""The catalogue of events: every topic of the core with the fields of its payload, and which topics others may use."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from keepsaid.domain import compaction, context, route, session
from keepsaid.domain.event import BACKGROUND, RECEIVED, ROUTED, STARTED, AbandonReason
from keepsaid.domain.prompt import Json
from keepsaid.errors import InputError
from keepsaid.events.schema import Field, Schema, an_id, flag, ids, lane, number, word


def _topic(about: str, when: str, /, **fields: Field) -> Schema:
    """A topic about something with an id, which is the first field."""
    return Schema(when, about, {about: an_id(about, "its id"), **fields})


_BATCH = an_id("batch", "the batch it answers")
_MESSAGES = number("how many of them people and agent said")
_LANE = {"lane": lane(), "version": number("of what its context begins with")}
_LANE |= {"first": number("the first record that went"), "last": number("the last one"), "messages": _MESSAGES}
_SESSION = {"first": number("its first record"), "last": number("its last")}
_SESSION_ENDS = tuple(one for one in session.SessionEnd if one is not session.SessionEnd.IDLE)
_ATTEMPTS = number("attempts that were charged to it")
_KIND = word("its kind")
_BOT = word("the login or bot there")
_WHY = word("why")


def _of_reply(when: str) -> Schema:
    made_by = {"turn": an_id("turn", "the turn that made it").if_any(), "batch": _BATCH.if_any()}
    return _topic("reply", when, **made_by, tries=number("how often it was sent"))


def _of_run(when: str, **more: Field) -> Schema:
    return _topic("schedule", when, due=number("the time the run is for, milliseconds UTC"), **more)


_CORE = {
    # the path of a message
    RECEIVED: _topic(
        "message",
        "A message is on disk.",
        channel=word("the channel it came by"),
        number=number("its number in its lane"),
    ),
    ROUTED: _topic(
        "batch",
        "A rule put messages into a batch: a new one, or one that waited and takes them in.",
        messages=number("how many came with this"),
        action=word("what the rule asks for", "forward", "listen", "spawn"),
        rule=word("the rule; empty for what no rule matched"),
        task=an_id("task", "the task it became, where it was spawned").if_any(),
    ),
    "batch.dropped": _topic(
        "batch",
        "A batch is answered by nobody.",
        messages=number("how many it holds"),
        rule=word("the rule that says so; missing where a person did").if_any(),
    ),
    "batch.dead": _topic("batch", "A batch is given up after its last attempt."),
    "batch.parked": _topic("batch", "A batch waits for a person's word: it may have done what must not be repeated."),
    STARTED: _topic(
        "turn", "A turn began, with the first claim of its batch; a later attempt goes on with it.", batch=_BATCH
    ),
    "turn.committed": _topic(
        "turn",
        "A turn was settled, with its transcript and its reply.",
        batch=_BATCH,
        replied=flag("whether there is a reply"),
        steered=ids("batch", "batches that joined it, where some did").if_any(),
    ),
    "turn.abandoned": _topic(
        "turn", "A turn is over without an answer.", batch=_BATCH, why=word("the outcome of its batch", *AbandonReason)
    ),
    "command.executed": Schema(
        "A turn obeyed a command.",
        "turn",
        {
            "name": word("the command"),
            "outcome": word("the outcome"),
            "arguments": number("characters that followed its name"),
        },
    ),
    "reply.sent": _of_reply("A reply reached its channel, or was pulled."),
    "reply.unknown": _of_reply("A reply may have arrived, or not: it is sent again, marked, or given up."),
    "reply.dead": _of_reply("A reply is given up."),
    "reply.not_deliverable": _of_reply("A reply will never be sent: its channel refused it, or a person did."),
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
    "channel.up": Schema("A channel that listens is connected.", "", {"channel": word("which"), "account": _BOT}),
    "channel.down": Schema(
        "A channel that listens is connected no more, or was never; it is tried again.",
        "",
        {"channel": word("which"), "account": _BOT, "state": word("how it is", "throttled", "refused", "down")},
    ),
    # lanes and sessions
    "lane.compacted": Schema(
        "Records left a lane's context: a summary replaced them, or they did not fit (`guard`).",
        "",
        {**_LANE, "how": word("how", *context.Made, compaction.CutReason.GUARD)},
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
    "lane.reset": Schema("A lane was reset.", "", _LANE),
    "session.started": _topic(
        "session", "A session began.", reason=word("how the one before ended"), first=number("its first record")
    ),
    "session.woke": _topic("session", "A session that slept goes on.", reason=_WHY),
    "session.sleeping": _topic("session", "A session sleeps, because its lane is quiet.", reason=_WHY),
    "session.rotated": _topic(
        "session",
        "A session ended, and what comes next in its lane begins another.",
        **_SESSION,
        reason=word("why", *_SESSION_ENDS),
    ),
    "session.ended": _topic(
        "session",
        "A session ended, because its lane was quiet for long.",
        **_SESSION,
        reason=word("why", session.SessionEnd.IDLE),
    ),
    # memory
    "memory.saved": _topic(
        "memory",
        "A memory was stored: extracted from messages, saved by a turn, added by a person, or derived from others. "
        "Episodes are not published; their messages and turns are.",
        kind=_KIND,
    ),
    "memory.superseded": _topic(
        "memory",
        "A memory was replaced by another.",
        kind=_KIND,
        by=an_id("memory", "the one that did, where it is one").if_any(),
    ),
    "memory.archived": _topic("memory", "A memory was archived, by maintenance or a person.", kind=_KIND),
    "memory.forgotten": Schema(
        "What somebody asked to be forgotten is gone.",
        "forgetting",
        {
            "forgetting": an_id("forgetting", "the id of its receipt"),
            "memories": number("how many of them went"),
            "messages": number("how many of them went"),
        },
    ),
    "memory.session_completed": _topic(
        "session", "Everything marked of a session was read.", until=number("the last record that was read")
    ),
    "memory.session_parked": _topic(
        "session", "A session is not read any more, because reading it failed too often.", error=word("what it was")
    ),
    # tasks
    "task.created": _topic(
        "task",
        "Work was written down, by a rule or by somebody's word.",
        kind=word("who is to do it", *route.TaskKind),
        after=number("how many tasks must be completed first"),
    ),
    "task.started": _topic(
        "task",
        "Somebody began to work on it, or began again.",
        attempt=number("which attempt that is, from 1; what is not charged does not count"),
    ),
    "task.completed": _topic("task", "It was done; its result is on disk.", attempts=_ATTEMPTS),
    "task.failed": _topic(
        "task",
        "It came to nothing, or what it waits for did.",
        attempts=_ATTEMPTS,
        upstream=an_id("task", "the one that failed before it").if_any(),
    ),
    "task.cancelled": _topic("task", "Somebody ended it."),
    "task.needs_review": _topic(
        "task", "It waits for a person's word: a call that must not be repeated may have been made.", attempts=_ATTEMPTS
    ),
    # schedules
    "schedule.added": _topic(
        "schedule",
        "A schedule was added.",
        source=word("who asked for it"),
        what=word("what is done", "say", "ask", "run", "task"),
    ),
    "schedule.fired": _of_run(
        "The time of a schedule came, and a run is due.", late_ms=number("milliseconds after its time")
    ),
    "schedule.executed": _of_run("A run was executed.", reason=word("what is said of it").if_any()),
    "schedule.delivered": _of_run("What a run had to say has left."),
    "schedule.undelivered": _of_run("What a run had to say cannot be delivered.", reason=_WHY.if_any()),
    "schedule.silent": _of_run("The agent was asked, and had no answer.", reason=_WHY.if_any()),
    "schedule.failed": _of_run("A run failed.", reason=_WHY.if_any()),
    "schedule.skipped": _of_run("A time was not run for.", reason=_WHY),
    "schedule.interrupted": _of_run("A run ended with its process, or with its task.", reason=_WHY.if_any()),
    "schedule.disabled": _topic(
        "schedule",
        "A schedule failed too often in a row, and comes no more.",
        failures=number("how often"),
        reason=word("why, the last time"),
    ),
    "schedule.paused": _topic("schedule", "A person paused a schedule."),
    "schedule.resumed": _topic("schedule", "A person resumed a schedule."),
    "schedule.cancelled": _topic("schedule", "A schedule was cancelled."),
    "schedule.done": _topic("schedule", "A schedule came for the last time."),
    # clients
    BACKGROUND: Schema(
        "The model answered a background call of a client, such as for a title; nothing else of the call is stored.",
        "key",
        {
            "key": word("the name of the key"),
            "task": word("what it was for"),
            "tokens_in": number("tokens that the model read"),
            "tokens_out": number("tokens that it wrote"),
        },
    ),
    # extensions
    "extension.started": Schema("An extension was let in.", "extension", {"extension": word("its id")}),
    "extension.quarantined": Schema(
        "An extension failed, or could not be let in.",
        "extension",
        {"extension": word("its id"), "phase": word("what was being done")},
    ),
}
_TOGETHER = (RECEIVED, ROUTED, STARTED, "memory.saved", "memory.superseded", "memory.archived")

ALIASES: Mapping[str, str] = MappingProxyType({"user_message": RECEIVED, "agent_response": "turn.committed"})
"""Other names of topics, as seed 002 has them."""

_ALIAS_OF = {topic: alias for alias, topic in ALIASES.items()}
CORE: Mapping[str, Schema] = MappingProxyType(
    {
        topic: replace(schema, alias=_ALIAS_OF.get(topic, ""), together=topic in _TOGETHER)
        for topic, schema in _CORE.items()
    }
)
"""Topics that the core publishes, each with the schema of its payload."""

USER_MESSAGE = "user.message"
"""What seed 002's channels emit for a user's message: it goes to the buffer, not to the journal."""

_TOPIC = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
_PATTERN = re.compile(r"([a-z][a-z0-9_]*|\*)(\.([a-z0-9_]+|\*))+")
_TOPIC_CHARS_MAX = 200
_PAYLOAD_BYTES_MAX = 64_000
_OURS = frozenset(topic.partition(".")[0] for topic in CORE) | {"batch", "reply", "task", "schedule", "extension"}
_UNTOLD = "Nothing was published."


def topics_of(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The patterns, with topics for aliases; raises InputError unless each is a topic, one with `*`, or an alias."""
    patterns = tuple(ALIASES.get(one, one) for one in patterns)
    wrong = [one for one in patterns if len(one) > _TOPIC_CHARS_MAX or not _PATTERN.fullmatch(one)]
    if wrong or not patterns:
        named = ", ".join(map(repr, wrong)) or "nothing"
        raise InputError(
            f"{named} cannot be subscribed to: a topic is words joined by dots, as turn.committed or memory.*",
            safe="Nothing was changed.",
            hint="keepsaid ext events topics",
        )
    return patterns


def checked(topic: str, payload: Mapping[str, Json]) -> str:
    """The payload as it is kept; raises InputError for a topic of the core, no topic, or too large a payload."""
    if len(topic) > _TOPIC_CHARS_MAX or not _TOPIC.fullmatch(topic):
        raise InputError(f"{topic!r} is not a topic: use words joined by dots, as deploy.finished", safe=_UNTOLD)
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
