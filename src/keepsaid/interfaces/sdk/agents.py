"""Memory for an agent of your own, in the name of one sender: in this process, or at an instance elsewhere."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from keepsaid.config import Home, load
from keepsaid.errors import ConfigError, InputError, NotRunning

Ask = Callable[[str, Mapping[str, object]], Awaitable[dict[str, Any]]]
"""Makes a call by its name, with its fields; returns the JSON object that it is answered with."""

ACCOUNT = "X-Keepsaid-Account"
"""The header by which the operator calls as an agent of the owner, in conversations of this account."""

SENDER, DIRECT = "X-Keepsaid-Sender", "X-Keepsaid-Direct"
"""Headers by which the operator calls as an agent of another sender, percent-encoded; and whether they are alone."""

_TIMEOUT_S = 30.0


class AgentMemory:
    """Context, memory and talk of one sender, in conversations that no other sender can name.

    Every method returns the JSON object that `docs/use/reference/agents.md` describes for HTTP.
    """

    def __init__(self, ask: Ask, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.ask = ask  # any call by its name
        self._ask = ask
        self.loop = loop
        """The event loop that calls have to be made on; None for any."""
        self.inbox = AgentInbox(ask)

    async def context(self, conversation: str, text: str, tokens: int = 2_000) -> dict[str, Any]:
        """What a model should be shown before it answers a text: `memory`, `bulletin`, `summary`, and why."""
        return await self._ask("context", {"conversation": conversation, "text": text, "tokens": tokens})

    async def record(self, conversation: str, *messages: Mapping[str, str]) -> dict[str, Any]:
        """Keep what was said, in order: `{"role": "user", "text": ...}`, with a `key` for who may say it again."""
        return await self._ask("record", {"conversation": conversation, "messages": [dict(one) for one in messages]})

    async def recall(self, query: str, limit: int = 10, *, conversation: str = "", **filters: str) -> dict[str, Any]:
        """The best memories for a query, best first: `hits`. Filters: kind, person, since, until, as_of."""
        return await self._ask("recall", {"query": query, "limit": limit, "conversation": conversation, **filters})

    async def get(self, *ids: str, key: str = "") -> dict[str, Any]:
        """Memories by their ids, whole, with history and sources; or what holds now of that saved under a `key`."""
        return await self._ask("get", {"key": key} if key else {"ids": list(ids)})

    async def save(self, text: str, kind: str = "fact", *, key: str = "", conversation: str = "") -> dict[str, Any]:
        """Remember a text as the sender's word; under a `key` the same again changes nothing."""
        return await self._ask("save", {"text": text, "kind": kind, "key": key, "conversation": conversation})

    async def correct(self, memory: str, text: str, value: str = "") -> dict[str, Any]:
        """Put a memory of the sender right; what it said before is kept as past."""
        return await self._ask("correct", {"id": memory, "text": text, "value": value})

    async def forget(self, ids: Sequence[str], confirm: str = "") -> dict[str, Any]:
        """Count what would be forgotten; with the `confirm` that this gives, forget it."""
        return await self._ask("forget", {"ids": list(ids), "confirm": confirm})

    async def transcript(self, conversation: str, after: int = 0, limit: int = 200) -> dict[str, Any]:
        """What was recorded of a conversation, oldest first."""
        return await self._ask("transcript", {"conversation": conversation, "after": after, "limit": limit})

    async def explain(self, turn: str) -> dict[str, Any]:
        """Why a turn of the sender's own conversations answered as it did."""
        return await self._ask("explain", {"id": turn})


