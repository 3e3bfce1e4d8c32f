"""The server as others meet it: a real one on a home of its own and a free port, and a client that speaks to it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import httpx2

from keepsaid.app.instance import Instance, Outside
from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.interfaces.http.server import Address, listening

BASE: dict[str, Any] = {"models": {"chat": "none"}, "buffer": {"window_ms": 0}, "server": {"port": 0}}
"""Offline, at once, on any free port."""

PROBLEM = "application/problem+json"

_WITHIN_S = 240.0
"""What takes so long hangs; a busy machine may well need some seconds for an answer."""


@dataclass(frozen=True)
class Site:
    """A running server, its home, and a client without a token."""

    home: Home
    instance: Instance
    address: Address
    client: httpx2.AsyncClient

    @property
    def owner(self) -> dict[str, str]:
        """The header that opens every route."""
        token = json.loads(self.home.runtime_file.read_text("utf-8"))["token"]
        return {"Authorization": f"Bearer {token}"}

    async def put(self, body: object, headers: Mapping[str, str] | None = None) -> httpx2.Response:
        """POST /v1/messages; bytes are sent as they are, anything else as JSON in ASCII."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"Content-Type": "application/json", **(headers or {})}
        return await self.client.post("/v1/messages", content=content, headers=sent)

    async def say(self, text: str, conversation: str = "room", key: str | None = None) -> httpx2.Response:
        """Ann says something."""
        headers = {} if key is None else {"Idempotency-Key": key}
        return await self.put({"text": text, "sender": "ann", "conversation": conversation}, headers)

    async def events(self, message_id: str) -> list[tuple[str, dict[str, Any]]]:
        """What is told about a message until it is settled: names and data."""
        return [(event["event"], json.loads(event["data"])) for event in await self.stages(message_id)]

    async def stages(self, message_id: str, last: str = "") -> list[dict[str, str]]:
        """The same as it was sent: event, data, and id if it has one; `last` is what arrived before."""
        headers = {**self.owner, "Last-Event-ID": last}
        response = await self.client.get(f"/v1/messages/{message_id}/events", headers=headers)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("text/event-stream")
        blocks = [block for block in response.text.split("\n\n") if block.startswith("event: ")]
        return [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]

    async def settled(self, message_id: str) -> dict[str, Any]:
        """The story of a message once it is settled."""
        name, story = (await self.events(message_id))[-1]
        assert name == "settled"
        return story

    @contextmanager
    def database(self, *, writing: bool = False) -> Iterator[apsw.Connection]:
        """The buffer's file, as another program opens it."""
        flags = apsw.SQLITE_OPEN_READWRITE if writing else apsw.SQLITE_OPEN_READONLY
        db = apsw.Connection(str(self.home.store("buffer.db")), flags=flags)
        try:
            db.set_busy_timeout(1_000 * int(_WITHIN_S))
            yield db
        finally:
            db.close()

    def rows(self, sql: str, *bound: object) -> list[tuple[Any, ...]]:
        """What is on disk."""
        with self.database() as db:
            return db.execute(sql, bound).fetchall()


def _client_of(address: Address) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(base_url=address.url, trust_env=False, verify=False, timeout=_WITHIN_S)


@asynccontextmanager
async def site(
    root: Path, *, answering: bool = True, outside: Outside | None = None, **settings: Any
) -> AsyncIterator[Site]:
    """A server on the home `root` while the block runs; `settings` are sections of the config."""
    home = Home.at(root)
    config, warnings = load(home.config_file, {**BASE, **settings})
    assert warnings == []
    async with opened(home, config, outside=outside) as instance:
        await instance.start(answering=answering)
        async with listening(instance) as address, _client_of(address) as client:
            yield Site(home, instance, address, client)


def refused(response: httpx2.Response, status: int) -> dict[str, Any]:
    """The problem a response tells: what happened, whether data is safe, what to do; nothing of our inside."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == PROBLEM
    told: dict[str, Any] = response.json()
    assert told["status"] == status
    for name in ("title", "safe", "hint", "code"):
        assert isinstance(told[name], str)
        assert told[name], name
    for inside in ("Traceback", 'File "', "Error:", "apsw", "keepsaid/"):
        assert inside not in response.text
    return told


async def hang_up(writer: asyncio.StreamWriter) -> None:
    """Close a connection at once, and wait until it is closed: its loop may end next."""
    writer.transport.abort()
    with suppress(OSError):
        await writer.wait_closed()
