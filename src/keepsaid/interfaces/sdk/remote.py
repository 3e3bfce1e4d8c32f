"""A home whose instance runs in another process: the part of the library that it answers over HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any
from urllib.parse import quote

from keepsaid.config import Home
from keepsaid.errors import HomeBusy, InputError, NotRunning
from keepsaid.interfaces.sdk.agents import ACCOUNT, DIRECT, SENDER, AgentMemory, running_at
from keepsaid.interfaces.sdk.inbox import Batch, Inbox
from keepsaid.interfaces.sdk.values import CHANNEL, Message, Receipt, Reply, text_in

_TIMEOUT_S = 30.0


def needs_instance(what: str, instead: str) -> InputError:
    """The error for what only the process can do that has the home open; `instead` is what can be done here."""
    text = f"another process has this home open, and {what} needs that process itself"
    return InputError(text, safe="Nothing was changed.", hint=instead)


class RemoteInstance:
    """The running instance of a home, asked by a program of its owner."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url.rstrip("/"), token
        self._client: Any = None
        self.inbox = RemoteInbox(self)

    @classmethod
    def of(cls, home: Home, busy: HomeBusy) -> RemoteInstance:
        """That of a home. Raises `busy` where the process that has it open serves nothing."""
        try:
            return cls(*running_at(home))
        except NotRunning:
            raise busy from None

    async def __aenter__(self) -> RemoteInstance:
        import httpx2  # noqa: PLC0415 - only who asks elsewhere needs it

        head = {"Authorization": f"Bearer {self._token}"}
        self._client = await httpx2.AsyncClient(headers=head, timeout=_TIMEOUT_S, trust_env=False).__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.__aexit__(kind, error, trace)

    def agent(self, sender: str, account: str, *, direct: bool) -> AgentMemory:
        """Memory for an agent that talks with one sender."""
        head = {ACCOUNT: account, SENDER: quote(sender), DIRECT: "1" if direct else "0"}

        async def ask(name: str, fields: Mapping[str, object]) -> dict[str, Any]:
            return await self._call("POST", f"/v1/agent/{name}", fields, head)

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
        status = await self._call("GET", "/v1/status")
        return {name: value for name, value in status.items() if name != "sentence"}

    async def why(self, turn: str) -> dict[str, Any]:
        """Why a turn answered as it did. Raises InputError when there is no such turn."""
        story: dict[str, Any] = (await self._call("GET", f"/v1/turns/{quote(turn, safe='')}"))["turn"]
        return story

    async def _call(
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


class RemoteInbox(Inbox):
    """The inbox of an instance in another process: messages are put in; batches are its own."""

    def __init__(self, remote: RemoteInstance) -> None:
        self._remote = remote
        self.is_read = True

    async def put(self, message: Message) -> Receipt:
        """Store a message there; returns once it is on disk. Raises as that of an opened home."""
        if not isinstance(message, Message):
            raise InputError(f"a message is a Message(text, sender, conversation), not {type(message).__name__}")
        for name in ("text", "sender", "conversation", "channel"):
            text_in(getattr(message, name), name)
        if message.channel != CHANNEL:
            raise needs_instance(f"a message of the channel {message.channel}", "send it by POST /v1/messages")
        agent = self._remote.agent(message.sender, "default", direct=message.direct)
        marks = {"provider_id": message.provider_id or "", "reply_to": message.reply_to or ""}
        put = await agent.inbox.put(message.conversation, message.text, key=message.external_id or "", **marks)
        return Receipt(put["id"], put["conversation"], put["lane"], put["number"], put["intake"] != "stored")

    def batches(self, consumer: str, *, idle_s: float | None = None) -> AsyncGenerator[Batch, None]:
        """Raise InputError that names how batches are leased from here."""
        del idle_s  # nothing is waited for
        raise needs_instance(f"batches for {consumer}", 'await ks.agent("worker").inbox.pull()')


def _ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1_000)
