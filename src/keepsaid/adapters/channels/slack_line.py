"""The line of a bot of Slack: who the bot is, whether messages come in, why not, and how long until the next try."""

from __future__ import annotations

import asyncio
from typing import Final

from keepsaid.adapters.channels.backoff import LONGEST_WAIT_MS, LineBackoff
from keepsaid.adapters.channels.line import requested_ms
from keepsaid.adapters.channels.slack_api import SlackApi, SlackRefused, SlackUnreachable
from keepsaid.adapters.channels.slack_updates import SlackBot
from keepsaid.domain.line import LineState
from keepsaid.errors import ChannelError, StoreError
from keepsaid.ports.channel import LineKeeper
from keepsaid.ports.runtime import Clock

BAD_TOKEN: Final = "KS-CHN: slack.bot_token or slack.app_token is not accepted"  # noqa: S105 - the reason, not a token
LINK_DISABLED: Final = "link_disabled"

_OTHER_BOT = "the tokens are those of another bot"
_LASTING = frozenset(("app_not_found", LINK_DISABLED, "slack_app_disabled"))
"""Errors of Socket Mode that last until somebody changes the app."""

SlackTrouble = (SlackRefused, SlackUnreachable, StoreError, ChannelError)
"""Errors that a line waits out, however often they come."""


class SlackAccount:
    """The bot of a token; looked up once, and again after Slack refused a token.

    `id` is `T1:U1`; where that is not known, it is "" until the bot is looked up.
    """

    def __init__(self, api: SlackApi, account: str = "") -> None:
        self.api = api
        self.id = account
        self._bot: SlackBot | None = None
        self._asking = asyncio.Lock()

    async def bot(self) -> SlackBot:
        """The bot; raises SlackRefused, also for the token of another one, and SlackUnreachable."""
        async with self._asking:
            if self._bot is None:
                bot = await bot_of(self.api)
                if bot.account != (self.id or bot.account):
                    raise SlackRefused(_OTHER_BOT)
                self.id, self._bot = bot.account, bot
            return self._bot

    def forget(self) -> None:
        """Look up again who the bot is: the token may have been revoked."""
        self._bot = None


class SlackLine:
    """Shows the state of the line, and waits before the next try."""

    def __init__(self, clock: Clock, keeper: LineKeeper) -> None:
        self.clock = clock
        self._keeper = keeper

    def connecting(self) -> None:
        """No socket is open yet."""
        self._keeper.show(LineState.CONNECTING)

    def up(self) -> None:
        """Messages come in."""
        self._keeper.show(LineState.UP)

    async def wait_out(self, error: Exception, backoff: LineBackoff, *, is_up: bool = False) -> None:
        """Wait before the next try, a rate limit as long as Slack says; the error is shown unless the line `is_up`."""
        state, reason, wait_ms = LineState.DOWN, str(error), backoff.next_ms()
        if isinstance(error, SlackRefused):
            if error.is_throttled:
                state, wait_ms = LineState.THROTTLED, max(wait_ms, requested_ms(error.retry_after_s or 1))
            elif error.is_bad_token or error.error == _OTHER_BOT:
                state, reason, wait_ms = LineState.REFUSED, f"{BAD_TOKEN} ({error})", LONGEST_WAIT_MS
            elif error.error in _LASTING:
                what = f"KS-CHN: Socket Mode of the app is off, or the app is disabled ({error})"
                state, reason, wait_ms = LineState.REFUSED, what, LONGEST_WAIT_MS
        elif isinstance(error, ChannelError):
            state, reason, wait_ms = LineState.REFUSED, f"{error.code}: {error.what}; {error.hint}", LONGEST_WAIT_MS
        if not is_up or state is LineState.REFUSED:
            self._keeper.show(state, reason, int(wait_ms))
        await self.clock.wait(asyncio.Event(), wait_ms)


async def bot_of(api: SlackApi) -> SlackBot:
    """The bot of the token; raises SlackRefused and SlackUnreachable."""
    found = await api.call("auth.test", {})
    team, user, name = (one if isinstance(one := found.get(key), str) else "" for key in ("team_id", "user_id", "user"))
    if not team or not user:
        raise SlackUnreachable("auth.test names no team and no user", sent=True)
    return SlackBot(team, user, name)
