"""Telegram as a channel that receives: long polls, whose updates are on disk before they are confirmed to Telegram.

No offset is kept: a process begins without one, is given all that was never confirmed (Telegram keeps it for a day),
and what it had before is known by its keys (spec: channels, section 4).
"""

from __future__ import annotations

from urllib.parse import urlsplit

from keepsaid.adapters.channels.telegram_api import TelegramRefused
from keepsaid.adapters.channels.telegram_line import ALLOWED, TelegramAccount, TelegramLine, TelegramTrouble
from keepsaid.adapters.channels.telegram_updates import Bot, incoming_of
from keepsaid.ports.channel import InboundSink

_POLL_S, _POLL_LIMIT_S = 50, 60.0
_UPDATES_MAX = 100


class TelegramPoll:
    """Reads what is sent to a bot, until it is cancelled. With `takes_over` a webhook of the bot is removed."""

    def __init__(self, account: TelegramAccount, line: TelegramLine, *, takes_over: bool = False) -> None:
        self._account = account
        self._line = line
        self._takes_over = takes_over

    async def listen(self, inbox: InboundSink) -> None:
        """Hand over what comes; whatever goes wrong is waited out, however often."""
        offset: int | None = None
        is_known = False
        while True:
            try:
                if not is_known:
                    self._line.connecting()
                    await self._account.bot()
                    await self._account.show_menu()
                    is_known = True
                offset = await self._once(inbox, offset, await self._account.bot())
            except TelegramTrouble as error:
                if isinstance(error, TelegramRefused):
                    is_known = False
                    self._account.forget()
                await self._line.wait_out(error)

    async def _once(self, inbox: InboundSink, offset: int | None, bot: Bot) -> int | None:
        """Poll once; returns the offset that confirms what came, once it is on disk."""
        asked: dict[str, object] = {"limit": _UPDATES_MAX, "allowed_updates": list(ALLOWED)}
        asked["timeout"] = _POLL_S if self._line.is_up else 0
        if offset is not None:
            asked["offset"] = offset
        try:
            found = await self._account.api.call("getUpdates", asked, _POLL_LIMIT_S)
        except TelegramRefused as error:
            if error.code == 409:
                await self._look_for_hook()
            raise
        self._line.up()
        updates = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        await self._account.heed(updates)
        read = (incoming_of(one, bot, self._account.first_of) for one in updates)
        if said := [one for one in read if one is not None]:
            await inbox.put_all(said)
        numbers = [number for one in updates if isinstance(number := one.get("update_id"), int)]
        return max(numbers) + 1 if numbers else offset

    async def _look_for_hook(self) -> None:
        """Say which webhook takes the messages; remove it if that is wanted. What waits for it comes by polls then."""
        url = (await self._account.hook()).get("url")
        if not isinstance(url, str) or not url:
            return
        if self._takes_over:
            await self._account.api.call("deleteWebhook", {"drop_pending_updates": False})
            return
        host = urlsplit(url).hostname or "another server"
        raise TelegramRefused(409, f"a webhook sends its messages to {host}; telegram.takeover ends that", {})
