"""The memory and the events of an instance in another process, over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from math import ceil
from pathlib import Path
from typing import Any, NoReturn, Unpack
from urllib.parse import quote

from keepsaid.app.backups import note_backup
from keepsaid.app.redaction import redactor_of
from keepsaid.app.stores import reading, system_clock
from keepsaid.config import Home, load
from keepsaid.domain.prompt import Json
from keepsaid.interfaces.running_memory import RunningMemory
from keepsaid.interfaces.sdk import values
from keepsaid.interfaces.sdk.inbox import EventClient
from keepsaid.interfaces.sdk.memory import Filters, MemoryClient, MemoryFiles, ToForget, import_request, run_import
from keepsaid.interfaces.sdk.remote_inbox import OperatorCall, needs_instance
from keepsaid.interfaces.transfer_shapes import export_shape
from keepsaid.services import bundles
from keepsaid.services.memories import FOUND_MAX

_WAIT_S = 20
"""Seconds that one request waits for an event."""


class RemoteMemoryFiles(MemoryFiles):
    """Exports and imports of a home that another process has open; the files are those of this process."""

    def __init__(self, call: OperatorCall, home: Home) -> None:
        self._request, self._home = call, home

    async def export(
        self, target: str | Path, form: str = "jsonl", persons: Sequence[str] = (), *, force: bool = False
    ) -> dict[str, Any]:
        """Write memory into one file, as that of an opened home; the stores are read beside the instance."""
        async with reading(self._home, load(self._home.config_file)[0]) as stores:
            done = await bundles.export(stores.memories.bundles, Path(target), form, persons, force=force)
            note_backup(self._home, done.file, stores.clock.now_ms())
        return export_shape(done)

    async def import_from(
        self,
        file: str | Path,
        source: str = "",
        persons: Mapping[str, str] | None = None,
        *,
        trust: str = "",
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Import a file, as that of an opened home; the instance stores what this process reads in it."""
        config = load(self._home.config_file)[0]
        wanted, memory = await import_request(file, source, trust, persons or {}, config), RunningMemory(self._post)
        return await run_import(wanted, memory, redactor_of(config), system_clock().now_ms(), dry_run=dry_run)

    async def _post(self, path: str, fields: Mapping[str, object]) -> dict[str, Any]:
        return await self._request("POST", path, fields)


