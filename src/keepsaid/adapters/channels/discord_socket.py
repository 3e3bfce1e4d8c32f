"""One connection to Discord's gateway: its frames, its heartbeats, and why it ended."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
import random
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from keepsaid.adapters.channels.certificates import socket_options
from keepsaid.adapters.channels.discord_line import DiscordDown, DiscordSessionOver, DiscordShut
from keepsaid.errors import installation
from keepsaid.ports.runtime import Clock
from keepsaid.values import frozen

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT, INVALID, HELLO, ACK = 0, 1, 2, 6, 7, 9, 10, 11
MALFORMED: Final = -1
"""The operation of a frame that cannot be read."""

RESUMABLE: Final = 4_000
"""The close code with which the session is kept; 1000 and 1001 would end it."""

_FRAME_BYTES_MAX = 32_000_000
_FRAMES_MAX, _TAKEN_MAX = 2_000, 200
"""Frames that wait to be taken, and how many are taken at once."""

_PAYLOAD_BYTES_MAX, _SENDS_MAX, _SENDS_WITHIN_MS = 4_096, 110, 60_000
_OPEN_WITHIN_S, _CLOSE_WITHIN_S = 15.0, 2.0
_INTERVALS_MS = (1_000.0, 600_000.0)

_OVER = (4_003, 4_007, 4_009)
_SHUT: Mapping[int, str] = {
    4_004: "discord.token is not accepted",
    4_010: "the gateway refuses the shard",
    4_011: "the bot is in too many servers for one connection; shards are not supported",
    4_012: "the gateway no longer speaks version 10",
    4_013: "the gateway does not know an intent of the bot",
    4_014: "an intent is switched off: turn on MESSAGE CONTENT in the developer portal, or set discord.content = false",
}
"""Close codes that do not go away by themselves."""

_wire = logging.getLogger("keepsaid.discord.wire")
_wire.setLevel(logging.WARNING)
"""What the library logs; its debug lines show frames, and with them the token."""


@frozen
class GatewayFrame:
    """A frame: its operation, the name and number of a dispatch, its data, and what came if it cannot be read."""

    op: int
    kind: str = ""
    seq: int = 0
    told: object = None
    raw: bytes = b""


async def open_gateway(url: str, clock: Clock) -> GatewaySocket:
    """Connect and wait for the greeting. Raises DiscordDown; DiscordShut if the library is not installed."""
    try:
        # the first import takes 200 ms, too long for the loop
        client = await asyncio.to_thread(importlib.import_module, "websockets.asyncio.client")
        errors = await asyncio.to_thread(importlib.import_module, "websockets.exceptions")
    except ImportError:
        raise DiscordShut(f"websockets is not installed: {installation('channels')}") from None
    try:
        connection: ClientConnection = await client.connect(
            url,
            compression=None,
            proxy=None,
            open_timeout=_OPEN_WITHIN_S,
            close_timeout=_CLOSE_WITHIN_S,
            ping_interval=None,
            max_size=_FRAME_BYTES_MAX,
            logger=_wire,
            **await socket_options(url),
        )
    except (errors.WebSocketException, OSError, ValueError) as error:
        raise DiscordDown(f"the gateway cannot be reached: {type(error).__name__}: {error}") from None
    socket = GatewaySocket(connection, clock)
    try:
        await socket.greet()
    except (DiscordDown, DiscordShut, asyncio.CancelledError):
        await socket.close()
        raise
    return socket


class GatewaySocket:
    """An open connection. `seq` is the number of the last dispatch that is on disk; heartbeats tell it."""

    def __init__(self, connection: ClientConnection, clock: Clock) -> None:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - optional, and loaded by now

        self._connection = connection
        self._closed_error = ConnectionClosed
        self._clock = clock
        self._frames: deque[GatewayFrame] = deque()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._sends: deque[float] = deque()
        self._is_answered = True
        self._end: Exception | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.seq = 0

    async def greet(self) -> None:
        """Take the greeting, then read and send heartbeats in the background. Raises DiscordDown and DiscordShut."""
        try:
            async with asyncio.timeout(_OPEN_WITHIN_S):
                hello = frame_of(await self._connection.recv())
        except TimeoutError:
            raise DiscordDown("the gateway does not greet") from None
        except self._closed_error:
            raise self._reason() from None
        interval = hello.told.get("heartbeat_interval") if isinstance(hello.told, dict) else None
        if hello.op != HELLO or isinstance(interval, bool) or not isinstance(interval, int | float):
            raise DiscordDown("the gateway does not greet")
        shortest, longest = _INTERVALS_MS
        interval_ms = min(max(float(interval), shortest), longest)
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._beat(interval_ms))]

    async def send(self, op: int, told: object) -> None:
        """Send a frame. Raises DiscordDown."""
        frame = json.dumps({"op": op, "d": told})
        if len(frame) > _PAYLOAD_BYTES_MAX:
            raise DiscordDown("the frame is too long for the gateway")
        now = self._clock.monotonic_ms()
        while self._sends and self._sends[0] <= now - _SENDS_WITHIN_MS:
            self._sends.popleft()
        if len(self._sends) >= _SENDS_MAX:
            raise DiscordDown("the gateway asks for more frames than it takes")
        self._sends.append(now)
        try:
            await self._connection.send(frame)
        except self._closed_error:
            raise self._reason() from None

    async def take(self, within_ms: float) -> list[GatewayFrame]:
        """The frames that came, in order, 200 at most; none after `within_ms` without any.

        Raises what ended the connection, once all frames are taken.
        """
        if not self._frames and self._end is None:
            await self._clock.wait(self._news, within_ms)
        if not self._frames and self._end is not None:
            raise self._end
        taken = [self._frames.popleft() for _ in range(min(len(self._frames), _TAKEN_MAX))]
        self._room.set()
        return taken

    async def close(self) -> None:
        """Close so that the session can be resumed; waits two seconds for the other side at most."""
        for task in self._tasks:
            task.cancel()
        try:
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._connection.close(RESUMABLE)
        finally:
            self._connection.transport.abort()

    async def _read(self) -> None:
        """Read frames until the connection ends; what waits for nobody is answered here."""
        try:
            while True:
                frame = frame_of(await self._connection.recv())
                if frame.op == ACK:
                    self._is_answered = True
                elif frame.op == HEARTBEAT:
                    await self.send(HEARTBEAT, self.seq or None)
                else:
                    await self._keep(frame)
        except self._closed_error:
            self._finish(self._reason())
        except (DiscordDown, DiscordShut) as error:
            self._finish(error)

    async def _keep(self, frame: GatewayFrame) -> None:
        """Add a frame to those that can be taken; waits while there are too many."""
        while len(self._frames) >= _FRAMES_MAX:
            self._room.clear()
            await self._room.wait()
        self._frames.append(frame)
        self._news.set()

    async def _beat(self, interval_ms: float) -> None:
        """Send heartbeats; one that is not answered before the next ends the connection."""
        await self._clock.wait(asyncio.Event(), interval_ms * random.random())  # noqa: S311 - jitter
        while self._is_answered:
            self._is_answered = False
            try:
                await self.send(HEARTBEAT, self.seq or None)
            except (DiscordDown, DiscordShut) as error:
                self._finish(error)
                return
            await self._clock.wait(asyncio.Event(), interval_ms)
        self._finish(DiscordDown("the gateway does not answer heartbeats"))

    def _finish(self, error: Exception) -> None:
        if self._end is None:
            self._end = error
        self._news.set()

    def _reason(self) -> DiscordDown | DiscordShut:
        """Why the other side closed the connection."""
        code = self._connection.close_code or 1_006
        if code in _SHUT:
            return DiscordShut(f"{_SHUT[code]} (close code {code})")
        if code in _OVER:
            return DiscordSessionOver(f"the session is over (close code {code})")
        return DiscordDown(f"the gateway closed the connection (close code {code})")


def frame_of(data: str | bytes) -> GatewayFrame:
    """The frame in a message of the gateway; its operation is MALFORMED if it cannot be read."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
    try:
        told = json.loads(raw)
    except (ValueError, RecursionError):
        return GatewayFrame(MALFORMED, raw=raw)
    op = told.get("op") if isinstance(told, dict) else None
    if not isinstance(op, int) or isinstance(op, bool):
        return GatewayFrame(MALFORMED, raw=raw)
    kind, seq = told.get("t"), told.get("s")
    if op == DISPATCH and not (isinstance(kind, str) and isinstance(seq, int)):
        return GatewayFrame(MALFORMED, raw=raw)
    return GatewayFrame(op, kind if isinstance(kind, str) else "", seq if isinstance(seq, int) else 0, told.get("d"))
