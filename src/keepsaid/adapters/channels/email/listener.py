"""E-mail as a channel that receives: one folder is followed by IDLE, and looked at in between (spec: channels, 8)."""

from __future__ import annotations

import asyncio

from keepsaid.adapters.channels.email.imap import FolderState, ImapFolder
from keepsaid.adapters.channels.email.line import EmailLine, EmailTrouble
from keepsaid.adapters.channels.email.mailbox import MailboxReader
from keepsaid.ports.channel import InboundSink

_POLL_MS = 60_000.0
_IDLES = 10
"""The number of minutes of IDLE after which the folder is searched, whatever the server said."""


class EmailListener:
    """Stores the mails that come into a folder, until it is cancelled. `line` shows whether it does."""

    def __init__(self, folder: ImapFolder, mailbox: MailboxReader, line: EmailLine) -> None:
        self._folder = folder
        self._mailbox = mailbox
        self._line = line

    async def listen(self, inbox: InboundSink) -> None:
        """Hand over what comes; whatever goes wrong is waited out, however often."""
        try:
            while True:
                try:
                    self._line.connecting()
                    await self._follow(inbox)
                except EmailTrouble as error:
                    await self._folder.close()
                    await self._line.wait_out(error)
        finally:
            await self._folder.close()

    async def _follow(self, inbox: InboundSink) -> None:
        """Read what is new whenever there may be something; never returns."""
        state = await self._folder.open()
        await self._mailbox.begin(self._folder, state, inbox)
        while True:
            await self._mailbox.read_new(self._folder, inbox)
            self._line.up()
            await self._wait(state)

    async def _wait(self, state: FolderState) -> None:
        """Wait until something may be new: the server says so, or a minute has passed without IDLE, or ten with it.

        IDLE is ended and begun again each minute: an answer to that shows that the connection still works.
        """
        news = asyncio.Event()
        if not state.idles:
            await self._line.clock.wait(news, _POLL_MS)
            return
        for _ in range(_IDLES):
            await self._folder.idle(news.set)
            await self._line.clock.wait(news, _POLL_MS)
            if await self._folder.idle_done():
                return
