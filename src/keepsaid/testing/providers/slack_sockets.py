"""Slack's Socket Mode on a loopback port: sockets that share the events, each of which comes until it is acknowledged.

A socket is opened by a URL that serves once. Ghosts are sockets that Slack counts and nobody has: they take their share
of the events, and these are lost.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from keepsaid.values import frozen

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection

_RESEND_S = 0.3
_RETRIES_MAX = 3


class SocketAct(StrEnum):
    """What is done with one delivery of an envelope."""

    DELIVER = "deliver"
    DROP = "drop"
    """The socket is lost, with the envelope."""
    GARBLE = "garble"
    """The frame cannot be read."""
    DUPLICATE = "duplicate"
    """The envelope comes twice."""


@frozen
class EnvelopeDelivery:
    """One delivery of an envelope: the number of the attempt, from 0, and whether a ghost took it."""

    envelope: str
    attempt: int
    to_ghost: bool = False


class _Envelope:
    """An envelope that was not acknowledged yet."""

    def __init__(self, number: str, kind: str, payload: Mapping[str, Any]) -> None:
        self.number = number
        self.kind = kind
        self.payload = payload
        self.attempt = 0
        self.last: ServerConnection | None = None
        self.timer: asyncio.TimerHandle | None = None

    def frame(self) -> str:
        """The envelope as it is sent."""
        told: dict[str, Any] = {"envelope_id": self.number, "type": self.kind, "payload": self.payload}
        told |= {"accepts_response_payload": self.kind == "slash_commands", "retry_attempt": self.attempt}
        return json.dumps({**told, "retry_reason": "timeout" if self.attempt else ""})


class SocketModeServer:
    """The sockets of one app. An envelope that is not acknowledged within `resend_s` is sent again, to another socket.

    After `retries_max` retries it is in `given_up`. `ghosts` counts the sockets that nobody has. `act` decides, by the
    number of the delivery, what goes wrong. `deliveries` and `acknowledged` are what was sent and confirmed.
    """

    def __init__(self) -> None:
        self.resend_s = _RESEND_S
        self.retries_max = _RETRIES_MAX
        self.ghosts = 0
        self.act: Callable[[int], SocketAct] = lambda _number: SocketAct.DELIVER
        self.open_sockets: list[ServerConnection] = []
        self.opened = 0
        self.most_open = 0
        self.deliveries: list[EnvelopeDelivery] = []
        self.acknowledged: list[str] = []
        self.given_up: list[str] = []
        self.refuses = ""
        self._envelopes: dict[str, _Envelope] = {}
        self._tickets: set[str] = set()
        self._made = self._turn = 0
        self._server: Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._news = asyncio.Condition()

    @property
    def waiting(self) -> int:
        """How many envelopes are not acknowledged, and not given up."""
        return len(self._envelopes)

    async def open(self) -> None:
        """Listen for sockets."""
        from websockets.asyncio.server import serve  # noqa: PLC0415 - an optional extra

        self._server = await serve(self._serve, "127.0.0.1", 0, ping_interval=None, compression=None)

    async def close(self) -> None:
        """Drop every socket, and send nothing more."""
        for envelope in self._envelopes.values():
            _stop(envelope)
        server, self._server = self._server, None
        if server is not None:
            for socket in self.open_sockets:
                socket.transport.abort()
            server.close()
            await server.wait_closed()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def make_url(self) -> str:
        """A URL that opens one socket."""
        assert self._server is not None, "it listens"
        self._made += 1
        ticket = f"ticket-{self._made}"
        self._tickets.add(ticket)
        port = next(iter(self._server.sockets)).getsockname()[1]
        return f"ws://127.0.0.1:{port}/link/?ticket={ticket}&app_id=A0APP"

    def deliver(self, kind: str, payload: Mapping[str, Any]) -> None:
        """Send an envelope to one of the sockets; without one it is given up, as Slack does."""
        self._made += 1
        envelope = _Envelope(f"envelope-{self._made}", kind, payload)
        self._envelopes[envelope.number] = envelope
        self._send(envelope)

    async def disconnect(self, reason: str, *, every: bool = False) -> None:
        """Say to the oldest socket, or to every one, that it is closed soon. The client is to close it."""
        told = json.dumps({"type": "disconnect", "reason": reason, "debug_info": {"host": "applink-1"}})
        for socket in list(self.open_sockets if every else self.open_sockets[:1]):
            await self._try(socket, told)

    def drop(self) -> None:
        """Lose every socket, without a word."""
        for socket in self.open_sockets:
            socket.transport.abort()

    async def wait_for(self, done: Callable[[], bool], within_s: float = 60.0) -> None:
        """Wait until something is so after an event here; raises TimeoutError."""
        async with asyncio.timeout(within_s), self._news:
            await self._news.wait_for(done)

    async def tell(self) -> None:
        """Let who waits look again."""
        async with self._news:
            self._news.notify_all()

    async def _serve(self, socket: ServerConnection) -> None:
        assert socket.request is not None, "it was asked for"
        ticket = socket.request.path.partition("ticket=")[2].partition("&")[0]
        if ticket not in self._tickets:
            await socket.close(1008, "used")
            return
        self._tickets.discard(ticket)
        if self.refuses:
            await self._try(socket, json.dumps({"type": "disconnect", "reason": self.refuses}))
            return
        self.open_sockets.append(socket)
        self.opened += 1
        self.most_open = max(self.most_open, len(self.open_sockets))
        try:
            await self._talk(socket)
        finally:
            self.open_sockets.remove(socket)
            for envelope in [one for one in self._envelopes.values() if one.last is socket]:
                self._retry(envelope)
            await self.tell()

    async def _talk(self, socket: ServerConnection) -> None:
        """Say hello, then take acknowledgements until the socket is closed."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - an optional extra

        count = len(self.open_sockets) + self.ghosts
        about = {"host": "applink-1", "build_number": 1, "approximate_connection_time": 18_060}
        hello = {"type": "hello", "num_connections": count, "connection_info": {"app_id": "A0APP"}, "debug_info": about}
        with suppress(ConnectionClosed):
            await socket.send(json.dumps(hello))
            await self.tell()
            while True:
                number = str(json.loads(await socket.recv())["envelope_id"])
                self.acknowledged.append(number)
                if (envelope := self._envelopes.pop(number, None)) is not None:
                    _stop(envelope)
                await self.tell()

    def _send(self, envelope: _Envelope) -> None:
        """Send an envelope to the next socket in turn, rather than to the one that did not acknowledge it."""
        sockets = [one for one in self.open_sockets if one is not envelope.last] or self.open_sockets
        self._turn += 1
        place = self._turn % max(1, len(sockets) + self.ghosts)
        if self.ghosts and place >= len(sockets):
            self.deliveries.append(EnvelopeDelivery(envelope.number, envelope.attempt, to_ghost=True))
            self._envelopes.pop(envelope.number, None)
            return
        if not sockets:
            self._give_up(envelope)
            return
        envelope.last = sockets[place]
        act = self.act(len(self.deliveries))
        self.deliveries.append(EnvelopeDelivery(envelope.number, envelope.attempt))
        envelope.timer = asyncio.get_running_loop().call_later(self.resend_s, self._retry, envelope)
        if act is SocketAct.DROP:
            envelope.last.transport.abort()
            return
        frames = ["}not json{"] if act is SocketAct.GARBLE else [envelope.frame()] * (1 + (act is SocketAct.DUPLICATE))
        self._begin(self._try(envelope.last, *frames))

    def _retry(self, envelope: _Envelope) -> None:
        """Send an envelope again, until that was done often enough."""
        _stop(envelope)
        if envelope.number not in self._envelopes:
            return
        envelope.attempt += 1
        if envelope.attempt > self.retries_max:
            self._give_up(envelope)
        else:
            self._send(envelope)

    def _give_up(self, envelope: _Envelope) -> None:
        self._envelopes.pop(envelope.number, None)
        self.given_up.append(envelope.number)
        self._begin(self.tell())

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something while the server is open."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _try(self, socket: ServerConnection, *frames: str) -> None:
        """Send frames, unless the socket is closed meanwhile."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - an optional extra

        with suppress(ConnectionClosed):
            for frame in frames:
                await socket.send(frame)


def acts_of(seed: int, trouble: float = 0.3) -> Callable[[int], SocketAct]:
    """Do something wrong with the share `trouble` of deliveries; the same seed does the same."""
    bad = [one for one in SocketAct if one is not SocketAct.DELIVER]

    def decide(number: int) -> SocketAct:
        chance = random.Random(f"sockets:{seed}:{number}")  # noqa: S311 - repeatable, not secret
        return chance.choice(bad) if chance.random() < trouble else SocketAct.DELIVER

    return decide


def _stop(envelope: _Envelope) -> None:
    """Send an envelope no more by itself."""
    if envelope.timer is not None:
        envelope.timer.cancel()
        envelope.timer = None
