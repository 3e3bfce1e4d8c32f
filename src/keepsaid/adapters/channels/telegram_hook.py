"""Telegram as a channel that is called: Telegram posts each update, and posts it again until it is on disk here.

Telegram sends a secret with each request, which is made from the token: whoever does not know the one does not know the
other. One request at a time (`max_connections`) keeps the order.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import urlsplit

from keepsaid.adapters.channels.telegram_api import TelegramRefused, TelegramUnreachable
from keepsaid.adapters.channels.telegram_line import (
    ALLOWED,
    OTHER_READER,
    TelegramAccount,
    TelegramLine,
    TelegramTrouble,
)
from keepsaid.adapters.channels.telegram_updates import Bot, incoming_of, unreadable
from keepsaid.errors import ChannelError, Forged
from keepsaid.ports.channel import InboundSink, Incoming
from keepsaid.text import json_reader

_SECRET_HEADER = "x-telegram-bot-api-secret-token"  # noqa: S105 - the name of the header
_MADE_FOR = b"keepsaid: the webhook of this bot"
_MOVING = b'"migrate_'
_LOOK_MS = 300_000
"""How often it is asked whether Telegram reaches the hook."""

_SOON_MS = 30_000
"""How soon it is asked again while Telegram does not."""


def secret_of(token: str) -> str:
    """The secret of the webhook of a bot; the token cannot be found by it."""
    return hmac.digest(token.encode(), _MADE_FOR, "sha256").hex()


class TelegramHook:
    """Reads the updates that Telegram posts."""

    name = "telegram"

    def __init__(self, account: TelegramAccount, secret: str) -> None:
        self._account = account
        self._secret = secret
        self._bot: Bot | None = None

    async def prepare(self, headers: Mapping[str, str], body: bytes) -> None:
        """Prove that Telegram calls, and learn who the bot is: mentions name it."""
        self._prove(headers)
        try:
            self._bot = await self._account.bot()
            if _MOVING in body and (update := _update_in(body)) is not None:
                await self._account.heed((update,))
        except (TelegramRefused, TelegramUnreachable) as error:
            raise ChannelError("Telegram does not say who its bot is", hint="see the line: keepsaid status") from error

    def read(self, headers: Mapping[str, str], body: bytes) -> Incoming | None:
        """The message in an update; None where it holds none."""
        self._prove(headers)
        assert self._bot is not None, "it was prepared"
        if (update := _update_in(body)) is None:
            return unreadable(body, f"telegram:body:{sha256(body).hexdigest()}", self._bot)
        return incoming_of(update, self._bot, self._account.first_of)

    def _prove(self, headers: Mapping[str, str]) -> None:
        given = headers.get(_SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self._secret.encode()):
            raise Forged("The request has not the secret of the bot", hint="restart keepsaid serve: it tells Telegram")


def _update_in(body: bytes) -> Mapping[str, object] | None:
    try:
        update = json_reader.read_json(body)
    except json_reader.Unreadable:
        return None
    return update if isinstance(update, dict) else None


class TelegramCalls:
    """Has Telegram post the messages of a bot to a URL, and looks whether it can, until it is cancelled.

    A webhook of another server is left alone, unless it `takes_over`.
    """

    def __init__(
        self, account: TelegramAccount, line: TelegramLine, url: str, secret: str, *, takes_over: bool = False
    ) -> None:
        self._account = account
        self._line = line
        self._url = url
        self._secret = secret
        self._takes_over = takes_over

    async def listen(self, _inbox: InboundSink) -> None:
        """Keep the webhook; the messages come in by it."""
        is_set = False
        while True:
            try:
                if not is_set:
                    self._line.connecting()
                    await self._account.bot()
                    await self._account.show_menu()
                wait_ms, is_set = await self._look(is_set=is_set)
            except TelegramTrouble as error:
                is_set = False
                if isinstance(error, TelegramRefused):
                    self._account.forget()
                await self._line.wait_out(error)
            else:
                await self._line.clock.wait(asyncio.Event(), wait_ms)

    async def _look(self, *, is_set: bool) -> tuple[int, bool]:
        """Look at the webhook once, and set it if it is not ours; returns the wait, and whether it is."""
        hook = await self._account.hook()
        url = hook.get("url")
        if isinstance(url, str) and url not in ("", self._url) and not self._takes_over:
            host = urlsplit(url).hostname or "another server"
            self._line.refused(f"{OTHER_READER} (its webhook is at {host}; telegram.takeover ends that)", _SOON_MS)
            return _SOON_MS, False
        if url != self._url or not is_set:
            await self._set()
            self._line.up()
            return _SOON_MS, True
        failed, waiting = hook.get("last_error_message"), hook.get("pending_update_count")
        if isinstance(failed, str) and failed and isinstance(waiting, int) and waiting > 0:
            self._line.down(f"Telegram cannot post to telegram.webhook_url: {failed}", _SOON_MS)
            return _SOON_MS, True
        self._line.up()
        return _LOOK_MS, True

    async def _set(self) -> None:
        """What waits at Telegram comes by the hook then; nothing is thrown away."""
        wanted: dict[str, object] = {"url": self._url, "secret_token": self._secret, "max_connections": 1}
        wanted["allowed_updates"] = list(ALLOWED)
        await self._account.api.call("setWebhook", wanted)
