"""A relay of Nostr on a loopback port (NIP-01, NIP-42): `async with NostrRelayServer() as relay`.

It stores events, answers requests and sends live events. It may drop connections, lie in its answers, want to know who
asks, and send everything again. `accepted` is what it stored, in order, and `queries` are the filters of requests.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from keepsaid.testing.providers.mischief import Mischief, MischiefMaker, harmless
from keepsaid.values import frozen

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection

_REFUSALS: Mapping[Mischief, str] = {
    Mischief.SLOW_DOWN: "rate-limited: slow down",
    Mischief.FAIL: "error: could not save the event",
    Mischief.FAIL_AFTER: "error: could not connect to the database",
}
_PRIVATE = (4, 1_059)


class NostrDeliveryAct(StrEnum):
    """The treatment of one event that is sent to a client."""

    DELIVER = "deliver"
    DROP = "drop"
    """The connection is lost, with the event."""
    GARBLE = "garble"
    """The frame cannot be read, and the connection is lost after it."""
    DUPLICATE = "duplicate"
    """The event is sent twice."""
    FORGE = "forge"
    """A copy with another content is sent before the event."""


@frozen
class NostrPublication:
    """An event that a client published: the event, what was done with it, and whether it was stored before."""

    event: Mapping[str, Any]
    act: Mischief
    is_duplicate: bool


class _Client:
    """A connection: its open subscriptions, its challenge, and the public key that it proved."""

    def __init__(self, socket: ServerConnection, challenge: str) -> None:
        self.socket = socket
        self.challenge = challenge
        self.person = ""
        self.requests: dict[str, list[Mapping[str, Any]]] = {}

    async def send(self, *parts: object) -> None:
        """Send a frame."""
        await self.socket.send(json.dumps(parts))


class NostrRelayServer:
    """One relay; an async context manager.

    `mischief` decides what goes wrong with each `EVENT`, `REQ` and `AUTH`; `act` with each event that is sent to a
    client, by its number. `lies` decides, by the number of the publication, whether an event is confirmed and not
    stored. `refuses` maps an id or a kind to the reason with which events are refused. With `asks_auth` private events
    are only for the person to whom they are addressed, with `wants_proof` nobody unknown may publish. With
    `replays_all` the time in a request is ignored, with `is_silent` nothing is answered.
    """

    def __init__(self, mischief: MischiefMaker = harmless) -> None:
        self.mischief = mischief
        self.act: Callable[[int], NostrDeliveryAct] = lambda _number: NostrDeliveryAct.DELIVER
        self.lies: Callable[[int], bool] = lambda _number: False
        self.refuses: dict[str | int, str] = {}
        self.closes_with = ""
        self.asks_auth = self.wants_proof = self.replays_all = self.is_silent = False
        self.page_max = 500
        self.accepted: list[Mapping[str, Any]] = []
        self.publications: list[NostrPublication] = []
        self.calls: dict[str, int] = {}
        self.proved: list[str] = []
        self.queries: list[Mapping[str, Any]] = []
        self.opened = 0
        self._port = self._sent = 0
        self._clients: list[_Client] = []
        self._server: Server | None = None
        self._news = asyncio.Condition()
        self._delivering = asyncio.Lock()

    @property
    def url(self) -> str:
        """Where it listens; the same after `close` and `open`."""
        return f"ws://127.0.0.1:{self._port}"

    @property
    def subscribed(self) -> int:
        """How many clients have open requests."""
        return sum(bool(client.requests) for client in self._clients)

    async def __aenter__(self) -> Self:
        """Listen."""
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop every client."""
        await self.close()

    async def open(self) -> None:
        """Listen, at the former port if there was one."""
        from websockets.asyncio.server import serve  # noqa: PLC0415 - an optional extra

        self._server = await serve(
            self._serve, "127.0.0.1", self._port, ping_interval=None, compression=None, max_size=2_000_000
        )
        self._port = next(iter(self._server.sockets)).getsockname()[1]

    async def close(self) -> None:
        """Drop every client and stop listening; what is stored stays."""
        server, self._server = self._server, None
        if server is not None:
            self.drop()
            server.close()
            await server.wait_closed()

    def drop(self) -> None:
        """Lose every connection, without a word."""
        for client in self._clients:
            client.socket.transport.abort()

    async def store(self, event: Mapping[str, Any], *, is_shown: bool = True) -> None:
        """Store an event as if a client had published it; if `is_shown`, it is sent to those who subscribed."""
        self._keep(event)
        if is_shown:
            await self._deliver(event)

    async def notice(self, text: str) -> None:
        """Send a text that is for people to every client."""
        for client in list(self._clients):
            await self._try(client, "NOTICE", text)

    async def send_raw(self, frame: str | bytes) -> None:
        """Send a frame as it is to every client."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - an optional extra

        for client in list(self._clients):
            with suppress(ConnectionClosed):
                await client.socket.send(frame)

    async def wait_for(self, done: Callable[[], bool], within_s: float = 60.0) -> None:
        """Wait until something is so after a frame of a client; raises TimeoutError."""
        async with asyncio.timeout(within_s), self._news:
            await self._news.wait_for(done)

    async def _serve(self, socket: ServerConnection) -> None:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - an optional extra

        self.opened += 1
        client = _Client(socket, f"challenge-{self.opened}")
        self._clients.append(client)
        try:
            with suppress(ConnectionClosed):
                if self.asks_auth or self.wants_proof:
                    await client.send("AUTH", client.challenge)
                while True:
                    frame = json.loads(await socket.recv())
                    await self._handle(client, frame)
                    await self._tell()
        finally:
            self._clients.remove(client)
            await self._tell()

    async def _handle(self, client: _Client, frame: list[Any]) -> None:
        name = str(frame[0])
        self.calls[name] = self.calls.get(name, 0) + 1
        if self.is_silent:
            return
        match frame:
            case ["EVENT", event]:
                await self._publish(client, event)
            case ["AUTH", event]:
                await self._prove(client, event)
            case ["REQ", name, *queries]:
                await self._request(client, name, queries)
            case ["CLOSE", name]:
                client.requests.pop(name, None)

    async def _publish(self, client: _Client, event: Mapping[str, Any]) -> None:
        """Store an event as mischief wants, and answer."""
        number = self.calls["EVENT"]
        act = self.mischief("EVENT", number)
        if act is Mischief.DROP:
            client.socket.transport.abort()
            return
        refusal = self.refuses.get(event["id"]) or self.refuses.get(event["kind"]) or ""
        if self.wants_proof and not client.person:
            refusal = "auth-required: who publishes?"
        if refusal:
            await client.send("OK", event["id"], False, refusal)
            return
        is_duplicate = any(one["id"] == event["id"] for one in self.accepted)
        self.publications.append(NostrPublication(event, act, is_duplicate))
        is_new = act.does and not is_duplicate and not self.lies(number)
        if is_new:
            self._keep(event)
        await self._answer(client, event, act, is_duplicate=is_duplicate)
        if is_new:
            await self._deliver(event)

    async def _answer(self, client: _Client, event: Mapping[str, Any], act: Mischief, *, is_duplicate: bool) -> None:
        if act is Mischief.RESET_AFTER:
            client.socket.transport.abort()
        elif act is Mischief.GARBLE:
            await client.socket.send("}not json{")
            await client.send("OK", "0" * 64, True, "")
            client.socket.transport.abort()
        elif act in _REFUSALS:
            await client.send("OK", event["id"], False, _REFUSALS[act])
        else:
            await client.send("OK", event["id"], True, "duplicate: already have it" if is_duplicate else "")

    async def _prove(self, client: _Client, event: Mapping[str, Any]) -> None:
        given = {tag[0]: tag[1] for tag in event["tags"]}
        is_proof = event["kind"] == 22_242 and given == {"relay": self.url, "challenge": client.challenge}
        refusal = self.refuses.get("AUTH", "" if is_proof else "invalid: not an answer to the challenge")
        if not refusal:
            client.person = event["pubkey"]
            self.proved.append(client.person)
        await client.send("OK", event["id"], not refusal, refusal)

    async def _request(self, client: _Client, name: str, queries: list[Mapping[str, Any]]) -> None:
        """Send what is stored and matches one of some filters, the newest first, and what comes later."""
        self.queries += queries
        if self.mischief("REQ", self.calls["REQ"]) is Mischief.DROP:
            client.socket.transport.abort()
            return
        if self.closes_with:
            await client.send("CLOSED", name, self.closes_with)
            return
        private = [one for one in queries if any(kind in _PRIVATE for kind in one.get("kinds", ()))]
        if self.asks_auth and any(client.person not in one.get("#p", ()) for one in private):
            await client.send("CLOSED", name, "auth-required: private events are for their receiver")
            return
        found: dict[str, Mapping[str, Any]] = {}
        for query in queries:
            found |= {one["id"]: one for one in self._stored(query)}
        client.requests[name] = queries  # what is stored from here on is sent too: nothing falls between the two
        for event in sorted(found.values(), key=lambda one: int(one["created_at"]), reverse=True):
            await self._send(client, name, event)
        await client.send("EOSE", name)

    def _stored(self, query: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """What is stored and matches a filter, the newest first, a page of it."""
        limits = {} if self.replays_all else {key: query[key] for key in ("since", "until") if key in query}
        found = [one for one in self.accepted if _matches(one, query, limits)]
        found.sort(key=lambda one: int(one["created_at"]), reverse=True)
        return found[: min(self.page_max, query.get("limit", self.page_max))]

    def _keep(self, event: Mapping[str, Any]) -> None:
        if 10_000 <= event["kind"] < 20_000 or event["kind"] in (0, 3):
            same = (event["kind"], event["pubkey"])
            self.accepted = [one for one in self.accepted if (one["kind"], one["pubkey"]) != same]
        self.accepted.append(event)

    async def _deliver(self, event: Mapping[str, Any]) -> None:
        """Send an event to everybody who asked for such."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - an optional extra

        async with self._delivering:  # in the order of storing, also where a client takes long
            for client in list(self._clients):
                for name, queries in list(client.requests.items()):
                    if any(_matches(event, query, {}) for query in queries):
                        with suppress(ConnectionClosed):
                            await self._send(client, name, event)
        await self._tell()

    async def _send(self, client: _Client, name: str, event: Mapping[str, Any]) -> None:
        act = self.act(self._sent)
        self._sent += 1
        if act is NostrDeliveryAct.GARBLE:
            await client.socket.send('["EVENT", not json')
        if act in (NostrDeliveryAct.DROP, NostrDeliveryAct.GARBLE):
            client.socket.transport.close()
        if act is NostrDeliveryAct.FORGE:
            await client.send("EVENT", name, {**event, "content": "forged"})
        for _ in range(1 + (act is NostrDeliveryAct.DUPLICATE)):
            await client.send("EVENT", name, event)

    async def _try(self, client: _Client, *parts: object) -> None:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - an optional extra

        with suppress(ConnectionClosed):
            await client.send(*parts)

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()


def delivery_acts_of(seed: int, trouble: float = 0.2) -> Callable[[int], NostrDeliveryAct]:
    """Do something wrong with the share `trouble` of events that are sent; the same seed does the same."""
    bad = [one for one in NostrDeliveryAct if one is not NostrDeliveryAct.DELIVER]

    def decide(number: int) -> NostrDeliveryAct:
        chance = random.Random(f"nostr:{seed}:{number}")  # noqa: S311 - repeatable, not secret
        return chance.choice(bad) if chance.random() < trouble else NostrDeliveryAct.DELIVER

    return decide


def _matches(event: Mapping[str, Any], query: Mapping[str, Any], limits: Mapping[str, int]) -> bool:
    """Whether an event matches a filter of NIP-01, and its limits of time."""
    tags = {(tag[0], tag[1]) for tag in event["tags"] if len(tag) > 1}
    return (
        event["id"] in query.get("ids", (event["id"],))
        and event["kind"] in query.get("kinds", (event["kind"],))
        and event["pubkey"] in query.get("authors", (event["pubkey"],))
        and all(any((name[1:], one) in tags for one in query[name]) for name in query if name.startswith("#"))
        and limits.get("since", 0) <= event["created_at"] <= limits.get("until", event["created_at"])
    )
