"""What each call of an agent takes and returns, declared once: MCP tools and the HTTP description are made of it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from keepsaid.domain.memory import Kind
from keepsaid.domain.principal import Scope
from keepsaid.domain.recorded_talk import RECORDED_MAX
from keepsaid.interfaces.agent_shapes import ROLES
from keepsaid.interfaces.schema import TEXT, Schema, between, chosen, gives, many, ref, takes
from keepsaid.services.assistant import IDS_MAX, TRANSCRIPT_MAX
from keepsaid.services.context import TEXT_CHARS_MAX, TOKENS_MAX

LIMIT, LIMIT_MAX, TOKENS = 10, 50, 2_000
KINDS = tuple(str(kind) for kind in Kind if kind is not Kind.BULLETIN)


class CallFields(NamedTuple):
    """A call: the scope that opens it, the fields that it takes, and what it returns."""

    scope: Scope
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

CALL_FIELDS: Mapping[str, CallFields] = MappingProxyType({
    "context": CallFields(Scope.READ, _CONTEXT, ref("Context")),
    "recall": CallFields(Scope.READ, _RECALL, ref("Recalled")),
    "get": CallFields(Scope.READ, takes("ids", ids=_IDS, conversation=TEXT), gives(memories=many(ref("MemoryStory")))),
    "save": CallFields(Scope.WRITE, _SAVE, ref("Saved")),
    "correct": CallFields(Scope.WRITE, _CORRECT, ref("Corrected")),
    "forget": CallFields(Scope.WRITE, _FORGET, {"anyOf": [ref("ForgetCount"), ref("Forgetting")]}),
    "record": CallFields(Scope.WRITE, _RECORD, ref("RecordReceipts")),
    "transcript": CallFields(Scope.READ, _TRANSCRIPT, ref("Transcript")),
    "explain": CallFields(Scope.READ, takes("id", id=TEXT), ref("Explanation")),
})  # fmt: skip
"""Every call by its name."""
