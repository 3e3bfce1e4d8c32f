"""Routes for the library of another process: the memory of the home and its events, as the owner has them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, NamedTuple

from keepsaid.app.instance import Instance
from keepsaid.errors import InputError
from keepsaid.interfaces.fields import bounded_field, names_field, number_field, text_field
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute
from keepsaid.interfaces.http.responses import NotFound
from keepsaid.interfaces.schema import (
    COUNTS,
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    WHOLE,
    Schema,
    between,
    gives,
    many,
    named,
    perhaps,
    takes,
)
from keepsaid.interfaces.sdk.inbox import EventClient, Inbox
from keepsaid.interfaces.sdk.memory import Filters, MemoryClient, ToForget
from keepsaid.interfaces.sdk.values import Episode, MemoryRecord, time_in
from keepsaid.interfaces.shapes import Shape
from keepsaid.services.memories import FOUND_MAX
from keepsaid.text.normal import cut, kind_of

WAIT_S_MAX = 20
"""Seconds that one call waits for an event."""

Fields = Mapping[str, object]

_TIMES = ("since", "until", "as_of")
_EPISODE = takes(
    *("text", "speaker", "conversation", "said_at"),
    **named(TEXT, "text", "speaker", "conversation", "lane", "kind"),
    said_at=WHOLE,
    external_id=perhaps(TEXT),
)


async def record(memory: MemoryClient, fields: Fields) -> Shape:
    """Remember `episodes` word for word."""
    given = fields.get("episodes")
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise InputError("episodes must be a list of objects")
    return {"ids": await memory.record([_episode_in(one) for one in given])}


def _episode_in(given: Fields) -> Episode:
    text, speaker, conversation = (text_field(given, name) for name in ("text", "speaker", "conversation"))
    lane, kind = text_field(given, "lane", ""), text_field(given, "kind", "episode")
    name = given.get("external_id")
    external_id = None if name is None else text_field(given, "external_id")
    said_at = number_field(given, "said_at", -1)
    return Episode(text, speaker, conversation, said_at, lane, kind, external_id)


async def embed(memory: MemoryClient, _fields: Fields) -> Shape:
    """Give all that was recorded its vectors now."""
    return {"done": await memory.embed()}


async def recall(memory: MemoryClient, fields: Fields) -> Shape:
    """The best memories for `query`."""
    conversation = None if fields.get("conversation") is None else text_field(fields, "conversation")
    query, limit = text_field(fields, "query"), bounded_field(fields, "limit", (0, FOUND_MAX), 10)
    return _shown(await memory.recall(query, limit, conversation, _time(fields, "as_of")))


async def search(memory: MemoryClient, fields: Fields) -> Shape:
    """The best memories for `query` that keep within filters."""
    query, limit = text_field(fields, "query"), bounded_field(fields, "limit", (0, FOUND_MAX), 10)
    narrowed: Filters = {"archived": _flag(fields, "archived")}
    if fields.get("kind") is not None:
        narrowed["kind"] = text_field(fields, "kind")
    if fields.get("person") is not None:
        narrowed["person"] = text_field(fields, "person")
    if (since := _time(fields, "since")) is not None:
        narrowed["since"] = since
    if (until := _time(fields, "until")) is not None:
        narrowed["until"] = until
    if (as_of := _time(fields, "as_of")) is not None:
        narrowed["as_of"] = as_of
    return _shown(await memory.search(query, limit, **narrowed))


async def get(memory: MemoryClient, fields: Fields) -> Shape:
    """One memory by its `id`."""
    return _shown((await memory.get(text_field(fields, "id")),))


async def newest(memory: MemoryClient, fields: Fields) -> Shape:
    """Memories of `kinds`, newest first."""
    return _shown(await memory.list(names_field(fields, "kinds"), bounded_field(fields, "limit", (0, FOUND_MAX), 20)))


async def history(memory: MemoryClient, fields: Fields) -> Shape:
    """What was known when of the same as the memory `id`."""
    return _shown(await memory.history(text_field(fields, "id")))


async def add(memory: MemoryClient, fields: Fields) -> Shape:
    """Remember what the owner says."""
    return {"id": await memory.add(text_field(fields, "text"), text_field(fields, "kind", "fact"))}


async def edit(memory: MemoryClient, fields: Fields) -> Shape:
    """Put the memory `id` right."""
    name, text, value = (text_field(fields, one, otherwise) for one, otherwise in _EDIT)
    return {"id": await memory.edit(name, text, value)}


_EDIT = (("id", None), ("text", None), ("value", ""))


async def pin(memory: MemoryClient, fields: Fields) -> Shape:
    """Pin the memory `id`, or unpin it."""
    await memory.pin(text_field(fields, "id"), pinned=_flag(fields, "pinned", default=True))
    return {"done": True}


async def forget(memory: MemoryClient, fields: Fields) -> Shape:
    """Forget memories, or count what that would take."""
    named_by: ToForget = {}
    if person := text_field(fields, "person", ""):
        named_by["person"] = person
    if conversation := text_field(fields, "conversation", ""):
        named_by["conversation"] = conversation
    if text := text_field(fields, "text", ""):
        named_by["text"] = text
    if undo_for := text_field(fields, "undo_for", ""):
        named_by["undo_for"] = undo_for
    found = await memory.forget(names_field(fields, "ids"), dry_run=_flag(fields, "dry_run"), **named_by)
    return {"id": found.id, "state": found.state, "counts": dict(found.counts), "backups": list(found.backups)}


async def undo(memory: MemoryClient, fields: Fields) -> Shape:
    """Put back what the request `id` took."""
    await memory.undo(text_field(fields, "id"))
    return {"done": True}


class _Call(NamedTuple):
    """A call of the library's memory: what answers it, what it takes and what it returns."""

    answer: Callable[[MemoryClient, Fields], Awaitable[Shape]]
    takes: Schema
    gives: Schema


