"""The line of a bot of Telegram: whether it is up, why it is not, and how long until the next try."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from keepsaid.adapters.channels.backoff import LONGEST_WAIT_MS
from keepsaid.adapters.channels.line import ChannelLine, LineTrouble, requested_ms
from keepsaid.adapters.channels.telegram_api import TelegramApi, TelegramRefused, TelegramUnreachable
from keepsaid.adapters.channels.telegram_updates import Bot
from keepsaid.domain.command import COMMANDS
from keepsaid.domain.line import Cursor, LineState
from keepsaid.errors import StoreError
from keepsaid.ports.channel import InboundSink
from keepsaid.text.normal import cut

_MENU_CHARS = 256
_OTHER_READER_MS = 5_000
OTHER_READER: Final = "another program reads this account"
BAD_TOKEN: Final = "telegram.token is not accepted"  # noqa: S105 - the reason, not a token

ALLOWED: Final = ("message", "edited_message", "channel_post", "edited_channel_post", "message_reaction")
"""The updates that the bot asks for."""

TelegramTrouble = (TelegramRefused, TelegramUnreachable, StoreError)
"""What a line waits out, however often it comes."""


class TelegramAccount:
    """Who the bot of a token is; asked once, and again after Telegram refused something.

    It also knows which groups became supergroups, under new ids: `moved` maps the first id of each to the present one.
    """

    def __init__(self, api: TelegramApi, account: str, inbox: InboundSink) -> None:
        self.api = api
        self.id = account
        self.moved: dict[int, int] = {}
        self._inbox = inbox
        self._bot: Bot | None = None
        self._asking = asyncio.Lock()

    async def bot(self) -> Bot:
        """The bot; raises TelegramRefused, also for the token of another one, TelegramUnreachable and StoreError."""
        async with self._asking:
            if self._bot is None:
                self.moved |= _moves_in(await self._inbox.cursors(self.id))
                me = await self.api.call("getMe", {})
                if str(me.get("id") if isinstance(me, dict) else None) != self.id:
                    raise TelegramRefused(401, "the token is that of another bot", {})
                name = me.get("username") if isinstance(me, dict) else None
                self._bot = Bot(self.id, name if isinstance(name, str) else "")
            return self._bot

    async def heed(self, updates: Iterable[Mapping[str, object]]) -> None:
        """Keep which groups became which by these updates. Raises StoreError."""
        for update in updates:
            for message in update.values():
                if isinstance(message, dict) and (move := _move_in(message)) is not None:
                    await self.follow(*move)

    async def follow(self, chat: int, became: int) -> None:
        """Keep that a group is another chat now: its conversation goes on. Raises StoreError."""
        first = self.first_of(chat)
        if self.moved.get(first) != became and first != became:
            await self._inbox.put_all((), (Cursor(self.id, f"{_MOVED}{first}", str(became)),))
            self.moved[first] = became

    def first_of(self, chat: int) -> int:
        """The id that a group had first; that of its conversation."""
        return next((first for first, now in self.moved.items() if now == chat), chat)

    async def hook(self) -> dict[str, object]:
        """Where Telegram sends the messages of the bot, as it tells. Raises as `bot`."""
        found = await self.api.call("getWebhookInfo", {})
        return found if isinstance(found, dict) else {}

    async def show_menu(self) -> None:
        """Have the app list the commands, unless it does. Raises as `bot`."""
        menu = [{"command": name, "description": cut(what, _MENU_CHARS)} for name, what in COMMANDS.items()]
        if await self.api.call("getMyCommands", {}) != menu:
            await self.api.call("setMyCommands", {"commands": menu})

    def forget(self) -> None:
        """Ask again who the bot is: the token may have been revoked."""
        self._bot = None


class TelegramLine(ChannelLine):
    """The line of a bot: a token that is not accepted and another reader are waited out, as long as it takes."""

    def refused(self, reason: str, wait_ms: int) -> None:
        """Nothing comes, and somebody has to do something about it."""
        self._keeper.show(LineState.REFUSED, reason, wait_ms)

    def down(self, reason: str, wait_ms: int) -> None:
        """Nothing comes at the moment."""
        self._keeper.show(LineState.DOWN, reason, wait_ms)

    def judge(self, error: Exception) -> LineTrouble:
        """What an error makes of the line; a rate limit is waited out as long as Telegram says."""
        if isinstance(error, TelegramRefused):
            if error.retry_after_s is not None:
                return LineTrouble(LineState.THROTTLED, str(error), least_ms=requested_ms(error.retry_after_s))
            if error.code == 409:
                what = f"{OTHER_READER} ({error.what})"
                return LineTrouble(LineState.REFUSED, what, least_ms=_OTHER_READER_MS)
            if error.code in (401, 404):
                return LineTrouble(LineState.REFUSED, f"{BAD_TOKEN} ({error.what})", LONGEST_WAIT_MS)
        return super().judge(error)


_MOVED = "moved:"
"""How a cursor's name begins that says what a group became; its first id follows."""


def _moves_in(cursors: Mapping[str, str]) -> dict[int, int]:
    return {int(name.removeprefix(_MOVED)): int(now) for name, now in cursors.items() if name.startswith(_MOVED)}


def _move_in(message: Mapping[str, object]) -> tuple[int, int] | None:
    """The chat that a message says has become another, and which; None where it says nothing of it."""
    place = message.get("chat")
    here = place.get("id") if isinstance(place, dict) else None
    became, was = message.get("migrate_to_chat_id"), message.get("migrate_from_chat_id")
    if isinstance(here, int) and isinstance(became, int):
        return here, became
    return (was, here) if isinstance(here, int) and isinstance(was, int) else None


def bot_of(token: str) -> str:
    """The id of the bot in its token, whose form the settings have checked."""
    return token.partition(":")[0]
