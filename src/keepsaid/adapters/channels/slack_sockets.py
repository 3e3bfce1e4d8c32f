"""Slack as a channel that receives: sockets whose events are stored before they are acknowledged to Slack.

Two sockets are held, so that one is open while the other is replaced. An event that is not acknowledged comes again;
events that came while no socket was open are read from the history (spec: channels, section 6).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from operator import itemgetter
from typing import NamedTuple

from keepsaid.adapters.channels.backoff import LineBackoff
from keepsaid.adapters.channels.slack_api import SlackRefused, SlackUnreachable
from keepsaid.adapters.channels.slack_catchup import SlackCatchUp
from keepsaid.adapters.channels.slack_cursors import order_of
from keepsaid.adapters.channels.slack_dial import Frame, SlackSocket, open_socket
from keepsaid.adapters.channels.slack_line import LINK_DISABLED, SlackAccount, SlackLine, SlackTrouble
from keepsaid.adapters.channels.slack_updates import SlackBot, incoming_of_command, incoming_of_event
from keepsaid.errors import StoreError
from keepsaid.ports.channel import InboundSink, Incoming
from keepsaid.text.normal import counted

_log = logging.getLogger("keepsaid.slack")
_HELD = 2
_RENEWED_MS, _EARLIER = 3_600_000, 0.1
"""How old a socket gets, less up to this share: a socket may be open and receive nothing."""

_SHORT_MS = 1_000
"""After two sockets in a row that Slack closes so soon, the next one waits."""

_ACKNOWLEDGED_WITHIN_MS = 2_500
"""Slack waits 3 s; what is stored later is not acknowledged, comes again, and is known by its key."""

_GHOST_FIRST_MS, _GHOST_LONGEST_MS = 5_000, 300_000
_ARRIVED_MAX, _TOGETHER_MAX = 256, 64
"""Events that wait to be stored, and that are stored in one commit; of more, Slack's own copies wait."""

_FULL = "too_many_websockets"


class _Arrival(NamedTuple):
    """An event that came by a socket, and when, milliseconds of the steady clock."""

    said: Incoming
    envelope: str
    socket: SlackSocket
    at_ms: float


