"""What the functions of `shapes`, `agent_shapes` and their like return, as JSON schemas (components of OpenAPI).

A test holds answers of a running instance against them, with no field beside those that are named here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.interfaces.schema import (
    ANY,
    COUNTS,
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    TIME,
    WHOLE,
    Schema,
    chosen,
    gives,
    many,
    named,
    perhaps,
    ref,
    takes,
)

_PROBLEM = gives(**named(TEXT, "type", "title", "code", "safe", "hint"), status=WHOLE)
_RECEIPT = gives(**named(TEXT, "id", "intake", "conversation", "lane"), number=WHOLE)

_FILE = gives(file=TEXT, name=TEXT, type=TEXT, bytes=WHOLE)
_REPLY = gives(
    **named(TEXT, "id", "state", "text", "detail"),
    **named(FLAG, "notice", "possible_duplicate"),
    files=many(_FILE),
    turn=perhaps(TEXT),
    attempts=WHOLE,
    created_at=TIME,
)
_BATCH = gives(
    **named(TEXT, "id", "state", "verdict", "rule", "rules_version", "reason", "error"),
    numbers=many(WHOLE, 2),
    **named(WHOLE, "attempts", "deferrals"),
    created_at=TIME,
    **named(perhaps(TIME), "next_try_at", "pruned_at"),
)
_REMEMBERED = gives(**named(TEXT, "id", "kind", "text"), replaces=many(TEXT))
_SENT = ("id", "state", "channel", "account", "conversation", "lane", "sender", "name", "trust", "event", "text")
_MESSAGE = gives(
    **named(TEXT, *_SENT),
    **named(perhaps(TEXT), "lane_reason", "external_id", "turn", "silent"),
    **named(WHOLE, "number", "priority"),
    damaged=FLAG,
    received_at=TIME,
    batch=perhaps(ref("Batch")),
    task=perhaps(gives(**named(TEXT, "id", "state", "description"))),
    replies=many(ref("Reply")),
    remembered=perhaps(many(_REMEMBERED)),
)
_LEASED_MESSAGE = gives(
    **named(TEXT, "id", "sender", "name", "trust", "event", "text"),
    direct=FLAG,
    **named(perhaps(TEXT), "external_id", "provider_id", "reply_to"),
    received_at=TIME,
)
_LEASED = gives(
    **named(TEXT, "id", "lease", "turn", "channel", "account", "conversation", "lane"),
    **named(WHOLE, "fence", "lease_s", "priority", "attempts"),
    messages=many(_LEASED_MESSAGE),
)

_MEMORY = gives(
    **named(TEXT, "id", "kind", "state", "text", "speaker", "speaker_id", "subject", "subject_id", "scope", "trust"),
    **named(NUMBER, "importance", "confidence"),
    **named(TEXT, "attribute", "value"),
    **named(perhaps(TIME), "valid_from", "valid_to", "said_at", "recorded_at", "last_access_at"),
    superseded_by=perhaps(TEXT),
    **named(WHOLE, "evidence", "access_count"),
    pinned=FLAG,
    sources=many(TEXT),
)
_HIT = gives(leg=TEXT, rank=WHOLE, neighbour=FLAG, score=NUMBER, memory=ref("Memory"))
_RECALLED = gives(hits=many(_HIT), missing=many(TEXT), took_ms=NUMBER)
_STORY = gives(memory=ref("Memory"), history=many(ref("Memory")), sources=many(ref("Memory")))
_CANDIDATE = gives(id=TEXT, shown=FLAG, reason=TEXT, cause=TEXT)
_CONTEXT = gives(
    **named(TEXT, "memory", "bulletin", "summary", "skipped"),
    tokens=WHOLE,
    memories=many(_CANDIDATE),
    missing=many(TEXT),
    took_ms=NUMBER,
)
_SAVED = gives(id=TEXT, state=chosen(("stored", "duplicate")), redacted=COUNTS, lifted=FLAG)
_CORRECTED = gives(**named(TEXT, "old", "id", "how"))
_COUNTED_MEMORY = gives(**named(TEXT, "id", "kind", "state", "text"))
_COUNTED = gives(counts=COUNTS, memories=many(_COUNTED_MEMORY), confirm=TEXT)
_FORGETTING = gives(
    **named(TEXT, "id", "state", "how", "by"),
    **named(perhaps(TIME), "requested_at", "changed_at", "undo_until"),
    counts=COUNTS,
    backups=many(TEXT),
)
_RECEIPTS = gives(messages=many(gives(id=TEXT, duplicate=FLAG, number=WHOLE)))
_SAID = gives(position=WHOLE, **named(TEXT, "role", "speaker", "text"))
_TRANSCRIPT = gives(messages=many(_SAID), after=perhaps(WHOLE))

_TURN = gives(
    **named(TEXT, "id", "state", "reason"),
    lane=gives(conversation=TEXT, key=TEXT),
    batch=ref("Batch"),
    messages=many(gives(id=TEXT, text=TEXT, lane_reason=perhaps(TEXT))),
    context=ANY,
    steps=many(gives(n=WHOLE, **named(TEXT, "kind", "subject", "state"))),
    replies=many(ref("Reply")),
    feedback=many(gives(**named(TEXT, "turn", "memory", "state", "by"), at=TIME)),
    tokens=many(WHOLE, 2),
    cost_usd=perhaps(NUMBER),
    **named(perhaps(TIME), "started_at", "ended_at"),
)
_EXPLAINED = gives(turn=ref("Turn"))

_TASK_FIELDS: dict[str, Schema] = {
    **named(TEXT, "id", "key", "kind", "state", "description", "notify"),
    **named(perhaps(TEXT), "rule", "turn", "status", "result", "reason", "skill", "model", "agent"),
    **named(WHOLE, "depth", "messages", "priority", "attempts", "crashes", "tokens_in", "tokens_out"),
    "after": many(TEXT),
    "tools": perhaps(many(TEXT)),
    **named(perhaps(TIME), "created_at", "started_at", "ended_at", "next_try_at"),
}
_TASK_STEP = gives(n=WHOLE, **named(TEXT, "kind", "subject", "state"), again=FLAG)
_SCHEDULE_FIELDS: dict[str, Schema] = {
    **named(TEXT, "id", "source", "name", "when", "what", "text", "state", "reason"),
    "to": perhaps(gives(**named(TEXT, "channel", "account", "conversation", "key"))),
    "urgent": FLAG,
    "next_at": perhaps(TIME),
    "failures": WHOLE,
}

_AGE = {"oldest_at": perhaps(TIME), "oldest_age_ms": perhaps(WHOLE)}
_DEPTH = gives(
    channel=TEXT,
    **named(WHOLE, "unrouted", "queued", "leased", "review", "dead"),
    **_AGE,
    for_person=gives(total=WHOLE, **_AGE),
)
_LINE = gives(
    **named(TEXT, "channel", "account", "reason", "state"),
    **named(perhaps(TIME), "since", "last_ok", "next_try_at"),
)
_PROCESS = gives(owner=TEXT, leads=FLAG, silent=FLAG, **named(perhaps(TIME), "started_at", "kept_until"))
_PAUSED = gives(**named(TEXT, "channel", "account", "conversation"), waiting=WHOLE, since=perhaps(TIME))
_STATUS_FIELDS: dict[str, Schema] = {
    **named(WHOLE, "messages", "deferred", "episodes_due", "events_undelivered"),
    "unrouted": gives(total=WHOLE, **_AGE, channels=many(gives(channel=TEXT, unrouted=WHOLE, **_AGE))),
    "channels": many(_DEPTH),
    "held": gives(total=WHOLE, first=perhaps(TEXT)),
    **named(COUNTS, "batches", "outbox", "tasks", "turns"),
    "paused": many(_PAUSED),
    "processes": many(_PROCESS),
    "memories": gives(total=WHOLE, kinds=COUNTS),
    "tokens": {"type": "object", "properties": {"in": WHOLE, "out": WHOLE}, "required": ["in", "out"]},
    "cost_usd": perhaps(NUMBER),
    "backlog": gives(waiting=WHOLE, **_AGE),
    "pruned": gives(messages=WHOLE, last_run_at=perhaps(TIME), last_run_age_ms=perhaps(WHOLE)),
    "disk": gives(free_bytes=WHOLE, floor_bytes=WHOLE),
    "server": perhaps(TEXT),
    "lines": many(_LINE),
    "schedules": gives(next_at=perhaps(TIME), disabled=many(TEXT)),
    **named(OBJECT, "tools_waiting", "tool_servers_unreachable", "extensions_quarantined", "extensions_noted"),
    "extraction_parked": many(TEXT),
    "replies_unfetched": gives(total=WHOLE, **_AGE),
    "attention": many(gives(what=TEXT, command=TEXT)),
}

COMPONENTS: Mapping[str, Schema] = MappingProxyType({
    "Problem": _PROBLEM,
    "Receipt": _RECEIPT,
    "Message": _MESSAGE,
    "Batch": _BATCH,
    "Reply": _REPLY,
    "LeasedBatch": _LEASED,
    "Memory": _MEMORY,
    "MemoryStory": _STORY,
    "Recalled": _RECALLED,
    "Context": _CONTEXT,
    "Saved": _SAVED,
    "Corrected": _CORRECTED,
    "ForgetCount": _COUNTED,
    "Forgetting": _FORGETTING,
    "RecordReceipts": _RECEIPTS,
    "Transcript": _TRANSCRIPT,
    "Turn": _TURN,
    "Explanation": _EXPLAINED,
    "Task": gives(**_TASK_FIELDS),
    "TaskStory": gives(**_TASK_FIELDS, steps=many(_TASK_STEP), waiting=many(TEXT)),
    "Schedule": gives(**_SCHEDULE_FIELDS),
    "ScheduleStory": gives(**_SCHEDULE_FIELDS, runs=many(OBJECT)),
    "Status": takes(*_STATUS_FIELDS, sentence=TEXT, **_STATUS_FIELDS),
})  # fmt: skip
"""Every named schema of an answer."""
