"""What agents outside are given, in JSON: the same over HTTP, MCP and the library."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.domain.commits import IntakeResult, Received
from keepsaid.domain.context import TranscriptSpan
from keepsaid.domain.ids import show
from keepsaid.domain.learning import LearnResult
from keepsaid.domain.memory import Candidate
from keepsaid.errors import InputError
from keepsaid.interfaces.shapes import Shape, memory_shape
from keepsaid.services.assistant import ForgetCount, MemoryStory, Talk
from keepsaid.services.context import BuiltContext
from keepsaid.services.memories import AddedMemory
from keepsaid.text.normal import kind_of

ROLES = ("user", "assistant", "tool")
"""Who said something that is recorded: the sender, the agent, or something outside whose words are data."""

_FIELDS = ("role", "text", "key", "name")


def talk_of(given: object) -> list[Talk]:
    """What is to be recorded, of a list of objects with `role`, `text`, and perhaps `key` and `name`.

    Raises InputError naming the message and the field that is wrong.
    """
    if not isinstance(given, list):
        raise InputError(f"messages must be a list, not {kind_of(given)}", safe="Nothing was recorded.")
    return [_talk(n, one) for n, one in enumerate(given, start=1)]


def _talk(n: int, given: object) -> Talk:
    safe = "Nothing was recorded."
    if not isinstance(given, dict):
        raise InputError(f"message {n} must be an object, not {kind_of(given)}", safe=safe)
    if unknown := [name for name in given if name not in _FIELDS]:
        raise InputError(f"message {n}: unknown field {unknown[0]!r}; known: {', '.join(_FIELDS)}", safe=safe)
    texts = {name: given.get(name) or "" for name in _FIELDS}
    if wrong := [name for name, text in texts.items() if not isinstance(text, str)]:
        raise InputError(f"message {n}: {wrong[0]} must be text", safe=safe)
    if texts["role"] not in ROLES or not texts["text"].strip():
        raise InputError(f"message {n} needs a role ({', '.join(ROLES)}) and a text", safe=safe)
    outside = texts["role"] == "tool"
    return Talk(texts["text"], texts["role"] == "assistant", texts["key"], outside, texts["name"])


def receipts_shape(received: Sequence[Received]) -> Shape:
    """Receipts of recorded talk, in its order."""
    receipts = [
        {"id": show("message", one.id), "duplicate": one.intake is not IntakeResult.STORED, "number": one.number}
        for one in received
    ]
    return {"messages": receipts}


def saved_shape(added: AddedMemory) -> Shape:
    """A memory that was saved, or was there before."""
    state = "stored" if added.is_new else "duplicate"
    return {"id": show("memory", added.id), "state": state, "redacted": dict(added.redacted), "lifted": added.lifted}


def corrected_shape(name: str, done: LearnResult) -> Shape:
    """The memory that was put right, the one that holds now, and what the correction did."""
    return {"old": name, "id": show("memory", done.memory_id), "how": str(done.how)}


def story_shape(story: MemoryStory, at: int) -> Shape:
    """A memory whole, with its history and its sources; states are as of `at` (milliseconds UTC)."""
    history = [memory_shape(one, at) for one in story.history]
    sources = [memory_shape(one, at) for one in story.sources]
    return {"memory": memory_shape(story.memory, at), "history": history, "sources": sources}


def context_shape(built: BuiltContext) -> Shape:
    """What a model should be shown, and why each memory is in it or is not."""
    injection = built.injection
    return {
        "memory": injection.block,
        "bulletin": built.bulletin,
        "summary": built.summary,
        "tokens": built.tokens,
        "memories": [_candidate(one) for one in injection.candidates],
        "missing": list(injection.missing),
        "skipped": injection.skipped,
        "took_ms": round(injection.took_ms, 2),
    }


def _candidate(one: Candidate) -> Shape:
    return {"id": show("memory", one.hit.memory.id), "shown": one.chosen, "reason": one.reason, "cause": str(one.cause)}


def counted_shape(counted: ForgetCount, at: int) -> Shape:
    """What would be forgotten, with the token that confirms it."""
    memories = [memory_shape(one, at) for one in counted.preview.memories]
    shown = [{name: one[name] for name in ("id", "kind", "state", "text")} for one in memories]
    return {"counts": dict(counted.preview.counts), "memories": shown, "confirm": counted.confirm}


def transcript_shape(span: TranscriptSpan) -> Shape:
    """Records of a transcript, oldest first; `after` is where the next call goes on."""
    said = [
        {"position": position, "role": str(one.role), "speaker": one.speaker, "text": one.text}
        for position, one in zip(span.positions, span.records, strict=True)
    ]
    return {"messages": said, "after": span.positions[-1] if span.positions else None}
