"""The dispatches of one connection to Discord's gateway, put on disk in order, and the bot's place in its session."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Mapping, Sequence

from keepsaid.adapters.channels.discord_catchup import CatchUp
from keepsaid.adapters.channels.discord_line import DiscordDown, DiscordLine, DiscordReconnect, DiscordSessionOver
from keepsaid.adapters.channels.discord_progress import GatewayProgress, GatewaySession
from keepsaid.adapters.channels.discord_socket import (
    DISPATCH,
    INVALID,
    MALFORMED,
    RECONNECT,
    GatewayFrame,
    GatewaySocket,
)
from keepsaid.adapters.channels.discord_updates import CREATED, snowflake_at, unreadable_dispatch
from keepsaid.ports.channel import InboundSink, Incoming

_GUILDS_WITHIN_MS = 10_000
"""How long a new session waits for the servers of the bot before it reads missed messages."""

_IDLE_MS = 60_000
_KEPT_BYTES_MAX = 100_000
_PAUSE_MS = (1_000, 5_000)
"""How long Discord asks to wait after it has refused a session."""

_SKEW_MS = 60_000
"""By how much the clock of Discord may be ahead of the one here."""


class SessionReader:
    """Takes the frames of one connection. Until what was missed has been read, dispatches are held back."""

    def __init__(
        self,
        inbox: InboundSink,
        progress: GatewayProgress,
        catch_up: CatchUp,
        socket: GatewaySocket,
        line: DiscordLine,
    ) -> None:
        self._inbox = inbox
        self._progress = progress
        self._catch_up = catch_up
        self._socket = socket
        self._line = line
        self._clock = line.clock
        self._held: list[GatewayFrame] = []
        self._expected: set[str] = set()
        self._catch_up_at: float | None = None

    async def run(self) -> None:
        """Read until the connection ends; raises why it did, or why messages cannot be put on disk."""
        while True:
            for frame in await self._socket.take(self._patience_ms()):
                if frame.op in (RECONNECT, INVALID, MALFORMED):
                    await self._flush()
                    await self._stop_for(frame)
                elif frame.op == DISPATCH:
                    self._see(frame)
                    self._held.append(frame)
            await self._flush()

    def _patience_ms(self) -> float:
        if self._catch_up_at is None:
            return _IDLE_MS
        return max(1.0, self._catch_up_at - self._clock.monotonic_ms())

    def _see(self, frame: GatewayFrame) -> None:
        """Take what a dispatch says of the session and of places."""
        told = frame.told if isinstance(frame.told, dict) else {}
        if frame.kind == "READY":
            self._begin_session(told, frame.seq)
        elif frame.kind == "RESUMED":
            self._come_up(0)
        else:
            self._catch_up.places.take(frame.kind, told)
            if frame.kind in ("GUILD_CREATE", "GUILD_DELETE"):
                self._expected.discard(str(told.get("id")))

    def _begin_session(self, told: Mapping[str, object], seq: int) -> None:
        number, url, guilds = (told.get(name) for name in ("session_id", "resume_gateway_url", "guilds"))
        if not isinstance(number, str) or not isinstance(url, str):
            raise DiscordDown("the gateway does not name the session")
        self._catch_up.places.begin_session()
        self._progress.begin(GatewaySession(number, url), seq, snowflake_at(self._clock.now_ms()))
        found = (one.get("id") for one in (guilds if isinstance(guilds, list) else ()) if isinstance(one, dict))
        self._expected = {one for one in found if isinstance(one, str)}
        self._come_up(_GUILDS_WITHIN_MS)

    def _come_up(self, within_ms: float) -> None:
        """Messages come in from now on; what was missed is read when the servers are known, or after `within_ms`."""
        self._line.up()
        if self._progress.is_behind:
            self._catch_up_at = self._clock.monotonic_ms() + within_ms

    async def _flush(self) -> None:
        """Put the messages of the dispatches that are held on disk, in one call; what was missed before them."""
        if self._progress.is_behind:
            is_late = self._catch_up_at is not None and self._clock.monotonic_ms() >= self._catch_up_at
            if self._catch_up_at is None or (self._expected and not is_late):
                return
            await self._read_missed()
            self._catch_up_at = None
        if not self._held:
            return
        incoming: list[Incoming] = []
        after: dict[str, int] = {}
        for frame in self._held:
            told: Mapping[str, object] = frame.told if isinstance(frame.told, dict) else {}
            if (said := await self._catch_up.reader.read(frame.kind, told)) is not None:
                incoming.append(said)
                if frame.kind == CREATED:
                    _note_newest(after, told)
        await self._put(incoming, max(frame.seq for frame in self._held), after)
        self._held = []

    async def _read_missed(self) -> None:
        """Put what was missed on disk, and only with it the session that follows."""
        missed = await self._catch_up.read(self._progress, self._clock.now_ms())
        seq, after = self._progress.seq, self._until_now(missed.after)
        await self._inbox.put_all(missed.incoming, self._progress.cursors(seq, after, caught_up=True))
        self._progress.is_behind = False
        self._progress.wrote(seq, after)

    async def _put(self, incoming: Sequence[Incoming], seq: int, after: Mapping[str, int]) -> None:
        """Put messages on disk with the number of the last dispatch; without messages, that can wait."""
        seq, after = max(seq, self._progress.seq), self._until_now(after)
        if incoming or self._progress.needs_writing(seq):
            await self._inbox.put_all(incoming, self._progress.cursors(seq, after))
            self._progress.wrote(seq, after)
        else:
            self._progress.passed(seq)
        self._socket.seq = self._progress.seq

    def _until_now(self, after: Mapping[str, int]) -> Mapping[str, int]:
        """The newest messages by channel; none is in the future, or what follows with the right time is never read."""
        latest = snowflake_at(self._clock.now_ms() + _SKEW_MS)
        return {channel: min(number, latest) for channel, number in after.items()}

    async def _stop_for(self, frame: GatewayFrame) -> None:
        """End the connection as a frame asks for; a frame that stays malformed is kept, and ends nothing."""
        if frame.op == RECONNECT:
            raise DiscordReconnect("the gateway asks to connect again")
        if frame.op == INVALID:
            await self._clock.wait(asyncio.Event(), random.uniform(*_PAUSE_MS))  # noqa: S311 - jitter
            if frame.told is True:
                raise DiscordDown("the gateway asks to resume the session")
            raise DiscordSessionOver("the gateway does not resume the session")
        if not self._progress.is_poison():
            raise DiscordDown("the gateway sent a frame that cannot be read")
        session = self._progress.session.id if self._progress.session is not None else ""
        digest = hashlib.sha256(frame.raw).hexdigest()[:16]
        key = f"discord:frame:{session}:{self._progress.seq}:{digest}"
        account = self._catch_up.reader.account
        await self._put([unreadable_dispatch(frame.raw[:_KEPT_BYTES_MAX], key, account)], self._progress.seq, {})


def _note_newest(after: dict[str, int], told: Mapping[str, object]) -> None:
    """Note a message as the newest of its channel, unless a newer one is."""
    channel, number = told.get("channel_id"), told.get("id")
    if isinstance(channel, str) and channel.isdecimal() and isinstance(number, str) and number.isdecimal():
        after[channel] = max(int(number), after.get(channel, 0))