class SlackSockets:
    """Reads what is sent to a bot by `held` sockets, until it is cancelled."""

    def __init__(self, account: SlackAccount, line: SlackLine, *, held: int = _HELD) -> None:
        self._account = account
        self._line = line
        self._held = held
        self._open: set[SlackSocket] = set()
        self._dialling = asyncio.Lock()
        self._arrived: asyncio.Queue[_Arrival] = asyncio.Queue(_ARRIVED_MAX)
        self._ghost_ms = 0
        self._has_gap = True

    async def listen(self, inbox: InboundSink) -> None:
        """Hand over what comes; errors are waited out, however often they come."""
        self._line.connecting()
        catch_up = SlackCatchUp(self._account, self._line, inbox, is_up=lambda: bool(self._open))
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(catch_up.run())
                tasks.create_task(self._store(catch_up))
                for _ in range(self._held):
                    tasks.create_task(self._hold(catch_up, tasks))
        finally:
            await asyncio.gather(*(socket.close() for socket in self._open), return_exceptions=True)
            self._open.clear()

    async def _hold(self, catch_up: SlackCatchUp, tasks: asyncio.TaskGroup) -> None:
        """Keep one socket open: the next is opened before the one that Slack closes soon is closed here."""
        backoff = LineBackoff(self._line.clock)
        former: SlackSocket | None = None
        is_short = False
        while True:
            try:
                bot = await self._account.bot()
                socket = await self._dial(catch_up)
            except SlackTrouble as error:
                if isinstance(error, SlackRefused) and error.is_bad_token:
                    self._account.forget()
                await self._line.wait_out(error, backoff, is_up=bool(self._open))
                continue
            backoff.up()
            tasks.create_task(self._read(socket, bot))
            if former is not None:
                await former.close()
            opened = self._line.clock.monotonic_ms()
            await self._line.clock.wait(socket.worn, self._lifetime_ms())
            former = await self._left(socket, backoff)
            was_short, is_short = is_short, self._line.clock.monotonic_ms() - opened < _SHORT_MS
            if was_short and is_short:
                await self._line.clock.wait(asyncio.Event(), backoff.next_ms())

    def _lifetime_ms(self) -> float:
        """How long a new socket is held: shortly while Slack counts sockets that nobody here has."""
        if self._ghost_ms:
            return self._ghost_ms
        return _RENEWED_MS * (1 - _EARLIER * random.random())  # noqa: S311 - jitter

    async def _left(self, socket: SlackSocket, backoff: LineBackoff) -> SlackSocket | None:
        """Wait before a socket that is lost, or one too many, is replaced; returns it if it is open still."""
        if socket.reason in (_FULL, LINK_DISABLED):
            await socket.close()
            self._open.discard(socket)
            await self._line.wait_out(SlackRefused(socket.reason), backoff, is_up=bool(self._open))
            return None
        if socket.is_lost and not socket.reason:
            lost = SlackUnreachable("the socket was lost", sent=True)
            await self._line.wait_out(lost, backoff, is_up=bool(self._open))
        return None if socket.is_lost else socket

    async def _dial(self, catch_up: SlackCatchUp) -> SlackSocket:
        """Open a socket, one at a time: Slack counts them. Raises what `open_socket` raises."""
        async with self._dialling:
            socket = await open_socket(self._account.api)
            self._open.add(socket)
            had_ghosts = self._ghost_ms > 0
            self._count(socket)
        if self._has_gap or had_ghosts or self._ghost_ms:
            self._has_gap = False
            catch_up.request()
        self._line.up()
        return socket

    def _count(self, socket: SlackSocket) -> None:
        """Compare how many sockets Slack counts with those open here: events go to the others as well."""
        if socket.connections <= len(self._open):
            self._ghost_ms = 0
            return
        self._ghost_ms = min(2 * self._ghost_ms or _GHOST_FIRST_MS, _GHOST_LONGEST_MS)
        _log.warning(
            "Slack counts %s of the app, %d are open here: another program reads this account, or lost ones take its "
            "events; the history is read, and a new socket opened in %d s",
            counted(socket.connections, "socket"),
            len(self._open),
            self._ghost_ms // 1_000,
        )

    async def _read(self, socket: SlackSocket, bot: SlackBot) -> None:
        """Take what comes by a socket until it is closed; an event without a message is acknowledged at once."""
        clock = self._line.clock
        try:
            async for frame in socket.frames():
                envelope = frame.get("envelope_id")
                if frame.get("type") == "disconnect":
                    socket.reason = str(frame.get("reason") or "disconnect")[:100]
                    socket.worn.set()
                elif not isinstance(envelope, str):
                    continue
                elif (said := _message_in(frame, bot)) is None:
                    await socket.acknowledge(envelope)
                else:
                    await self._arrived.put(_Arrival(said, envelope, socket, clock.monotonic_ms()))
        finally:
            # Slack may have noticed before that this socket, or the other one, is lost, and sent events to none
            self._has_gap |= not socket.is_closed
            self._open.discard(socket)
            socket.worn.set()
            await socket.close()

    async def _store(self, catch_up: SlackCatchUp) -> None:
        """Store the events of all sockets, in the order in which they were written, and then acknowledge them."""
        while True:
            arrived = [await self._arrived.get()]
            while not self._arrived.empty() and len(arrived) < _TOGETHER_MAX:
                arrived.append(self._arrived.get_nowait())
            try:
                await catch_up.put(_in_order([one.said for one in arrived]))
            except StoreError as error:
                _log.warning("events of Slack are not stored yet: %s", error.what, extra={"code": error.code})
                catch_up.request()
                continue
            now = self._line.clock.monotonic_ms()
            for one in arrived:
                if now - one.at_ms <= _ACKNOWLEDGED_WITHIN_MS:
                    await one.socket.acknowledge(one.envelope)


def _in_order(said: Sequence[Incoming]) -> Sequence[Incoming]:
    """Messages in the order in which they were written; one without a time, such as a reaction, keeps its place."""
    latest = (0, 0)
    placed = []
    for one in said:
        latest = order_of(one.provider_id) if one.provider_id else latest
        placed.append((latest, one))
    placed.sort(key=itemgetter(0))
    return [one for _, one in placed]


def _message_in(frame: Frame, bot: SlackBot) -> Incoming | None:
    """The message in an envelope; None where it holds none."""
    payload = frame.get("payload")
    if frame.get("type") == "slash_commands":
        return incoming_of_command(payload if isinstance(payload, dict) else {}, bot)
    if frame.get("type") != "events_api":
        return None
    return incoming_of_event(payload if isinstance(payload, dict) else {"type": "event_callback"}, bot)
