"""The gateway of the scripted Discord: WebSocket, version 10 in JSON, on a loopback port.

Dispatches are numbered in each session and kept, so that a session can be resumed, also after the bot's process died.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from keepsaid.testing.providers.discord_shapes import guild_create_shape, user_shape

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection

_FRAME_BYTES_MAX, _SENDS_MAX, _SENDS_WITHIN_S = 4_096, 120, 60.0
_INTENTS_KNOWN = (1 << 26) - 1
_THREADS, _CHANNELS = (10, 11, 12), (0, 2, 5)


class GatewayMischief(StrEnum):
    """What is done with one dispatch; `accept` is the way it should be."""

    ACCEPT = "accept"
    DROP = "drop"
    """The connection is cut, and the dispatch comes when the session is resumed."""
    HALF_OPEN = "half open"
    """From now on nothing is sent on this connection, not even answers to heartbeats."""
    DUPLICATE = "duplicate"
    """It is sent twice."""
    GARBLE = "garble"
    """A frame that cannot be parsed is sent, and the dispatch comes when the session is resumed."""


GatewayMischiefMaker = Callable[[str, int], GatewayMischief]
"""Decides by the name of the dispatch and by its number in the session; asked once for each dispatch."""


def harmless_gateway(_kind: str, _seq: int) -> GatewayMischief:
    """Send everything as it should be."""
    return GatewayMischief.ACCEPT


class DiscordBehind(Protocol):
    """What the gateway needs of the server it belongs to."""

    token: str
    identifies_left: int
    calls: dict[str, int]
    messages: Any

    def guild(self) -> dict[str, Any]:
        """The server of the bot."""

    async def tell(self) -> None:
        """Let everybody who waits look again."""


class BotSession:
    """A session of the bot: what was dispatched in it, and the connection that has it now, if any."""

    def __init__(self, number: str) -> None:
        self.id = number
        self.log: list[dict[str, Any]] = []
        self.connection: ServerConnection | None = None
        self.news = asyncio.Event()
        self.judged: set[int] = set()

    def add(self, kind: str, told: Any) -> None:
        """Dispatch something in it."""
        self.log.append({"op": 0, "t": kind, "s": len(self.log) + 1, "d": told})
        self.news.set()


class DiscordGatewayServer:
    """The gateway of one bot. `calls` of the server counts what it was sent: `identify`, `resume`, `heartbeat`.

    `mischief` decides what goes wrong with each dispatch, `interval_ms` how often a heartbeat is wanted. While
    `denied_intents` has bits, who asks for them is closed with 4014. `answers_resume` replaces the next answers to
    RESUME: a close code, or True and False for INVALID SESSION. `closed` are the codes with which the bot closed.
    """

    def __init__(self, server: DiscordBehind) -> None:
        self.mischief: GatewayMischiefMaker = harmless_gateway
        self.interval_ms = 41_250
        self.denied_intents = 0
        self.answers_resume: deque[bool | int] = deque()
        self.closed: list[int] = []
        self.identifies: list[dict[str, Any]] = []
        self._server = server
        self._listening: Server | None = None
        self._port = 0
        self._sessions: dict[str, BotSession] = {}
        self._deaf: set[ServerConnection] = set()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"ws://127.0.0.1:{self._port}"

    @property
    def is_connected(self) -> bool:
        """Whether a session has a connection now."""
        return any(one.connection is not None for one in self._sessions.values())

    async def open(self) -> None:
        """Listen."""
        from websockets.asyncio.server import serve  # noqa: PLC0415 - optional, and only for who tests with it

        self._listening = await serve(
            self._serve, "127.0.0.1", self._port, compression=None, ping_interval=None, close_timeout=0.5
        )
        self._port = next(iter(self._listening.sockets)).getsockname()[1]

    async def close(self) -> None:
        """Drop every client."""
        listening, self._listening = self._listening, None
        if listening is not None:
            self.drop()
            listening.close()
            await listening.wait_closed()

    def dispatch(self, kind: str, told: Any) -> None:
        """Dispatch something in every session, connected or not."""
        for session in self._sessions.values():
            session.add(kind, json.loads(json.dumps(told)))

    def dispatch_malformed(self, frame: str) -> None:
        """Dispatch a frame as it is in every session, each time that it is resumed."""
        for session in self._sessions.values():
            session.log.append({"s": len(session.log) + 1, "t": "", "raw": frame})
            session.news.set()

    def drop(self) -> None:
        """Cut every connection without a word; the sessions stay."""
        for session in self._sessions.values():
            if session.connection is not None:
                session.connection.transport.abort()

    def end_sessions(self) -> None:
        """Forget every session and cut the connections: none can be resumed, and nothing is dispatched in them."""
        self.drop()
        self._sessions.clear()

    async def send(self, op: int, told: Any = None) -> None:
        """Send a frame to every connection, such as 7 for RECONNECT or 9 for INVALID SESSION."""
        for session in self._sessions.values():
            if session.connection is not None:
                await session.connection.send(json.dumps({"op": op, "d": told}))

    async def shut(self, code: int) -> None:
        """Close every connection with a code."""
        for session in list(self._sessions.values()):
            if session.connection is not None:
                await session.connection.close(code)

    async def _serve(self, connection: ServerConnection) -> None:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - optional

        session: BotSession | None = None
        sender: asyncio.Task[None] | None = None
        sends: deque[float] = deque(maxlen=_SENDS_MAX)
        try:
            await connection.send(json.dumps({"op": 10, "d": {"heartbeat_interval": self.interval_ms}}))
            async for frame in connection:
                if (code := _refused_frame(frame, sends)) is not None:
                    await connection.close(code)
                    break
                told = json.loads(frame)
                if told["op"] == 1:
                    await self._heartbeat(connection)
                    continue
                found = await self._enter(connection, told)
                if found is not None:
                    session, start = found
                    session.connection = connection
                    sender = asyncio.create_task(self._send(connection, session, start))
                await self._server.tell()
        except ConnectionClosed:
            pass
        finally:
            if sender is not None:
                sender.cancel()
                await asyncio.gather(sender, return_exceptions=True)
            if session is not None and session.connection is connection:
                session.connection = None
            self._deaf.discard(connection)
            if (received := connection.protocol.close_rcvd) is not None:
                self.closed.append(received.code)
            await self._server.tell()

    async def _heartbeat(self, connection: ServerConnection) -> None:
        self._count("heartbeat")
        if connection not in self._deaf:
            await connection.send(json.dumps({"op": 11}))
        await self._server.tell()

    async def _enter(self, connection: ServerConnection, frame: dict[str, Any]) -> tuple[BotSession, int] | None:
        """Begin or resume a session; returns it with the number of dispatches that are not repeated."""
        told = frame["d"]
        if frame["op"] not in (2, 6):
            await connection.close(4_001)
            return None
        if told["token"] != self._server.token:
            await connection.close(4_004)
            return None
        if frame["op"] == 2:
            return await self._identified(connection, told)
        self._count("resume")
        session = self._sessions.get(told["session_id"])
        answer: bool | int | None = self.answers_resume.popleft() if self.answers_resume else None
        if answer is None and session is None:
            answer = False
        if isinstance(answer, bool):
            if not answer:
                self._sessions.pop(told["session_id"], None)
            await connection.send(json.dumps({"op": 9, "d": answer}))
            return None
        if answer is not None or session is None or told["seq"] > len(session.log):
            if answer in (4_007, 4_009):
                self._sessions.pop(told["session_id"], None)
            await connection.close(answer or 4_007)
            return None
        if session.connection is not None:
            session.connection.transport.abort()
        session.add("RESUMED", {"_trace": []})
        return session, told["seq"]

    async def _identified(self, connection: ServerConnection, told: dict[str, Any]) -> tuple[BotSession, int] | None:
        self._count("identify")
        self.identifies.append({"at": time.monotonic(), **told})
        self._server.identifies_left -= 1
        intents = told.get("intents")
        if not isinstance(intents, int) or intents & ~_INTENTS_KNOWN:
            await connection.close(4_013)
            return None
        if intents & self.denied_intents:
            await connection.close(4_014)
            return None
        session = BotSession(f"session{len(self.identifies)}")
        self._sessions[session.id] = session
        guild = self._server.guild()
        bot = user_shape("4711", "scripted_bot", is_bot=True)
        ready = {"v": 10, "user": bot, "application": {"id": "4711", "flags": 0}, "private_channels": []}
        ready |= {"guilds": [{"id": guild["id"], "unavailable": True}]}
        session.add("READY", {**ready, "session_id": session.id, "resume_gateway_url": self.url})
        channels, threads = (
            [{name: value for name, value in one.items() if name != "guild_id"} for one in found]
            for found in (self._server.messages.channels(kinds) for kinds in (_CHANNELS, _THREADS))
        )
        whole = {**guild_create_shape(guild, bot), "channels": channels, "threads": threads}
        session.add("GUILD_CREATE", json.loads(json.dumps(whole)))
        return session, 0

    async def _send(self, connection: ServerConnection, session: BotSession, start: int) -> None:
        """Send the dispatches of a session after the first `start`, as mischief wants."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - optional

        at = start
        try:
            while True:
                while at < len(session.log):
                    frame = session.log[at]
                    at += 1
                    if not await self._sent(connection, session, frame):
                        return
                session.news.clear()
                await session.news.wait()
        except ConnectionClosed:
            return

    async def _sent(self, connection: ServerConnection, session: BotSession, frame: dict[str, Any]) -> bool:
        """Send a dispatch; returns whether more can follow on this connection."""
        act = GatewayMischief.ACCEPT
        if frame["s"] not in session.judged and frame["t"] not in ("READY", "RESUMED"):
            session.judged.add(frame["s"])
            act = self.mischief(frame["t"], frame["s"])
        if act is GatewayMischief.DROP:
            connection.transport.abort()
            return False
        if act is GatewayMischief.HALF_OPEN:
            self._deaf.add(connection)
            return False
        data = frame["raw"] if "raw" in frame else json.dumps(frame)
        if act is GatewayMischief.GARBLE:
            await connection.send(data[: len(data) // 2])
            return True
        for _ in range(2 if act is GatewayMischief.DUPLICATE else 1):
            await connection.send(data)
        return True

    def _count(self, name: str) -> None:
        self._server.calls[name] = self._server.calls.get(name, 0) + 1


def _refused_frame(frame: str | bytes, sends: deque[float]) -> int | None:
    """The close code for a frame that is too long, no JSON, or one too many in a minute; None for a good one."""
    now = time.monotonic()
    if len(frame) > _FRAME_BYTES_MAX:
        return 4_002
    if len(sends) == _SENDS_MAX and sends[0] > now - _SENDS_WITHIN_S:
        return 4_008
    sends.append(now)
    try:
        told = json.loads(frame)
    except ValueError:
        return 4_002
    return None if isinstance(told, dict) and isinstance(told.get("op"), int) else 4_002
