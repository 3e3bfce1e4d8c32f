"""Routes for agents outside: context, memory and talk of the caller, whom its key names (docs/use/how-to/agents.md)."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.principal import Scope
from keepsaid.errors import InputError
from keepsaid.interfaces import agent_shapes as shapes
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute
from keepsaid.interfaces.http.responses import read_query, render_in_thread
from keepsaid.interfaces.shapes import Shape, forgetting_shape
from keepsaid.services.assistant import TRANSCRIPT_MAX

_TOKENS = 2_000
_DIGITS_MAX = 18


async def build_context(instance: Instance, call: OwnerCall) -> Response:
    """What a model should be shown of memory before it answers `text` in `conversation`."""
    conversation, text = (shapes.text_field(call.fields, name) for name in ("conversation", "text"))
    tokens = shapes.number_field(call.fields, "tokens", _TOKENS)
    built = await instance.services.assistant.context(call.who, conversation, text, tokens)
    return await render_in_thread(lambda: shapes.context_shape(built))


async def record(instance: Instance, call: OwnerCall) -> Response:
    """Keep what was said and answered in `conversation`: 201, or 200 if all of it was there before."""
    conversation, talk = shapes.text_field(call.fields, "conversation"), shapes.talk_of(call.fields.get("messages"))
    shape = shapes.receipts_shape(await instance.services.assistant.record(call.who, conversation, talk))
    return JSONResponse(shape, 200 if all(one["duplicate"] for one in shape["messages"]) else 201)


async def read_transcript(instance: Instance, call: OwnerCall) -> Response:
    """What was said in `?conversation=`, oldest first; `?after=` a position, `?limit=` messages at most."""
    query = read_query(call.request, "conversation", "after", "limit")
    numbers = []
    for name, default in (("after", 0), ("limit", TRANSCRIPT_MAX)):
        text = query.get(name, str(default))
        if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
            raise InputError(f"{name} must be a whole number")
        numbers.append(int(text))
    assistant, (after, limit) = instance.services.assistant, numbers
    span = await assistant.transcript(call.who, shapes.text_field(query, "conversation"), after=after, limit=limit)
    return await render_in_thread(lambda: shapes.transcript_shape(span))


async def save(instance: Instance, call: OwnerCall) -> Response:
    """Remember `text` as the caller's word: 201, or 200 if it was there before. `key` names it for who repeats it."""
    fields = call.fields
    text, kind = shapes.text_field(fields, "text"), shapes.text_field(fields, "kind", "fact")
    key = shapes.text_field(fields, "key", call.request.headers.get("idempotency-key", ""))
    conversation = shapes.text_field(fields, "conversation", "")
    added = await instance.services.assistant.save(call.who, text, kind, key=key, conversation=conversation)
    return JSONResponse(shapes.saved_shape(added), 201 if added.is_new else 200)


async def forget(instance: Instance, call: OwnerCall) -> Shape:
    """Count what forgetting `ids` would take; with the word that this gives as `confirm`, forget it."""
    names, confirm = shapes.names_field(call.fields, "ids"), shapes.text_field(call.fields, "confirm", "")
    conversation, assistant = shapes.text_field(call.fields, "conversation", ""), instance.services.assistant
    if not confirm:
        counted = await assistant.count(call.who, names, conversation)
        return shapes.counted_shape(counted, instance.clock.now_ms())
    done = await assistant.forget(call.who, names, confirm, conversation)
    return forgetting_shape(done.request, done.backups if call.who.everything else ())


ROUTES = (
    OwnerRoute("POST", "/v1/context", build_context, 1_000_000, scope=Scope.READ),
    OwnerRoute("GET", "/v1/lanes", read_transcript, scope=Scope.READ),
    OwnerRoute("POST", "/v1/lanes:record", record, 20_000_000, scope=Scope.WRITE),
    OwnerRoute("POST", "/v1/memories", save, 1_000_000, scope=Scope.WRITE),
    OwnerRoute("POST", "/v1/memories/forget", forget, 100_000, long=True, scope=Scope.WRITE),
)
