"""The line of an account of Nostr: it is up while one of its relays is; its reason names those that are not."""

from __future__ import annotations

import asyncio

from keepsaid.adapters.channels.backoff import LONGEST_WAIT_MS, LineBackoff
from keepsaid.adapters.channels.nostr.socket import NostrDown, NostrRefused
from keepsaid.domain.line import LineState
from keepsaid.errors import ChannelError, StoreError
from keepsaid.ports.channel import LineKeeper
from keepsaid.ports.runtime import Clock

NostrTrouble = (NostrDown, NostrRefused, StoreError, ChannelError)
"""Errors that a line waits out, however often they come."""

_THROTTLED_MS = 30_000
_LASTING = ("auth-required", "restricted", "blocked", "pow", "invalid", "unsupported")
"""Prefixes of reasons that last until somebody changes something (NIP-01, NIP-42)."""

_ORDER = (LineState.UP, LineState.CONNECTING, LineState.THROTTLED, LineState.DOWN, LineState.REFUSED)
"""The state of the line is the first of these that one of its relays has."""


class NostrLine:
    """Joins the states of the relays, and waits before the next try."""

    def __init__(self, clock: Clock, keeper: LineKeeper) -> None:
        self.clock = clock
        self._keeper = keeper
        self._relays: dict[str, tuple[LineState, str]] = {}
        self._shown: tuple[LineState, str] | None = None

    def connecting(self, url: str) -> None:
        """A relay is dialled; one that was down, or refused, stays so until it answers."""
        if url not in self._relays:
            self._set(url, LineState.CONNECTING, "")

    def up(self, url: str) -> None:
        """Messages come in from a relay."""
        self._set(url, LineState.UP, "")

    async def wait_out(self, url: str, error: Exception, backoff: LineBackoff) -> None:
        """Show what went wrong at a relay, and wait before the next try, up to 60 s."""
        state, wait_ms = LineState.DOWN, backoff.next_ms()
        reason = f"{error.code}: {error.what}; {error.hint}" if isinstance(error, ChannelError) else str(error)
        if isinstance(error, ChannelError) or (isinstance(error, NostrRefused) and error.prefix in _LASTING):
            state, wait_ms = LineState.REFUSED, LONGEST_WAIT_MS
            reason = reason if isinstance(error, ChannelError) else f"KS-CHN: {url} refuses the account: {reason}"
        elif isinstance(error, NostrRefused):
            state = LineState.THROTTLED if error.prefix == "rate-limited" else LineState.DOWN
            reason = f"{url}: {reason}"
            wait_ms = max(wait_ms, _THROTTLED_MS) if state is LineState.THROTTLED else wait_ms
        self._set(url, state, reason, int(wait_ms))
        await self.clock.wait(asyncio.Event(), wait_ms)

    def _set(self, url: str, state: LineState, reason: str, next_try_ms: int = 0) -> None:
        self._relays[url] = (state, reason)
        found = {one for one, _ in self._relays.values()}
        whole = next(one for one in _ORDER if one in found)
        reasons = "; ".join(why for one, why in self._relays.values() if why)
        if (whole, reasons) != self._shown or whole in (LineState.DOWN, LineState.THROTTLED):
            self._shown = (whole, reasons)
            self._keeper.show(whole, reasons, 0 if whole is LineState.UP else next_try_ms)