class RemoteMemory(RemoteMemoryFiles, MemoryClient):
    """The memory of a home that another process has open, as its owner hears it."""

    async def _call(self, name: str, **fields: object) -> dict[str, Any]:
        return await self._request("POST", f"/v1/library/memory/{name}", fields)

    async def record(self, episodes: Sequence[values.Episode]) -> tuple[str, ...]:
        """Remember what was said, as that of an opened home."""
        given = [
            {**asdict(one), "said_at": values.time_in(one.said_at, f"episode {n}: said_at")}
            for n, one in enumerate(episodes)
        ]
        return tuple((await self._call("record", episodes=given))["ids"])

    async def embed(self) -> bool:
        """Give all that was recorded its vectors now; whether there is an embedder."""
        done: bool = (await self._call("embed"))["done"]
        return done

    async def recall(
        self, query: str, limit: int = 10, conversation: str | None = None, as_of: values.Time | None = None
    ) -> tuple[values.Remembered, ...]:
        """The best memories for a query, best first, as that of an opened home."""
        at = values.time_in(as_of, "as_of")
        found = await self._call("recall", query=query, limit=_bounded(limit), conversation=conversation, as_of=at)
        return tuple(values.Remembered(**one) for one in found["memories"])

    async def search(self, query: str, limit: int = 10, **filters: Unpack[Filters]) -> tuple[values.Remembered, ...]:
        """The best memories for a query that keep within filters, as that of an opened home."""
        since, until = values.time_in(filters.get("since"), "since"), values.time_in(filters.get("until"), "until")
        times = {"since": since, "until": until, "as_of": values.time_in(filters.get("as_of"), "as_of")}
        found = await self._call("search", query=query, limit=_bounded(limit), **{**filters, **times})
        return tuple(values.Remembered(**one) for one in found["memories"])

    async def get(self, memory: str) -> values.MemoryRecord:
        """One memory by its id; raises InputError when there is none."""
        [found] = (await self._call("get", id=memory))["memories"]
        return values.MemoryRecord(**found)

    async def list(self, kinds: str | Sequence[str] = (), limit: int = 20) -> tuple[values.MemoryRecord, ...]:
        """Memories, newest first; of all kinds when none is named."""
        wanted = (kinds,) if isinstance(kinds, str) else tuple(kinds)
        return _records(await self._call("list", kinds=wanted, limit=_bounded(limit)))

    async def history(self, memory: str) -> tuple[values.MemoryRecord, ...]:
        """What was known when of the same, in the order in which it began to hold."""
        return _records(await self._call("history", id=memory))

    async def add(self, text: str, kind: str = "fact") -> str:
        """Remember what the owner says, without the secrets in it; returns its id."""
        name: str = (await self._call("add", text=values.text_in(text, "text"), kind=kind))["id"]
        return name

    async def edit(self, memory: str, text: str, value: str = "") -> str:
        """Put a memory right, as its owner. Returns the id of what holds now."""
        name: str = (await self._call("edit", id=memory, text=text, value=value))["id"]
        return name

    async def pin(self, memory: str, *, pinned: bool = True) -> None:
        """Pin a memory, so that it never fades, or unpin it."""
        await self._call("pin", id=memory, pinned=pinned)

    async def forget(
        self, *ids: str | Sequence[str], dry_run: bool = False, **named: Unpack[ToForget]
    ) -> values.Forgotten:
        """Forget memories and messages, as that of an opened home."""
        each = [one for given in ids for one in ((given,) if isinstance(given, str) else given)]
        return values.Forgotten(**await self._call("forget", ids=each, dry_run=dry_run, **named))

    async def undo(self, request: str) -> None:
        """Put back what a request to forget took, while that can be; raises InputError."""
        await self._call("undo", id=request)


class RemoteEvents(EventClient):
    """Facts that happen at an instance in another process; it delivers to subscribers of its own process alone."""

    def __init__(self, call: OperatorCall) -> None:
        self._request = call

    async def subscribe(
        self,
        name: str,
        topics: str | tuple[str, ...],
        tell: Callable[[dict[str, Any]], Awaitable[object]],
        *,
        from_start: bool = False,
    ) -> NoReturn:
        """Raise InputError that names the stream of events."""
        del topics, tell, from_start
        raise needs_instance(f"the subscriber {name}", "read the stream GET /v1/events")

    async def unsubscribe(self, name: str) -> bool:
        """Remove a subscriber and drop its pending deliveries. False when it is not known."""
        done = await self._request("POST", f"/v1/subscribers/{quote(name, safe='')}/unsubscribe")
        return bool(done["unsubscribed"])

    async def emit(self, topic: str, payload: Mapping[str, Json], about: str = "") -> None:
        """Publish an event of your own, as that of an opened home; returns once it is on disk."""
        await self._request("POST", "/v1/events", {"topic": topic, "payload": dict(payload), "about": about})

    async def wait_for(self, topic: str, about: str, timeout_s: float, after: str = "0") -> dict[str, Any] | None:
        """The first event of a topic about something, after the event of this id; None when there is none in time."""
        loop = asyncio.get_running_loop()
        until, asked = loop.time() + timeout_s, {"topic": topic, "about": about, "after": after}
        while True:
            wait_s = max(0, min(_WAIT_S, ceil(until - loop.time())))
            found = await self._request("POST", "/v1/events:wait", {**asked, "wait_s": wait_s})
            if found["event"] is not None or loop.time() >= until:
                event: dict[str, Any] | None = found["event"]
                return event


def _bounded(limit: int) -> int:
    return max(0, min(limit, FOUND_MAX))


def _records(found: Mapping[str, Any]) -> tuple[values.MemoryRecord, ...]:
    return tuple(values.MemoryRecord(**one) for one in found["memories"])
