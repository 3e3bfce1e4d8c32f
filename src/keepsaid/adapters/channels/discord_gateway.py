"""Discord as a channel that receives: dispatches of the gateway, whose numbers are stored with their messages.

A session is resumed after a lost connection and after a restart, from the last dispatch whose messages are on disk.
If Discord does not resume it, a new one begins, and what was missed is read at the REST interface.
"""

from __future__ import annotations

import asyncio
from typing import Final

from keepsaid.adapters.channels.discord_api import DiscordRefused
from keepsaid.adapters.channels.discord_catchup import CatchUp
from keepsaid.adapters.channels.discord_line import (
    DiscordAccount,
    DiscordDown,
    DiscordLine,
    DiscordSessionOver,
    DiscordShut,
    DiscordTrouble,
)
from keepsaid.adapters.channels.discord_places import DiscordPlaces
from keepsaid.adapters.channels.discord_progress import GatewayProgress
from keepsaid.adapters.channels.discord_session import SessionReader
from keepsaid.adapters.channels.discord_socket import IDENTIFY, RESUME, GatewaySocket, open_gateway
from keepsaid.adapters.channels.discord_updates import DiscordReader
from keepsaid.ports.channel import InboundSink

_GUILDS, _MESSAGES, _REACTIONS, _DIRECT, _DIRECT_REACTIONS, _CONTENT = (
    1 << 0,
    1 << 9,
    1 << 10,
    1 << 12,
    1 << 13,
    1 << 15,
)
_INTENTS = _GUILDS | _MESSAGES | _REACTIONS | _DIRECT | _DIRECT_REACTIONS

IDENTIFIES_LEFT: Final = 200
"""Sessions of the day that are left to begin when no more are begun: without any left, Discord resets the token."""

_IDENTIFY_EVERY_MS = 5_000
_DIALS_MAX = 3
"""After this number of failures at the address of a session, it is resumed at the general one."""


class DiscordGateway:
    """Reads what is said to a bot, until it is cancelled. With `content` it asks for the text of all messages."""

    def __init__(
        self, account: DiscordAccount, places: DiscordPlaces, line: DiscordLine, *, content: bool = True
    ) -> None:
        self._account = account
        self._places = places
        self._line = line
        self._clock = line.clock
        self._intents = _INTENTS | (_CONTENT if content else 0)
        self._progress: GatewayProgress | None = None
        self._identified_at = -float(_IDENTIFY_EVERY_MS)
        self._failed_dials = 0

    async def listen(self, inbox: InboundSink) -> None:
        """Hand over what comes; whatever goes wrong is waited out, however often."""
        while True:
            try:
                if self._progress is None:
                    self._progress = GatewayProgress(self._account.id, await inbox.cursors(self._account.id))
                self._line.connecting()
                await self._connected(inbox, self._progress)
            except DiscordTrouble as error:
                if isinstance(error, DiscordSessionOver) and self._progress is not None:
                    self._progress.end_session()
                if isinstance(error, DiscordShut) or (isinstance(error, DiscordRefused) and error.status == 401):
                    self._account.forget()
                await self._line.wait_out(error)

    async def _connected(self, inbox: InboundSink, progress: GatewayProgress) -> None:
        """Connect, resume or begin a session, and read until the connection ends; raises why it did."""
        reader = DiscordReader(self._places, await self._account.bot())
        socket = await self._dialled(progress)
        socket.seq = progress.seq
        token = self._account.api.token
        try:
            if (session := progress.session) is not None:
                await socket.send(RESUME, {"token": token, "session_id": session.id, "seq": progress.seq})
            else:
                about = {"os": "linux", "browser": "keepsaid", "device": "keepsaid"}
                self._identified_at = self._clock.monotonic_ms()
                await socket.send(IDENTIFY, {"token": token, "intents": self._intents, "properties": about})
            catch_up = CatchUp(self._account.api, self._places, reader)
            await SessionReader(inbox, progress, catch_up, socket, self._line).run()
        finally:
            await socket.close()

    async def _dialled(self, progress: GatewayProgress) -> GatewaySocket:
        """An open connection: at the address of the session, or at the general one, within the budget of sessions."""
        is_own = progress.session is not None and self._failed_dials < _DIALS_MAX
        if progress.session is None:
            wait = self._identified_at + _IDENTIFY_EVERY_MS - self._clock.monotonic_ms()
            await self._clock.wait(asyncio.Event(), max(0.0, wait))
        url = progress.session.url if progress.session is not None and is_own else await self._general_url(progress)
        if self._account.api.url.startswith("https://") and not url.startswith("wss://"):
            raise DiscordDown("the address of the gateway is not encrypted")
        try:
            socket = await open_gateway(f"{url.rstrip('/')}/?v=10&encoding=json", self._clock)
        except DiscordDown:
            self._failed_dials += 1
            raise
        self._failed_dials = 0
        return socket

    async def _general_url(self, progress: GatewayProgress) -> str:
        """The address of the gateway. Raises DiscordShut if too few sessions are left to begin another one."""
        told = await self._account.api.get("/gateway/bot")
        url = told.get("url") if isinstance(told, dict) else None
        budget = told.get("session_start_limit") if isinstance(told, dict) else None
        if not isinstance(url, str):
            raise DiscordDown("Discord does not return the URL of the gateway")
        left = budget.get("remaining") if isinstance(budget, dict) else None
        if progress.session is None and isinstance(left, int) and left < IDENTIFIES_LEFT:
            reset = budget.get("reset_after") if isinstance(budget, dict) else None
            wait_ms = float(reset) if isinstance(reset, int | float) else 3_600_000.0
            what = (
                f"{left} sessions are left to begin today; the rest is kept, so that Discord does not reset the token"
            )
            raise DiscordShut(what, min(max(wait_ms, 60_000.0), 86_400_000.0))
        return url
