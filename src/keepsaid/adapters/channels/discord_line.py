"""The line of a bot of Discord: who the bot is, whether the line is up, why not, and how long until the next try."""

from __future__ import annotations

import asyncio
import base64

from keepsaid.adapters.channels.backoff import LONGEST_WAIT_MS
from keepsaid.adapters.channels.discord_api import BAD_TOKEN, DiscordApi, DiscordRefused, DiscordUnreachable
from keepsaid.adapters.channels.discord_updates import DiscordBot
from keepsaid.adapters.channels.line import ChannelLine, LineTrouble, requested_ms
from keepsaid.domain.line import LineState
from keepsaid.errors import StoreError


class DiscordDown(Exception):
    """The connection to the gateway ended; dial again."""


class DiscordReconnect(DiscordDown):
    """The gateway asks to connect again, as it does from time to time."""


class DiscordSessionOver(DiscordDown):
    """The gateway does not resume the session; begin a new one, and read what was missed."""


class DiscordShut(Exception):
    """The gateway does not let the bot in until somebody changes something; `wait_ms` until it is tried again."""

    def __init__(self, what: str, wait_ms: float = LONGEST_WAIT_MS) -> None:
        super().__init__(what)
        self.wait_ms = wait_ms


DiscordTrouble = (DiscordRefused, DiscordUnreachable, DiscordDown, DiscordShut, StoreError)
"""What a line waits out, however often it comes."""


class DiscordAccount:
    """Who the bot of a token is; asked once, and again after Discord refused something."""

    def __init__(self, api: DiscordApi, account: str) -> None:
        self.api = api
        self.id = account
        self._bot: DiscordBot | None = None
        self._asking = asyncio.Lock()

    async def bot(self) -> DiscordBot:
        """The bot; raises DiscordRefused, also for the token of another bot, and DiscordUnreachable."""
        async with self._asking:
            if self._bot is None:
                me = await self.api.get("/users/@me")
                if not isinstance(me, dict) or str(me.get("id")) != self.id:
                    raise DiscordRefused(401, "the token is that of another bot")
                name = me.get("username")
                self._bot = DiscordBot(self.id, name if isinstance(name, str) else "")
            return self._bot

    def forget(self) -> None:
        """Ask again who the bot is: the token may have been reset."""
        self._bot = None


class DiscordLine(ChannelLine):
    """The line of a bot: it is shown up once, and not with each dispatch."""

    def up(self, note: str = "") -> None:
        """Show that messages come in."""
        if not self.is_up:
            super().up(note)

    def judge(self, error: Exception) -> LineTrouble:
        """What an error makes of the line; a rate limit is waited out as long as Discord says."""
        if isinstance(error, DiscordReconnect):
            return LineTrouble(LineState.CONNECTING, str(error))
        if isinstance(error, DiscordShut):
            return LineTrouble(LineState.REFUSED, str(error), error.wait_ms)
        if isinstance(error, DiscordRefused):
            if error.retry_after_s is not None:
                return LineTrouble(LineState.THROTTLED, str(error), least_ms=requested_ms(error.retry_after_s))
            if error.status == 401:
                return LineTrouble(LineState.REFUSED, f"{BAD_TOKEN} ({error.what})", LONGEST_WAIT_MS)
        return super().judge(error)


def bot_of(token: str) -> str:
    """The id of the bot in its token, whose first segment is the id in Base64. Raises ValueError for another form."""
    segment = token.partition(".")[0]
    try:
        number = base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4)).decode("ascii")
    except ValueError:
        number = ""
    if not number.isdecimal():
        raise ValueError("the token has not the form of a bot of Discord")
    return number
