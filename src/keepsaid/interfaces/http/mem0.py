"""Routes that clients of mem0 call, under `/compat/mem0`: memories of one person, whom the key or `user_id` names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain import ids
from keepsaid.domain.commits import IntakeResult
from keepsaid.domain.memory import Kind, Memory
from keepsaid.domain.message import Trust
from keepsaid.domain.principal import Principal, Scope
from keepsaid.errors import InputError, NotAllowed
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute, no_such
from keepsaid.interfaces.http.gate import LIBRARY
from keepsaid.interfaces.http.responses import BadRequest, read_limit, read_query
from keepsaid.interfaces.schema import FLAG, NUMBER, OBJECT, TEXT, TIME, WHOLE, gives, many, named, perhaps, takes
from keepsaid.interfaces.shapes import Shape
from keepsaid.services.assistant import (
    CLIENT_METADATA,
    IDS_MAX,
    MemoryDraft,
    MemoryStory,
    Talk,
    client_metadata,
)
from keepsaid.services.memories import SearchRequest, hits_in
from keepsaid.text.normal import cut, normalise_json

ACCOUNT = "mem0"
"""The account of the people whom the operator names by `user_id`."""

_NAMES = ("user_id", "agent_id", "run_id")
_TIMES = ("created_at", "updated_at")
_FIELDS = (*_NAMES, "messages", "infer")
_KINDS = tuple(kind for kind in Kind if kind is not Kind.BULLETIN)
_LIMIT, _LIMIT_MAX, _ROUNDS_MAX = 10, 50, 1_000
_METADATA_CHARS_MAX = 4_000
_UPDATED, _DELETED = "Memory updated successfully!", "Memory deleted successfully!"


def _who(instance: Instance, call: OwnerCall, given: Mapping[str, object]) -> tuple[Principal, str]:
    """Whose memories are meant, and the conversation that `agent_id` and `run_id` name.

    A key is the person that it is of: another `user_id` raises NotAllowed. The operator may name anybody.
    """
    named: dict[str, str] = {}
    for name in _NAMES:
        value = given.get(name) or ""
        if not isinstance(value, str):
            raise BadRequest(f"{name} must be text")
        named[name] = value.strip()
    user, who = named["user_id"], call.who
    conversation = "/".join(filter(None, (named["agent_id"], named["run_id"]))) or ACCOUNT
    if not who.everything:
        if user not in ("", who.sender):
            raise NotAllowed(f"the key {who.name} is of {who.sender}, and of nobody else: leave out user_id")
        return who, conversation
    if not user:
        raise BadRequest("user_id must name a person; only a key can be called without it")
    if ACCOUNT in instance.keys.by_name:
        raise BadRequest(f"a key has the name {ACCOUNT}: call with that key, or rename it")
    who = Principal(ACCOUNT, LIBRARY, user, frozenset(Scope), Trust.KNOWN)
    if instance.config.trust_of(who.origin("")) is Trust.OWNER:
        who = replace(who, trust=Trust.OWNER)
    return who, conversation


async def add(instance: Instance, call: OwnerCall) -> Response:
    """Record messages, which facts are learned from; with `infer: false` save each as it is."""
    who, conversation = _who(instance, call, call.fields)
    said = _talk_in(call.fields.get("messages"))
    assistant, results = instance.services.assistant, list[Shape]()
    if call.flag("infer", default=True):
        for one, received in zip(said, await assistant.record(who, conversation, said), strict=True):
            event = "ADD" if received.intake is IntakeResult.STORED else "NONE"
            found = await instance.memories.library.keyed(who.listener(conversation), f"message:{received.id}")
            name = ids.show("memory", found[0].id) if found else ids.show("message", received.id)
            results.append({"id": name, "memory": one.text, "event": event})
    else:
        metadata = _metadata_in(call.fields)
        for one in said:
            added = await assistant.save_draft(who, MemoryDraft(one.text, metadata=metadata), conversation)
            event = "ADD" if added.is_new else "NONE"
            results.append({"id": ids.show("memory", added.id), "memory": one.text, "event": event})
    kept = _FIELDS if call.flag("infer", default=True) else (*_FIELDS, "metadata")
    unread = sorted(set(call.fields) - set(kept))
    return JSONResponse({"results": results}, headers={"X-Keepsaid-Ignored": _header(unread)} if unread else None)


async def list_memories(instance: Instance, call: OwnerCall) -> Shape:
    """The newest memories of a person."""
    query = read_query(call.request, *_NAMES, "limit")
    who, conversation = _who(instance, call, query)
    limit = read_limit(call.request, 100)
    found = await instance.services.search.newest(_KINDS, limit, who.listener(conversation))
    return {"results": [_shape(one, who, instance.clock.now_ms()) for one in found]}


async def search(instance: Instance, call: OwnerCall) -> Shape:
    """The best memories for a query, best first."""
    who, conversation = _who(instance, call, {**_filters_in(call.fields), **call.fields})
    query, limit = call.text("query"), call.fields.get("limit") or call.fields.get("top_k") or _LIMIT
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise BadRequest("limit must be a whole number")
    asked = SearchRequest(query, max(1, min(limit, _LIMIT_MAX)))
    hits = hits_in(await instance.services.assistant.recall(who, asked, conversation))
    at = instance.clock.now_ms()
    return {"results": [{**_shape(hit.memory, who, at), "score": round(hit.score, 4)} for hit in hits]}


async def get(instance: Instance, call: OwnerCall) -> Shape:
    """One memory."""
    who, _, story = await _story(instance, call)
    return _shape(story.memory, who, instance.clock.now_ms())


async def history(instance: Instance, call: OwnerCall) -> Response:
    """What a memory said before, oldest first."""
    _, _, story = await _story(instance, call)
    changes, before, name = list[Shape](), None, call.request.path_params["id"]
    for one in story.history:
        event = "ADD" if before is None else "UPDATE"
        shape = {"id": ids.show("memory", one.id), "memory_id": name, "old_memory": before, "new_memory": one.text}
        changes.append({**shape, "event": event, "created_at": ids.when(one.recorded_at), "is_deleted": 0})
        before = one.text
    return JSONResponse(changes)


async def update(instance: Instance, call: OwnerCall) -> Shape:
    """Put a memory right: `text`, or `data` as older clients call it."""
    who, conversation, _ = await _story(instance, call, call.fields)
    text = call.text("text") or call.text("data")
    name = call.request.path_params["id"]
    done = await instance.services.assistant.correct(who, name, text, conversation=conversation)
    return {"message": _UPDATED, "id": ids.show("memory", done.memory_id)}


async def delete(instance: Instance, call: OwnerCall) -> Shape:
    """Forget a memory."""
    who, conversation, _ = await _story(instance, call)
    await _forget(instance, who, [call.request.path_params["id"]], conversation)
    return {"message": _DELETED}


async def delete_all(instance: Instance, call: OwnerCall) -> Shape:
    """Forget all memories of a person that the caller may change; a key needs the scopes `operate` and `write`."""
    if not call.who.may(Scope.WRITE):
        raise NotAllowed(f"the key {call.who.name} does not open this: it needs the scope {Scope.WRITE} too")
    who, conversation = _who(instance, call, read_query(call.request, *_NAMES))
    kept: set[int] = set()
    for _ in range(_ROUNDS_MAX):
        newest = await instance.services.search.newest(_KINDS, IDS_MAX + len(kept), who.listener(conversation))
        left = [one for one in newest if one.id not in kept]
        own = [ids.show("memory", one.id) for one in left if who.commands(one.new.scope, [conversation])][:IDS_MAX]
        kept |= {one.id for one in left if not who.commands(one.new.scope, [conversation])}
        if not own and not left:
            return {"message": "All relevant memories deleted"}
        if own:
            await _forget(instance, who, own, conversation)
    raise InputError("more memories than one call forgets: call again", safe="What was forgotten stays forgotten.")


async def _forget(instance: Instance, who: Principal, names: Sequence[str], conversation: str) -> None:
    counted = await instance.services.assistant.count(who, names, conversation)
    await instance.services.assistant.forget(who, names, counted.confirm, conversation)


async def _story(
    instance: Instance, call: OwnerCall, fields: Mapping[str, object] | None = None
) -> tuple[Principal, str, MemoryStory]:
    """The memory that the path names, as whom the call is of may read it. Raises NotFound."""
    name, query = call.request.path_params["id"], dict(read_query(call.request, *_NAMES))
    who, conversation = _reader(instance, call, {**query, **(fields or {})})
    if ids.read("memory", name) is None:
        raise no_such("memory")
    try:
        [story] = await instance.services.assistant.get(who, [name], conversation)
    except InputError as error:
        raise no_such("memory") from error
    return who, conversation, story


def _reader(instance: Instance, call: OwnerCall, given: Mapping[str, object]) -> tuple[Principal, str]:
    """As `_who`; clients name nobody with an id, so that the operator is then the reader."""
    if call.who.everything and not given.get("user_id"):
        return call.who, ""
    return _who(instance, call, given)


def _talk_in(given: object) -> list[Talk]:
    """The messages of a call that are text; those of the system are left out. Raises BadRequest."""
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        raise BadRequest("messages must be a list of objects with role and content, or a text")
    said: list[Talk] = []
    for one in messages:
        role, text, name = one.get("role", "user"), one.get("content"), one.get("name") or ""
        if (
            role not in ("user", "assistant", "system", "tool")
            or not isinstance(text, str)
            or not isinstance(name, str)
        ):
            raise BadRequest("a message has a role (user, assistant, system, tool) and a content that is text")
        if role != "system" and text.strip():
            said.append(Talk(text, answer=role == "assistant", external=role == "tool", name=name))
    if not said:
        raise BadRequest("messages must hold at least one text of a user or an assistant")
    return said


def _filters_in(fields: Mapping[str, object]) -> Mapping[str, object]:
    """The filters of a search. Raises BadRequest for one that narrows nothing here: too much would be found."""
    given = fields.get("filters") or {}
    if not isinstance(given, dict):
        raise BadRequest("filters must be an object")
    if unknown := sorted(set(given) - set(_NAMES)):
        raise BadRequest(f"unknown filter {cut(unknown[0], 80)!r}; known: {', '.join(_NAMES)}")
    return given


def _metadata_in(fields: Mapping[str, object]) -> str:
    """The metadata of a call, as a memory keeps it. Raises BadRequest for anything but an object, and for too much."""
    given = fields.get("metadata") or {}
    if not isinstance(given, dict):
        raise BadRequest("metadata must be an object")
    text = normalise_json(json.dumps({CLIENT_METADATA: given} if given else {}, ensure_ascii=False))
    if len(text) > _METADATA_CHARS_MAX:
        raise BadRequest(f"metadata may have {_METADATA_CHARS_MAX:,} characters as JSON")
    return text


def _shape(memory: Memory, who: Principal, at: int) -> Shape:
    details: dict[str, Any] = {
        "kind": str(memory.new.kind),
        "state": memory.state_at(at),
        "trust": str(memory.new.trust),
        **client_metadata(memory.new.metadata),
    }
    created = ids.when(memory.recorded_at)
    shape = {"id": ids.show("memory", memory.id), "memory": memory.text, "user_id": who.sender, "metadata": details}
    return {**shape, "created_at": created, "updated_at": created}


def _header(names: Sequence[str]) -> str:
    """Names of fields as a header can hold them."""
    return ", ".join(name if name.isascii() and name.isidentifier() else "?" for name in names[:20])


_READ, _WRITE, _OPERATE = (Scope.READ,), (Scope.WRITE,), (Scope.OPERATE,)
_PEOPLE = named(TEXT, *_NAMES)
_MEMORY = {**named(TEXT, "id", "memory", "user_id"), "metadata": OBJECT, **named(perhaps(TIME), *_TIMES)}
_ADDED = gives(results=many(gives(**named(TEXT, "id", "memory", "event"))))
_CHANGE = gives(
    **named(TEXT, "id", "memory_id", "new_memory", "event"),
    old_memory=perhaps(TEXT),
    created_at=perhaps(TIME),
    is_deleted=WHOLE,
)
_ADD = takes("messages", messages={"anyOf": [TEXT, many(OBJECT)]}, infer=FLAG, metadata=OBJECT, **_PEOPLE)
_SEARCH = takes("query", query=TEXT, **named(WHOLE, "limit", "top_k"), filters=OBJECT, **_PEOPLE)
_FOUND = gives(results=many(gives(**_MEMORY, score=NUMBER)))
_UPDATE, _DONE = takes(**named(TEXT, "text", "data"), **_PEOPLE), gives(message=TEXT)
_LISTED = gives(results=many(gives(**_MEMORY)))
_AT, _ONE = "/compat/mem0/memories", "/compat/mem0/memories/{id}"
_LIST = (*_NAMES, "limit")

ROUTES = (
    OwnerRoute("POST", _AT, add, 20_000_000, scopes=_WRITE, takes=_ADD, gives=_ADDED),
    OwnerRoute("GET", _AT, list_memories, scopes=_READ, query=_LIST, gives=_LISTED),
    OwnerRoute("DELETE", _AT, delete_all, long=True, scopes=_OPERATE, query=_NAMES, gives=_DONE),
    OwnerRoute("GET", _ONE, get, scopes=_READ, query=_NAMES, gives=gives(**_MEMORY)),
    OwnerRoute(
        "PUT",
        _ONE,
        update,
        100_000,
        scopes=_WRITE,
        query=_NAMES,
        takes=_UPDATE,
        gives=gives(message=TEXT, id=TEXT),
    ),
    OwnerRoute("DELETE", _ONE, delete, long=True, scopes=_WRITE, query=_NAMES, gives=_DONE),
    OwnerRoute("GET", f"{_ONE}/history", history, scopes=_READ, query=_NAMES, gives=many(_CHANGE)),
    OwnerRoute("POST", "/compat/mem0/search", search, 100_000, scopes=_READ, takes=_SEARCH, gives=_FOUND),
)