class AgentInbox:
    """The inbox for a program elsewhere: messages of its sender put in, and batches leased, of all conversations.

    `put` needs the scope `talk`, all else `operate`. Every method returns the JSON object of its call.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def put(self, conversation: str, text: str, *, key: str = "", **fields: str) -> dict[str, Any]:
        """Store a message of the sender; under a `key` once. Fields: name, topic, provider_id, reply_to."""
        return await self._ask("put", {"conversation": conversation, "text": text, "key": key, **fields})

    async def pull(self, limit: int = 1, *, lease_s: int = 60, wait_s: int = 0) -> dict[str, Any]:
        """Lease batches that are ready: `batches`, each with the handle of its `lease`."""
        return await self._ask("pull", {"limit": limit, "lease_s": lease_s, "wait_s": wait_s})

    async def renew(self, lease: str, lease_s: int = 60) -> dict[str, Any]:
        """Hold a lease for longer, from now on. Raises LeaseLost."""
        return await self._ask("renew", {"lease": lease, "lease_s": lease_s})

    async def done(self, lease: str, reply: str = "", *, worker: str = "") -> dict[str, Any]:
        """Settle a batch with a reply, in one commit; again under this lease it is a duplicate. Raises LeaseLost."""
        return await self._ask("done", {"lease": lease, "reply": reply, "worker": worker})

    async def fail(self, lease: str, reason: str) -> dict[str, Any]:
        """Charge a batch an attempt: it comes again, or is dead after the third. Raises LeaseLost."""
        return await self._ask("fail", {"lease": lease, "reason": reason})

    async def release(self, lease: str) -> dict[str, Any]:
        """Queue a batch again without charging it an attempt. Raises LeaseLost."""
        return await self._ask("release", {"lease": lease})


def _trace_head() -> dict[str, str]:
    """The header that continues the trace of this process at the instance, where the process has one."""
    head: dict[str, str] = {}
    if (propagate := sys.modules.get("opentelemetry.propagate")) is not None:
        propagate.inject(head)
    return head


class RunningAgent:
    """The memory of a running instance, asked over HTTP with a key. Use it as `async with Keepsaid.connect(...)`."""

    def __init__(self, url: str, token: str, *, account: str = "") -> None:
        self._url = url.rstrip("/")
        self._head = {"Authorization": f"Bearer {token}", **({ACCOUNT: account} if account else {})}
        self._client: Any = None

    async def __aenter__(self) -> AgentMemory:
        import httpx2  # noqa: PLC0415 - only who asks elsewhere needs it

        verify = not self._url.lower().startswith("http:")  # else the certificates are not loaded, which takes 30 ms
        client = httpx2.AsyncClient(headers=self._head, timeout=_TIMEOUT_S, trust_env=False, verify=verify)
        self._client = await client.__aenter__()
        return AgentMemory(self.ask, asyncio.get_running_loop())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        await client.__aexit__(kind, error, trace)

    async def ask(self, name: str, fields: Mapping[str, object]) -> dict[str, Any]:
        """Make a call. Raises NotRunning where nothing answers, else the error that the instance answered with."""
        import httpx2  # noqa: PLC0415 - it is loaded

        from keepsaid.interfaces.problems import problem_in  # noqa: PLC0415 - errors are few

        if self._client is None:
            raise InputError("this memory is not open: use it inside `async with Keepsaid.connect(...)`")
        try:
            content = json.dumps(fields).encode()
            answer = await self._client.post(f"{self._url}/v1/agent/{name}", content=content, headers=_trace_head())
        except httpx2.HTTPError as error:
            raise NotRunning(f"nothing answers at {self._url} ({type(error).__name__})") from error
        if answer.status_code >= 400:
            raise problem_in(answer.content, answer.status_code)
        try:
            told = answer.json()
        except ValueError:
            told = None
        if not isinstance(told, dict):
            raise NotRunning(f"the server at {self._url} is not a keepsaid runtime")
        return told


def connect(home: str | Path | None = None, *, key: str, url: str = "") -> RunningAgent:
    """The memory of an instance that runs: that of a home, by the name of one of its keys, or at `url` by its token.

    Raises NotRunning where the home has no instance, and ConfigError for a key that it does not have.
    """
    if url:
        return RunningAgent(url, key)
    place = Home.at(Path(home) if home is not None else None)
    address, _ = running_at(place)
    config, _ = load(place.config_file)
    if (named := config.keys.get(key)) is None:
        raise ConfigError(f"there is no key {key!r}", hint="keepsaid config show keys")
    return RunningAgent(address, named.token.get_secret_value())


def running_at(home: Home) -> tuple[str, str]:
    """The address of the instance of a home, and the operator's token that it left there. Raises NotRunning."""
    try:
        running = json.loads(home.runtime_file.read_bytes())
        return str(running["url"]), str(running["token"])
    except (OSError, ValueError, KeyError) as error:
        raise NotRunning("no instance of this home runs") from error
