"""Telegram as a channel that receives: long polls, whose updates are on disk before they are confirmed to Telegram.

No offset is kept: a process begins without one, is given all that was never confirmed (Telegram keeps it for a day),
and what it had before is known by its keys (spec: channels, section 4).
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Mapping
from typing import Final

from keepsaid.adapters.channels.media import telegram as media
from keepsaid.adapters.channels.telegram_api import TelegramApi, TelegramRefused, TelegramUnreachable
from keepsaid.domain.line import LineState
from keepsaid.domain.message import UNREADABLE, IgnoredUpdate
from keepsaid.errors import InputError, StoreError
from keepsaid.ports.channel import InboundSink, Incoming, LineKeeper
from keepsaid.ports.runtime import Clock

_log = logging.getLogger("keepsaid.telegram")
_POLL_S, _POLL_LIMIT_S = 50, 60.0
_UPDATES_MAX = 100
_ALLOWED = ("message", "edited_message", "channel_post", "edited_channel_post")
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 1_000, 60_000
_OTHER_READER_MS = 5_000
_UP_MS = 60_000
"""After a line was up for so long, the next outage begins with the shortest wait."""

OTHER_READER: Final = "another program reads this account"
BAD_TOKEN: Final = "telegram.token is not accepted"  # noqa: S105 - the reason, not a token


class TelegramPoll:
    """Reads what is sent to a bot, until it is cancelled."""

    def __init__(self, api: TelegramApi, clock: Clock, account: str, line: LineKeeper) -> None:
        self._api = api
        self._clock = clock
        self._account = account
        self._line = line
        self._wait_ms = _FIRST_WAIT_MS
        self._up_since: float | None = None

    async def listen(self, inbox: InboundSink) -> None:
        """Hand over what comes; whatever goes wrong is waited out, however often."""
        offset: int | None = None
        is_known = False
        while True:
            try:
                if not is_known:
                    await self._identify()
                    is_known = True
                offset = await self._once(inbox, offset)
            except (TelegramRefused, TelegramUnreachable, StoreError) as error:
                is_known = is_known and not isinstance(error, TelegramRefused)
                await self._wait_out(error)

    async def _identify(self) -> None:
        """Make sure that the token is accepted, and that of the account."""
        self._line.show(LineState.CONNECTING)
        me = await self._api.call("getMe", {})
        number = me.get("id") if isinstance(me, dict) else None
        if str(number) != self._account:
            raise TelegramRefused(401, "the token is that of another bot", {})

    async def _once(self, inbox: InboundSink, offset: int | None) -> int | None:
        """Poll once; returns the offset that confirms what came, once it is on disk."""
        asked: dict[str, object] = {"limit": _UPDATES_MAX, "allowed_updates": list(_ALLOWED)}
        asked["timeout"] = _POLL_S if self._up_since is not None else 0
        if offset is not None:
            asked["offset"] = offset
        found = await self._api.call("getUpdates", asked, _POLL_LIMIT_S)
        self._is_up()
        updates = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
        await inbox.put_all([said for one in updates if (said := incoming_of(one, self._account)) is not None])
        numbers = [number for one in updates if isinstance(number := one.get("update_id"), int)]
        return max(numbers) + 1 if numbers else offset

    def _is_up(self) -> None:
        now = self._clock.monotonic_ms()
        if self._up_since is None:
            self._up_since = now
        if now - self._up_since >= _UP_MS:
            self._wait_ms = _FIRST_WAIT_MS
        self._line.show(LineState.UP)

    async def _wait_out(self, error: TelegramRefused | TelegramUnreachable | StoreError) -> None:
        """Wait before the next try, longer each time; a rate limit as long as Telegram says."""
        self._up_since = None
        state, reason, wait_ms = LineState.DOWN, str(error), random.uniform(0, self._wait_ms)  # noqa: S311 - jitter
        if isinstance(error, TelegramRefused):
            if error.retry_after_s is not None:
                state, wait_ms = LineState.THROTTLED, error.retry_after_s * 1_000
            elif error.code == 409:
                state, reason = LineState.REFUSED, f"{OTHER_READER} ({error.what})"
                wait_ms = max(wait_ms, _OTHER_READER_MS)
            elif error.code in (401, 404):
                state, reason, wait_ms = LineState.REFUSED, f"{BAD_TOKEN} ({error.what})", _LONGEST_WAIT_MS
        self._wait_ms = min(2 * self._wait_ms, _LONGEST_WAIT_MS)
        self._line.show(state, reason, int(wait_ms))
        await self._clock.wait(asyncio.Event(), wait_ms)


def incoming_of(update: Mapping[str, object], account: str) -> Incoming | None:
    """The message in an update; None where it holds none. One that cannot be read is kept, and answered by nobody."""
    raw = json.dumps(update, ensure_ascii=False).encode("utf-8", "surrogatepass")
    try:
        said = media.read(update)
    except InputError as error:
        _log.warning("an update of Telegram cannot be read: %s", error.what, extra={"code": error.code})
        number = f"telegram:update:{update.get('update_id')}"
        return Incoming("", "telegram", "telegram:unreadable", number, payload=raw, event=UNREADABLE, account=account)
    if isinstance(said, IgnoredUpdate):
        return None
    return Incoming(
        said.text,
        said.sender,
        said.conversation,
        said.delivery,
        said.provider_id,
        said.reply_to,
        said.topic,
        said.name,
        said.direct,
        raw,
        said.conversation_name,
        account,
        said.event,
    )


def bot_of(token: str) -> str:
    """The id of the bot in its token, whose form the settings have checked."""
    return token.partition(":")[0]
