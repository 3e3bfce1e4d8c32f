"""One socket of Slack's Socket Mode: opened by a URL that serves once, read frame by frame, bounded."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING

from keepsaid.adapters.channels.certificates import socket_options
from keepsaid.adapters.channels.slack_api import SlackApi, SlackRefused, SlackUnreachable
from keepsaid.errors import ChannelError, installation

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_log = logging.getLogger("keepsaid.slack")
_wire = logging.getLogger("keepsaid.slack.wire")
_wire.setLevel(logging.WARNING)  # below that, the URL and every frame are logged
_OPENED_WITHIN_S, _CLOSED_WITHIN_S = 10.0, 1.0
_PING_S = 20.0
"""How often the socket is tried; without an answer for as long, it is lost."""

_FRAME_BYTES_MAX = 4_000_000
_FRAMES_MAX = 16

Frame = Mapping[str, object]


class SlackSocket:
    """An open socket. `connections` is how many Slack counts for the app, this one included.

    `worn` is set once it has to be replaced: Slack closes it soon, as `reason` says, or it is lost. `is_closed` says
    that it was closed here.
    """

    def __init__(self, connection: ClientConnection, connections: int) -> None:
        self.connections = connections
        self.worn = asyncio.Event()
        self.reason = ""
        self.is_lost = False
        self.is_closed = False
        self._connection = connection

    async def frames(self) -> AsyncIterator[Frame]:
        """The frames that come, until the socket is closed or lost; one that cannot be read is left out."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - an optional extra

        try:
            while True:
                frame = _frame_of(await self._connection.recv())
                if frame is None:
                    _log.warning("a frame of Slack cannot be read; Slack sends it again")
                else:
                    yield frame
        except ConnectionClosed:
            self.is_lost = True

    async def acknowledge(self, envelope: str) -> None:
        """Tell Slack that an envelope is stored; if the socket is closed meanwhile, Slack sends it again."""
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - an optional extra

        try:
            async with asyncio.timeout(_CLOSED_WITHIN_S):
                await self._connection.send(json.dumps({"envelope_id": envelope}))
        except ConnectionClosed:
            self.is_lost = True
        except TimeoutError:
            self._connection.transport.abort()

    async def close(self) -> None:
        """Close it, within a second."""
        self.is_closed = True
        await self._connection.close()


async def open_socket(api: SlackApi) -> SlackSocket:
    """Open a socket and wait until Slack says hello.

    Raises SlackRefused, SlackUnreachable, and ChannelError where the package `websockets` is missing.
    """
    try:
        from websockets.asyncio.client import connect  # noqa: PLC0415 - an optional extra
        from websockets.exceptions import WebSocketException  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        what = "Socket Mode of Slack needs the package websockets"
        raise ChannelError(what, hint=installation("channels")) from error
    url = (await api.call("apps.connections.open", {}, by_app=True)).get("url")
    if not isinstance(url, str) or not url.startswith(("wss://", "ws://127.0.0.1:")):
        raise SlackUnreachable("apps.connections.open names no URL of a socket", sent=True)
    try:
        connection = await connect(
            url,
            open_timeout=_OPENED_WITHIN_S,
            close_timeout=_CLOSED_WITHIN_S,
            ping_interval=_PING_S,
            ping_timeout=_PING_S,
            max_size=_FRAME_BYTES_MAX,
            max_queue=_FRAMES_MAX,
            compression=None,
            proxy=None,
            user_agent_header="keepsaid",
            logger=_wire,
            **await socket_options(url),
        )
    except (WebSocketException, OSError, ValueError) as error:
        # the URL lets anybody in who is first to use it
        what = f"{type(error).__name__}: {error}".replace(url, "URL")
        raise SlackUnreachable(f"the socket cannot be opened: {what}", sent=True) from None
    try:
        async with asyncio.timeout(_OPENED_WITHIN_S):
            return SlackSocket(connection, _connections_of(_frame_of(await connection.recv())))
    except (WebSocketException, OSError) as error:
        await connection.close()
        raise SlackUnreachable(f"Slack says no hello: {type(error).__name__}", sent=True) from None
    except (SlackRefused, SlackUnreachable, asyncio.CancelledError):
        await connection.close()
        raise


def _connections_of(hello: Frame | None) -> int:
    """The number of sockets in a hello; raises SlackRefused where Slack closes the socket, else SlackUnreachable."""
    if hello is not None and hello.get("type") == "disconnect":
        raise SlackRefused(str(hello.get("reason", "disconnect"))[:100])
    if hello is None or hello.get("type") != "hello":
        raise SlackUnreachable("Slack says no hello", sent=True)
    count = hello.get("num_connections")
    return count if isinstance(count, int) and not isinstance(count, bool) else 0


def _frame_of(raw: str | bytes) -> Frame | None:
    """The object in a frame; None where it holds none."""
    try:
        frame = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return frame if isinstance(frame, dict) else None
