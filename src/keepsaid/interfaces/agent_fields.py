"""What each call of an agent takes and returns, declared once: MCP tools and the HTTP description are made of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from keepsaid.domain.memory import Kind
from keepsaid.domain.principal import Scope
from keepsaid.domain.recorded_talk import RECORDED_MAX
from keepsaid.interfaces.agent_shapes import ROLES
from keepsaid.interfaces.schema import (
    FLAG,
    TEXT,
    WHOLE,
    Schema,
    between,
    chosen,
    gives,
    many,
    named,
    perhaps,
    ref,
    takes,
)
from keepsaid.interfaces.task_shapes import SCHEDULE_FIELDS
from keepsaid.services.assistant import IDS_MAX, TRANSCRIPT_MAX
from keepsaid.services.context import TEXT_CHARS_MAX, TOKENS_MAX

LIMIT, LIMIT_MAX, TOKENS = 10, 50, 2_000
LEASES_MAX, LEASE_S, LEASE_S_MAX, WAIT_S_MAX = 64, 60, 3_600, 60
"""Batches that one call leases, and seconds that a lease lasts and that a call waits."""

ROWS, ROWS_MAX = 20, 1_000
KEY_CHARS_MAX = 512
KINDS = tuple(str(kind) for kind in Kind if kind is not Kind.BULLETIN)


class CallFields(NamedTuple):
    """A call: the scope that opens it, None for the operator's, the fields that it takes, and what it returns."""

    scope: Scope | None
    takes: Schema
    gives: Schema


_IDS = many(TEXT, IDS_MAX)
_TALK = takes("role", "text", role=chosen(ROLES), text=TEXT, key=TEXT, name=TEXT)
FILTERS: Mapping[str, Schema] = MappingProxyType({
    "kind": chosen(KINDS), "person": TEXT, "since": TEXT, "until": TEXT,
    "as_of": {**TEXT, "description": "what held true then"},
})  # fmt: skip
"""What narrows a search."""

_CONTEXT = takes(
    "conversation",
    "text",
    conversation=TEXT,
    text={**TEXT, "maxLength": TEXT_CHARS_MAX},
    tokens=between(0, TOKENS_MAX, TOKENS),
)
_RECALL = takes(
    "query",
    query=TEXT,
    limit=between(1, LIMIT_MAX, LIMIT),
    conversation=TEXT,
    **FILTERS,
)
_GET = takes(ids=_IDS, key=TEXT, conversation=TEXT)
_SAVE = takes("text", text=TEXT, kind={**TEXT, "default": "fact"}, key=TEXT, conversation=TEXT)
_CORRECT = takes("id", "text", id=TEXT, text=TEXT, value=TEXT, conversation=TEXT)
_FORGET = takes("ids", ids=_IDS, confirm=TEXT, conversation=TEXT)
_RECORD = takes("conversation", "messages", conversation=TEXT, messages=many(_TALK, RECORDED_MAX))
_TRANSCRIPT = takes(
    "conversation",
    conversation=TEXT,
    after={"type": "integer", "minimum": 0},
    limit=between(1, TRANSCRIPT_MAX, TRANSCRIPT_MAX),
)

_LEASE_S = between(1, LEASE_S_MAX, LEASE_S)
_PUT = takes(
    "text", "conversation", **named(TEXT, "text", "conversation", "key", "name", "topic", "provider_id", "reply_to")
)
_PULL = takes(limit=between(1, LEASES_MAX, 1), lease_s=_LEASE_S, wait_s=between(0, WAIT_S_MAX, 0))
_ROWS = between(1, ROWS_MAX, ROWS)
_TASKS = takes(state=TEXT, key=TEXT, limit=_ROWS)
_IDENTITY = {"anyOf": [gives(files=many(TEXT)), gives(file=TEXT, text=TEXT)]}
SETTLED = gives(state=TEXT, reply=perhaps(TEXT), duplicate=FLAG)

CALL_FIELDS: Mapping[str, CallFields] = MappingProxyType({
    "context": CallFields(Scope.READ, _CONTEXT, ref("Context")),
    "recall": CallFields(Scope.READ, _RECALL, ref("Recalled")),
    "get": CallFields(Scope.READ, _GET, gives(memories=many(ref("MemoryStory")))),
    "save": CallFields(Scope.WRITE, _SAVE, ref("Saved")),
    "correct": CallFields(Scope.WRITE, _CORRECT, ref("Corrected")),
    "forget": CallFields(Scope.WRITE, _FORGET, {"anyOf": [ref("ForgetCount"), ref("Forgetting")]}),
    "record": CallFields(Scope.WRITE, _RECORD, ref("RecordReceipts")),
    "transcript": CallFields(Scope.READ, _TRANSCRIPT, ref("Transcript")),
    "explain": CallFields(Scope.READ, takes("id", id=TEXT), ref("Explanation")),
    "put": CallFields(Scope.TALK, _PUT, ref("Receipt")),
    "pull": CallFields(Scope.OPERATE, _PULL, gives(batches=many(ref("LeasedBatch")))),
    "renew": CallFields(Scope.OPERATE, takes("lease", lease=TEXT, lease_s=_LEASE_S), gives(lease_s=WHOLE)),
    "done": CallFields(Scope.OPERATE, takes("lease", **named(TEXT, "lease", "reply", "worker")), SETTLED),
    "fail": CallFields(Scope.OPERATE, takes("lease", **named(TEXT, "lease", "reason")), gives(state=TEXT)),
    "release": CallFields(Scope.OPERATE, takes("lease", lease=TEXT), gives(state=TEXT)),
    "tasks": CallFields(None, _TASKS, gives(tasks=many(ref("Task")))),
    "run_task": CallFields(None, takes("id", id=TEXT), gives(done=FLAG)),
    "approve_task": CallFields(None, takes("id", id=TEXT, result=TEXT), gives(done=FLAG)),
    "schedules": CallFields(None, takes(after=TEXT, limit=_ROWS), gives(schedules=many(ref("Schedule")))),
    "add_schedule": CallFields(None, SCHEDULE_FIELDS, ref("Schedule")),
    "status": CallFields(None, takes(), ref("Status")),
    "identity": CallFields(None, takes(file=TEXT), _IDENTITY),
})  # fmt: skip
"""Every call by its name."""
