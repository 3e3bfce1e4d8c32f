"""Routes for agents outside: context, memory and talk of the caller, whom its key names (docs/use/how-to/agents.md)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import unquote

from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.message import Trust
from keepsaid.domain.principal import Principal, Scope, own_agent
from keepsaid.errors import InputError
from keepsaid.interfaces import agent_calls
from keepsaid.interfaces.agent_fields import CALL_FIELDS
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute
from keepsaid.interfaces.http.gate import LIBRARY
from keepsaid.interfaces.http.responses import BadRequest, NotFound
from keepsaid.interfaces.sdk.agents import ACCOUNT, DIRECT, SENDER
from keepsaid.interfaces.shapes import Shape
from keepsaid.text.normal import cut

_DIGITS_MAX, _NAME_CHARS_MAX = 18, 512
_ACCOUNT = r"[a-z][a-z0-9_-]{0,39}"


async def build_context(instance: Instance, call: OwnerCall) -> Shape:
    """What a model should be shown of memory before it answers a text."""
    return await agent_calls.CALLS["context"](call_site_of(instance), call.who, call.fields)


async def record(instance: Instance, call: OwnerCall) -> Response:
    """Keep talk: 201, or 200 if all of it was there before."""
    shape = await agent_calls.CALLS["record"](call_site_of(instance), call.who, call.fields)
    return JSONResponse(shape, 200 if all(one["duplicate"] for one in shape["messages"]) else 201)


async def read_transcript(instance: Instance, call: OwnerCall) -> Shape:
    """What was said in `?conversation=`, oldest first; `?after=` a position, `?limit=` messages at most."""
    query = call.request.query_params
    fields: dict[str, object] = dict(query)
    for name in query.keys() & {"after", "limit"}:
        fields[name] = _number(query, name)
    return await agent_calls.CALLS["transcript"](call_site_of(instance), call.who, fields)


async def save(instance: Instance, call: OwnerCall) -> Response:
    """Remember a text as the caller's word: 201, or 200 if it was there before."""
    if not isinstance(call.fields.get("text"), str):
        raise BadRequest("a memory needs a text")
    key = call.request.headers.get("idempotency-key")
    fields = call.fields if key is None else {"key": key, **call.fields}
    shape = await agent_calls.CALLS["save"](call_site_of(instance), call.who, fields)
    return JSONResponse(shape, 201 if shape["state"] == "stored" else 200)


async def forget(instance: Instance, call: OwnerCall) -> Shape:
    """Count what would be forgotten; with the token that confirms it, forget it."""
    return await agent_calls.CALLS["forget"](call_site_of(instance), call.who, call.fields)


async def ask(instance: Instance, call: OwnerCall) -> Shape:
    """Any call of an agent by its name, as the library and `keepsaid mcp` make it from another process."""
    name = call.request.path_params["call"]
    if (answer := agent_calls.CALLS.get(name)) is None:
        raise NotFound(f"there is no call {cut(name, 80)!r}; known: {', '.join(agent_calls.CALLS)}")
    return await answer(call_site_of(instance), _caller(instance, call), call.fields)


def _caller(instance: Instance, call: OwnerCall) -> Principal:
    """Who calls: the sender of a key; the operator, or an agent of the owner in the account that a header names."""
    account = call.request.headers.get(ACCOUNT, "")
    if not account or not call.who.everything:
        return call.who
    if SENDER in call.request.headers:
        return _agent_of(instance, call, account)
    if re.fullmatch(_ACCOUNT, account) is None or account in (*instance.keys.by_name, call.who.name):
        raise BadRequest(f"{ACCOUNT} must be a name of its own in small letters, and not that of a key")
    return own_agent(account)


def _agent_of(instance: Instance, call: OwnerCall, account: str) -> Principal:
    """An agent of another sender, as the library has it: the operator may act as anybody, and so with less."""
    sender = unquote(call.request.headers[SENDER])
    if not sender or account in instance.keys.by_name or len(account) > _NAME_CHARS_MAX:
        raise BadRequest(f"{SENDER} needs a sender, and an account in {ACCOUNT} that is not that of a key")
    direct = call.request.headers.get(DIRECT, "1") == "1"
    who = Principal(account, LIBRARY, sender, frozenset(Scope), direct=direct)
    is_owner = instance.config.trust_of(who.origin("")) is Trust.OWNER
    return replace(who, trust=Trust.OWNER) if is_owner else who


def call_site_of(instance: Instance) -> agent_calls.CallSite:
    """Whom agents ask at an instance."""
    return agent_calls.CallSite(instance)


def _number(query: Mapping[str, str], name: str) -> int:
    text = query[name]
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise InputError(f"{name} must be a whole number")
    return int(text)


def _call(name: str, route: OwnerRoute) -> OwnerRoute:
    """A route that is a call of its own, with the fields and the scope of the call."""
    fields = CALL_FIELDS[name]
    scopes = () if fields.scope is None else (fields.scope,)
    return route._replace(takes=fields.takes, gives=fields.gives, scopes=scopes)


_TAKES = {"anyOf": [one.takes for one in CALL_FIELDS.values()]}
_GIVES = {"anyOf": [one.gives for one in CALL_FIELDS.values()]}
_SCOPES = tuple(Scope)  # the call itself says which one it needs
_SAVED = (200, 201)
_AFTER = ("conversation", "after", "limit")

ROUTES = (
    _call("context", OwnerRoute("POST", "/v1/context", build_context, 1_000_000)),
    _call("transcript", OwnerRoute("GET", "/v1/lanes", read_transcript, query=_AFTER)),
    _call("record", OwnerRoute("POST", "/v1/lanes:record", record, 20_000_000, statuses=_SAVED)),
    _call("save", OwnerRoute("POST", "/v1/memories", save, 1_000_000, statuses=_SAVED)),
    _call("forget", OwnerRoute("POST", "/v1/memories/forget", forget, 100_000, long=True)),
    OwnerRoute("POST", "/v1/agent/{call}", ask, 20_000_000, long=True, scopes=_SCOPES, takes=_TAKES, gives=_GIVES),
)
