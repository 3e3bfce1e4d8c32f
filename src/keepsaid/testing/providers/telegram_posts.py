"""Telegram's webhook: posts the updates that wait to a URL, one at a time, until each was answered by 2xx."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import httpx2

from keepsaid.testing.providers.mischief import Mischief

_AGAIN_S, _WITHIN_S = 0.05, 60.0


class HookPoster:
    """Posts what `waiting` has to the URL that the bot set, with its secret; `act` says what goes wrong.

    `addresses` says where a URL is really reached. What was answered by 2xx is taken from `waiting`, unless the answer
    got lost. `error` is why the latest post failed.
    """

    def __init__(self, waiting: list[dict[str, Any]], act: Callable[[], Mischief], told: Callable[[], Any]) -> None:
        self.url = ""
        self.secret = ""
        self.error = ""
        self.posts = 0
        self.addresses: dict[str, str] = {}
        self.news = asyncio.Event()
        self._waiting = waiting
        self._act = act
        self._told = told
        self._task: asyncio.Task[None] | None = None

    def set(self, given: Mapping[str, Any]) -> None:
        """Post to a URL from now on; to none if it is empty."""
        self.url, self.secret = str(given.get("url", "")), str(given.get("secret_token", ""))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        self.news.set()

    async def close(self) -> None:
        """Post nothing more."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        async with httpx2.AsyncClient(trust_env=False, verify=False, timeout=_WITHIN_S) as client:
            while True:
                self.news.clear()
                while self.url and self._waiting:
                    update = self._waiting[0]
                    if await self._posted(client, update):
                        self._waiting.remove(update)
                        await self._told()
                        continue
                    await self._told()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self.news.wait(), _AGAIN_S)
                    self.news.clear()
                await self.news.wait()

    async def _posted(self, client: httpx2.AsyncClient, update: Mapping[str, Any]) -> bool:
        """Post an update; whether its sender knows that it arrived."""
        self.posts += 1
        act = self._act()
        if not act.does:
            self.error = "Connection reset by peer"
            return False
        headers = {"X-Telegram-Bot-Api-Secret-Token": self.secret, "Content-Type": "application/json"}
        try:
            answer = await client.post(
                self.addresses.get(self.url, self.url), content=json.dumps(update).encode(), headers=headers
            )
        except httpx2.HTTPError as error:
            self.error = f"Connection failed: {type(error).__name__}"
            return False
        if not answer.is_success:
            self.error = f"Wrong response from the webhook: {answer.status_code}"
            return False
        if act is not Mischief.ACCEPT:
            self.error = "Read timeout expired"
            return False
        return True
