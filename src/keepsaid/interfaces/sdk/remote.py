"""A home whose instance runs in another process: the part of the library that it answers over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any
from urllib.parse import quote

from keepsaid.config import Home
from keepsaid.errors import HomeBusy, NotRunning
from keepsaid.interfaces.sdk.agents import ACCOUNT, DIRECT, SENDER, AgentMemory, client_for, running_at
from keepsaid.interfaces.sdk.remote_inbox import RemoteInbox
from keepsaid.interfaces.sdk.remote_memory import RemoteEvents, RemoteMemory
from keepsaid.interfaces.sdk.values import Message, Reply


class RemoteInstance:
    """The running instance of a home, asked by a program of its owner."""

    def __init__(self, home: Home, url: str, token: str) -> None:
        self._url, self._token = url.rstrip("/"), token
        self._client: Any = None
        self.inbox = RemoteInbox(self.call, self.agent)
        self.memory, self.events = RemoteMemory(self.call, home), RemoteEvents(self.call)

    @classmethod
    def of(cls, home: Home, busy: HomeBusy) -> RemoteInstance:
        """That of a home. Raises `busy` where the process that has it open serves nothing."""
        try:
            return cls(home, *running_at(home))
        except NotRunning:
            raise busy from None

    async def __aenter__(self) -> RemoteInstance:
        self._client = await client_for(self._url, {"Authorization": f"Bearer {self._token}"}).__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    def agent(self, sender: str, account: str, *, direct: bool) -> AgentMemory:
        """Memory for an agent that talks with one sender."""
        head = {ACCOUNT: account, SENDER: quote(sender), DIRECT: "1" if direct else "0"}

        async def ask(name: str, fields: Mapping[str, object]) -> dict[str, Any]:
            return await self.call("POST", f"/v1/agent/{name}", fields, head)

        return AgentMemory(ask)

    async def ask(self, message: Message, hear: Callable[[str], object] | None) -> Reply:
        """Send a message and wait for its outcome."""
        receipt = await self.inbox.put(message)
        story = await self._settled(receipt.id, hear)
        said = [one for one in story["replies"] if one["text"]]
        times = [_ms(one["created_at"]) for one in said] or [_ms(story["received_at"])]
        text, silent = "\n\n".join(one["text"] for one in said), story["silent"] or ""
        return Reply(text, story["state"], receipt, story["turn"] or "", max(times), silent)

    async def status(self) -> dict[str, Any]:
        """What waits, what was answered and what is remembered."""
        status = await self.call("GET", "/v1/status")
        return {name: value for name, value in status.items() if name != "sentence"}

    async def why(self, turn: str) -> dict[str, Any]:
        """Why a turn answered as it did. Raises InputError when there is no such turn."""
        story: dict[str, Any] = (await self.call("GET", f"/v1/turns/{quote(turn, safe='')}"))["turn"]
        return story

    async def call(
        self, method: str, path: str, fields: object = None, head: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """What a route answers. Raises NotRunning, or the error that the instance answered with."""
        import httpx2  # noqa: PLC0415 - it is loaded

        from keepsaid.interfaces.problems import problem_in  # noqa: PLC0415 - errors are few

        content = None if fields is None else json.dumps(fields).encode()
        try:
            answer = await self._client.request(method, self._url + path, content=content, headers=head)
        except httpx2.HTTPError as error:
            raise NotRunning(f"nothing answers at {self._url} ({type(error).__name__})") from error
        if answer.status_code >= 400:
            raise problem_in(answer.content, answer.status_code)
        found: dict[str, Any] = answer.json()
        return found

    async def _settled(self, message: str, hear: Callable[[str], object] | None) -> dict[str, Any]:
        """The story of a message once it is settled; a stream that breaks off is opened again by who asks next."""
        async for name, data in self._events(f"/v1/messages/{message}/events"):
            if name == "delta" and hear is not None:
                hear(data["text"])
            if name == "settled":
                return data
        raise NotRunning(f"the instance at {self._url} stopped before {message} was answered; it is stored")

    async def _events(self, path: str) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        import httpx2  # noqa: PLC0415 - it is loaded

        name = ""
        try:
            async with self._client.stream("GET", self._url + path, timeout=None) as stream:
                async for line in stream.aiter_lines():
                    field, _, value = line.partition(": ")
                    name = value if field == "event" else name
                    if field == "data":
                        yield name, json.loads(value)
        except httpx2.HTTPError as error:
            raise NotRunning(f"the instance at {self._url} is away ({type(error).__name__})") from error


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1_000)