_RECORD = {
    **named(TEXT, "id", "text", "kind", "speaker", "subject", "conversation", "external_id", "state", "scope", "trust"),
    **named(TEXT, "superseded_by"),
    "said_at": WHOLE,
    "importance": NUMBER,
    "pinned": FLAG,
    "valid_to": perhaps(WHOLE),
}
_RECORDS = gives(memories=many(gives(**_RECORD)))
_FOUND = gives(memories=many(gives(**_RECORD, rank=WHOLE, score=NUMBER)))
_LIMIT = between(0, FOUND_MAX)
_ID, _DONE, _NAMED = takes("id", id=TEXT), gives(done=FLAG), gives(id=TEXT)
_FILTERS = takes(
    "query", **named(TEXT, "query", "kind", "person"), limit=_LIMIT, archived=FLAG, **named(perhaps(WHOLE), *_TIMES)
)
_RECALL = takes("query", query=TEXT, limit=_LIMIT, conversation=perhaps(TEXT), as_of=perhaps(WHOLE))
_FORGET = takes("ids", ids=many(TEXT), dry_run=FLAG, **named(TEXT, "person", "conversation", "text", "undo_for"))
_FORGOTTEN = gives(**named(TEXT, "id", "state"), counts=COUNTS, backups=many(TEXT))
_LIST = takes("kinds", kinds=many(TEXT), limit=_LIMIT)

MEMORY_CALLS: Mapping[str, _Call] = MappingProxyType({
    "record": _Call(record, takes("episodes", episodes=many(_EPISODE)), gives(ids=many(TEXT))),
    "embed": _Call(embed, takes(), _DONE),
    "recall": _Call(recall, _RECALL, _FOUND),
    "search": _Call(search, _FILTERS, _FOUND),
    "get": _Call(get, _ID, _RECORDS),
    "list": _Call(newest, _LIST, _RECORDS),
    "history": _Call(history, _ID, _RECORDS),
    "add": _Call(add, takes("text", **named(TEXT, "text", "kind")), _NAMED),
    "edit": _Call(edit, takes("id", "text", **named(TEXT, "id", "text", "value")), _NAMED),
    "pin": _Call(pin, takes("id", id=TEXT, pinned=FLAG), _DONE),
    "forget": _Call(forget, _FORGET, _FORGOTTEN),
    "undo": _Call(undo, _ID, _DONE),
})  # fmt: skip
"""Every call of the library's memory by its name."""


async def call_memory(instance: Instance, call: OwnerCall) -> Shape:
    """Any call of the library's memory by its name, as the owner makes it in one process."""
    name = call.request.path_params["call"]
    if (asked := MEMORY_CALLS.get(name)) is None:
        raise NotFound(f"there is no call {cut(name, 80)!r}; known: {', '.join(MEMORY_CALLS)}")
    known = asked.takes["properties"]
    if unknown := sorted(set(call.fields) - set(known)):
        raise InputError(f"unknown field {cut(unknown[0], 80)!r}; known: {', '.join(known)}")
    return await asked.answer(MemoryClient(instance), call.fields)


async def emit(instance: Instance, call: OwnerCall) -> Shape:
    """Publish an event of a program; it is on disk when this returns."""
    payload = call.fields.get("payload", {})
    if not isinstance(payload, dict):
        raise InputError(f"payload must be an object, not {kind_of(payload)}", safe="Nothing was stored.")
    topic, about = text_field(call.fields, "topic"), text_field(call.fields, "about", "")
    await _events(instance).emit(topic, payload, about)
    return {"done": True}


async def wait_event(instance: Instance, call: OwnerCall) -> Shape:
    """Wait for the first event of a topic about something, after the event of an id."""
    topic, about, after = (text_field(call.fields, name, otherwise) for name, otherwise in _WAIT)
    wait_s = bounded_field(call.fields, "wait_s", (0, WAIT_S_MAX), 0)
    return {"event": await _events(instance).wait_for(topic, about, wait_s, after)}


_WAIT = (("topic", None), ("about", ""), ("after", "0"))


def _events(instance: Instance) -> EventClient:
    return EventClient(instance, Inbox(instance))


def _shown(found: tuple[MemoryRecord, ...]) -> dict[str, Any]:
    return {"memories": [asdict(one) for one in found]}


def _time(fields: Fields, name: str) -> int | None:
    return time_in(None if fields.get(name) is None else number_field(fields, name, 0), name)


def _flag(fields: Fields, name: str, *, default: bool = False) -> bool:
    if not isinstance(value := fields.get(name, default), bool):
        raise InputError(f"{name} must be true or false")
    return value


_EMIT = takes("topic", topic=TEXT, payload=OBJECT, about=TEXT)
_WAITED = takes("topic", **named(TEXT, "topic", "about", "after"), wait_s=between(0, WAIT_S_MAX, 0))

ROUTES = (
    OwnerRoute(
        "POST",
        "/v1/library/memory/{call}",
        call_memory,
        20_000_000,
        long=True,
        takes={"anyOf": [one.takes for one in MEMORY_CALLS.values()]},
        gives={"anyOf": [one.gives for one in MEMORY_CALLS.values()]},
    ),
    OwnerRoute("POST", "/v1/events", emit, 1_000_000, takes=_EMIT, gives=_DONE),
    OwnerRoute(
        "POST", "/v1/events:wait", wait_event, 10_000, long=True, takes=_WAITED, gives=gives(event=perhaps(OBJECT))
    ),
)
