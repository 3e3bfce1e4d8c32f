"""The line of a mailbox: whether mail comes in, why it does not, and how long until the next try."""

from __future__ import annotations

import asyncio
from typing import Final

from keepsaid.adapters.channels.backoff import LONGEST_WAIT_MS, LineBackoff
from keepsaid.adapters.channels.email.imap import ImapLost, ImapRefused
from keepsaid.domain.line import LineState
from keepsaid.errors import ChannelError, StoreError
from keepsaid.ports.channel import LineKeeper
from keepsaid.ports.runtime import Clock

BAD_LOGIN: Final = "KS-CHN: email.user or email.password is not accepted"
NO_FOLDER: Final = "KS-CHN: email.folder cannot be opened"

EmailTrouble = (ImapLost, ImapRefused, ChannelError, StoreError)
"""Errors that a line waits out, however often they come."""


class EmailLine:
    """Shows the state of the line, and waits before the next try: longer each time, from 1 to 60 seconds."""

    def __init__(self, clock: Clock, keeper: LineKeeper) -> None:
        self.clock = clock
        self._keeper = keeper
        self._backoff = LineBackoff(clock)
        self._is_shown_up = False

    def connecting(self) -> None:
        """No folder is open yet."""
        if not self._is_shown_up:
            self._keeper.show(LineState.CONNECTING)

    def up(self) -> None:
        """Mail comes in."""
        self._backoff.up()
        if not self._is_shown_up:
            self._is_shown_up = True
            self._keeper.show(LineState.UP)

    async def wait_out(self, error: Exception) -> None:
        """Show what went wrong, and wait before the next try."""
        state, reason, wait_ms = LineState.DOWN, str(error), self._backoff.next_ms()
        if isinstance(error, ImapRefused) and error.is_login:
            state, reason, wait_ms = LineState.REFUSED, f"{BAD_LOGIN} ({error})", LONGEST_WAIT_MS
        elif isinstance(error, ImapRefused) and error.is_folder:
            state, reason, wait_ms = LineState.REFUSED, f"{NO_FOLDER} ({error})", LONGEST_WAIT_MS
        elif isinstance(error, ChannelError):
            state, reason, wait_ms = LineState.REFUSED, f"{error.code}: {error.what}; {error.hint}", LONGEST_WAIT_MS
        self._is_shown_up = False
        self._keeper.show(state, reason, int(wait_ms))
        await self.clock.wait(asyncio.Event(), wait_ms)
