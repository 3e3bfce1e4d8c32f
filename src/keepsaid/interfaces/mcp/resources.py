"""Resources: memories, recorded talk, and for the owner the files of the personality, whose list is watched."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import Any

import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged
from mcp.shared.exceptions import MCPError

from keepsaid.errors import KeepsaidError, NotAllowed
from keepsaid.interfaces.mcp.tool import Ask
from keepsaid.interfaces.shapes import Shape
from keepsaid.text.normal import cut

_MEMORY, _LANE, _IDENTITY = "keepsaid://memory/", "keepsaid://lane/", "keepsaid://identity/"
_JSON, _MARKDOWN = "application/json", "text/markdown"
_SHOWN_CHARS = 500
TTL_MS = 60_000
_UNKNOWN_KEY = "KS-HTTP-AUTH"
"""The code of the error for a key that is not let in."""

LISTENERS_MAX = 64
"""Streams of changes that one server holds open."""

_TEMPLATES = (
    ("memory", f"{_MEMORY}{{id}}", "A memory, whole", _JSON),
    ("lane", f"{_LANE}{{conversation}}", "Recorded talk", _JSON),
    ("identity", f"{_IDENTITY}{{file}}", "A file of the agent's personality; for the owner", _MARKDOWN),
)


def refused(what: str, uri: str = "") -> MCPError:
    """The protocol's own error for a request that names what is not there, such as the resource `uri`."""
    data = {"uri": cut(uri, _SHOWN_CHARS)} if uri else None
    return MCPError(code=types.INVALID_PARAMS, message=cut(what, _SHOWN_CHARS), data=data)


def templates() -> types.ListResourceTemplatesResult:
    """The forms of addresses."""
    found = [
        types.ResourceTemplate(name=name, uri_template=uri, description=says, mime_type=kind)
        for name, uri, says, kind in _TEMPLATES
    ]
    return types.ListResourceTemplatesResult(resource_templates=found, ttl_ms=TTL_MS, cache_scope="public")


async def identity_names(ask: Ask) -> list[str]:
    """The files of the personality that a caller may read: none, unless it is the owner."""
    try:
        names: list[str] = (await ask("identity", {}))["files"]
    except NotAllowed:
        return []
    return names


async def listed(ask: Ask) -> types.ListResourcesResult:
    """The resources that stand under an address of their own: the personality."""
    try:
        names = await identity_names(ask)
    except KeepsaidError as error:
        raise refused(error.what) from error
    found = [types.Resource(name=name, uri=f"{_IDENTITY}{name}", mime_type=_MARKDOWN) for name in names]
    return types.ListResourcesResult(resources=found, ttl_ms=0, cache_scope="private")


async def read(ask: Ask, conversation: str, uri: str) -> types.ReadResourceResult:
    """One resource; an address that binds its client to a `conversation` reads that one alone. Raises MCPError."""
    try:
        if uri.startswith(_IDENTITY):
            name = uri.removeprefix(_IDENTITY)
            kind, text = _MARKDOWN, (await ask("identity", {"file": name or "?"}))["text"]
        else:
            kind, text = _JSON, json.dumps(await _shape(ask, conversation, uri), ensure_ascii=False)
    except KeepsaidError as error:
        raise refused(error.what, uri) from error
    content = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
    return types.ReadResourceResult(contents=[content], ttl_ms=0, cache_scope="private")


async def _shape(ask: Ask, conversation: str, uri: str) -> Shape:
    if uri.startswith(_MEMORY):
        return {"memories": (await ask("get", {"ids": [uri.removeprefix(_MEMORY)]}))["memories"]}
    if uri.startswith(_LANE):
        return await ask("transcript", {"conversation": conversation or uri.removeprefix(_LANE)})
    raise refused(f"there is no resource {cut(uri, _SHOWN_CHARS)!r}", uri)


class ChangeStreams:
    """Serves `subscriptions/listen`: each stream says when the list of its caller's own resources changed.

    A file may be made or deleted by any program, so the list is looked at, every `look_s` seconds.
    """

    def __init__(self, look_s: float) -> None:
        self._look_s = look_s
        self._open = 0

    async def listen(self, ask: Ask, ctx: Any, params: Any) -> types.SubscriptionsListenResult:
        """One stream, until its client leaves. Raises MCPError where too many are open, or its key is removed."""
        if self._open >= LISTENERS_MAX:
            raise MCPError(code=types.INTERNAL_ERROR, message="too many streams of changes are open")
        bus = InMemorySubscriptionBus()
        before = await identity_names(ask)
        handler = ListenHandler(bus)
        watching = asyncio.create_task(self._watch(ask, bus, before), name="mcp-resources")
        watching.add_done_callback(lambda _: handler.close())
        self._open += 1
        try:
            result = await handler(ctx, params)
            if watching.done():
                raise refused(watching.result().what)
            return result
        finally:
            self._open -= 1
            watching.cancel()

    async def _watch(self, ask: Ask, bus: InMemorySubscriptionBus, known: list[str]) -> KeepsaidError:
        """Publish changes until the caller is not let in any more; returns why."""
        never = asyncio.Event()
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(never.wait(), self._look_s)
            try:
                found = await identity_names(ask)
            except KeepsaidError as error:
                if error.code == _UNKNOWN_KEY:
                    return error
                continue  # the next look finds it
            if found != known:
                known = found
                await bus.publish(ResourcesListChanged())
