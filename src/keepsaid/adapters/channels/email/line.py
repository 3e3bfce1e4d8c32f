"""The line of a mailbox: whether mail comes in, why it does not, and how long until the next try."""

from __future__ import annotations

from typing import Final

from keepsaid.adapters.channels.backoff import LONGEST_WAIT_MS
from keepsaid.adapters.channels.email.imap import ImapLost, ImapRefused
from keepsaid.adapters.channels.line import ChannelLine, LineTrouble
from keepsaid.domain.line import LineState
from keepsaid.errors import ChannelError, StoreError
from keepsaid.ports.channel import LineKeeper
from keepsaid.ports.runtime import Clock

BAD_LOGIN: Final = "KS-CHN: email.user or email.password is not accepted"
NO_FOLDER: Final = "KS-CHN: email.folder cannot be opened"

EmailTrouble = (ImapLost, ImapRefused, ChannelError, StoreError)
"""Errors that a line waits out, however often they come."""


class EmailLine(ChannelLine):
    """The line of a mailbox: it is shown up once, and stays so while its folder is opened again."""

    def __init__(self, clock: Clock, keeper: LineKeeper) -> None:
        super().__init__(clock, keeper)
        self._is_shown_up = False

    def connecting(self) -> None:
        """Show that no folder is open yet."""
        if not self._is_shown_up:
            super().connecting()

    def up(self, note: str = "") -> None:
        """Show that mail comes in."""
        if self._is_shown_up:
            self._backoff.up()
        else:
            self._is_shown_up = True
            super().up(note)

    def judge(self, error: Exception) -> LineTrouble:
        """What an error makes of the line."""
        self._is_shown_up = False
        if isinstance(error, ImapRefused) and error.is_login:
            return LineTrouble(LineState.REFUSED, f"{BAD_LOGIN} ({error})", LONGEST_WAIT_MS)
        if isinstance(error, ImapRefused) and error.is_folder:
            return LineTrouble(LineState.REFUSED, f"{NO_FOLDER} ({error})", LONGEST_WAIT_MS)
        if isinstance(error, ChannelError):
            return LineTrouble(LineState.REFUSED, f"{error.code}: {error.what}; {error.hint}", LONGEST_WAIT_MS)
        return super().judge(error)
