"""Telegram posts what is said: it is proven, and stored before it is answered; who may set the hook."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import Site, refused, site
from tests.unit.test_telegram import line_that_is, settings, texts, until

from keepsaid.adapters.channels.telegram_api import TelegramApi
from keepsaid.adapters.channels.telegram_hook import TelegramCalls, secret_of
from keepsaid.adapters.channels.telegram_line import TelegramAccount, TelegramLine
from keepsaid.domain.line import Cursor, LineState
from keepsaid.ports.channel import Incoming
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.providers.mischief import Mischief, mischief_of
from keepsaid.testing.providers.telegram import TelegramServer

_URL = "https://bot.example/hooks/telegram"
_HEADER = "X-Telegram-Bot-Api-Secret-Token"


def hooked(telegram: TelegramServer, **more: Any) -> dict[str, Any]:
    """A home whose bot is called by Telegram."""
    given = settings(telegram)
    return {**given, "telegram": {**given["telegram"], "webhook_url": _URL, **more}}


def reach(telegram: TelegramServer, at: Site) -> None:
    """From now on the server is reached at the URL that Telegram knows."""
    telegram.posts.addresses[_URL] = f"{at.address.url}/hooks/telegram"
    telegram.posts.news.set()


async def test_what_is_posted_is_answered(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, site(tmp_path, **hooked(telegram)) as at:
        reach(telegram, at)
        telegram.say("my dog is called Rex")
        await telegram.wait_for(lambda: len(texts(telegram)) == 1)
        assert (await line_that_is(at, LineState.UP))["reason"] == ""
        assert telegram.calls["setWebhook"] == 1
        assert "getUpdates" not in telegram.calls
        assert telegram.posts.secret == secret_of(telegram.token)


@pytest.mark.parametrize("seed", range(2))
async def test_each_post_is_kept_once_whatever_gets_lost(tmp_path: Path, seed: int) -> None:
    """Also what was said while the server was off; in its order."""
    async with TelegramServer() as telegram:
        async with site(tmp_path, **hooked(telegram)) as at:
            reach(telegram, at)
            await line_that_is(at, LineState.UP)
        trouble = mischief_of(seed, 0.5)
        telegram.mischief = lambda method, number: trouble(method, number) if method == "hook" else Mischief.ACCEPT
        for number in range(10):
            telegram.say(f"number {number}")
        async with site(tmp_path, **hooked(telegram)) as at:
            reach(telegram, at)
            await telegram.wait_for(lambda: telegram.waiting == 0)
            said = "SELECT json_extract(payload, '$.message.text') FROM message ORDER BY id"
            assert [row[0] for row in await until(at, said)] == [f"number {number}" for number in range(10)]


async def test_who_does_not_know_the_secret_is_refused(tmp_path: Path) -> None:
    update = json.dumps({"update_id": 1, "message": {"message_id": 1, "text": "hi"}}).encode()
    async with TelegramServer() as telegram, site(tmp_path, **hooked(telegram)) as at:
        await line_that_is(at, LineState.UP)
        asked = telegram.calls.copy()
        for headers in ({}, {_HEADER: "wrong"}, {_HEADER: ""}, {_HEADER: telegram.token}):
            told = refused(await at.client.post("/hooks/telegram", content=update, headers=headers), 401)
            assert telegram.token not in str(told)
        assert telegram.calls == asked
        assert at.rows("SELECT count(*) FROM message") == [(0,)]


async def test_without_the_setting_there_is_no_hook(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, site(tmp_path, **settings(telegram)) as at:
        headers = {_HEADER: secret_of(telegram.token)}
        refused(await at.client.post("/hooks/telegram", content=b"{}", headers=headers), 404)


async def test_what_cannot_be_read_is_kept_and_not_posted_again(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, site(tmp_path, **hooked(telegram)) as at:
        await line_that_is(at, LineState.UP)
        headers = {_HEADER: secret_of(telegram.token)}
        for body in (b"[1]", b"not json", b'{"update_id": 3, "message": 5}', b"[1]"):
            answer = await at.client.post("/hooks/telegram", content=body, headers=headers)
            assert answer.status_code in (200, 202)
        await until(at, "SELECT 1 WHERE (SELECT sum(last - first + 1) FROM batch WHERE state = 'dropped') = 3")
        assert at.rows("SELECT event FROM message") == [("unreadable",)] * 3


async def test_while_telegram_does_not_know_the_bot_it_posts_again(tmp_path: Path) -> None:
    """Nobody can say whom a mention means: 503, and the secret is still proven first."""
    async with TelegramServer() as telegram, site(tmp_path, **hooked(telegram)) as at:
        await line_that_is(at, LineState.UP)
    async with TelegramServer() as telegram:
        given = hooked(telegram)
        telegram.token = "4711:another-one"
        async with site(tmp_path, **given) as at:
            headers = {_HEADER: secret_of(given["telegram"]["token"])}
            told = refused(await at.client.post("/hooks/telegram", content=b"{}", headers=headers), 503)
            assert "does not say who its bot is" in told["title"]


async def test_a_post_that_fails_is_said_and_arrives_later(tmp_path: Path) -> None:
    async with TelegramServer() as telegram, site(tmp_path, **hooked(telegram)) as at:
        telegram.posts.addresses[_URL] = f"{at.address.url}/nowhere"
        await line_that_is(at, LineState.UP)
        telegram.say("hello")
        await telegram.wait_for(lambda: "404" in telegram.posts.error)
        reach(telegram, at)
        await telegram.wait_for(lambda: len(texts(telegram)) == 1)


@pytest.mark.parametrize("by_hook", [True, False])
async def test_the_hook_of_another_program_is_left_alone(tmp_path: Path, by_hook: bool) -> None:
    """Unless the settings say that it is taken over; then what waited comes here."""
    async with TelegramServer() as telegram:
        telegram.posts.set({"url": "https://user:secret@other.example/hook"})
        telegram.posts.addresses["https://user:secret@other.example/hook"] = "http://127.0.0.1:9/"
        telegram.say("hello")
        ours = hooked(telegram) if by_hook else settings(telegram)
        async with site(tmp_path, **ours) as at:
            line = await line_that_is(at, LineState.REFUSED)
            assert "another program reads this account" in line["reason"]
            assert "other.example" in line["reason"]
            assert "secret" not in line["reason"]
        assert telegram.posts.url == "https://user:secret@other.example/hook"
        ours["telegram"]["takeover"] = True
        async with site(tmp_path, **ours) as at:
            reach(telegram, at)
            await telegram.wait_for(lambda: len(texts(telegram)) == 1)
            assert telegram.posts.url == (_URL if by_hook else "")


class _Shown:
    """Keeps as what a line was shown last."""

    def __init__(self) -> None:
        self.last, self.reason = "", ""

    def show(self, state: LineState, reason: str = "", next_try_ms: int = 0) -> None:
        self.last, self.reason = state.value, reason


class _NoInbox:
    """Nothing comes in by the listener of a hook."""

    async def put(self, incoming: Incoming) -> bool:
        raise AssertionError(incoming)

    async def put_all(self, incoming: Sequence[Incoming], cursors: Sequence[Cursor] = ()) -> None:
        raise AssertionError(incoming)

    async def cursors(self, account: str) -> Mapping[str, str]:
        return {}


async def test_that_telegram_cannot_post_is_said_and_an_idle_hour_asks_little() -> None:
    clock, shown = VirtualClock(), _Shown()
    async with TelegramServer() as telegram:
        telegram.posts.addresses[_URL] = "http://127.0.0.1:9/"
        account = TelegramAccount(TelegramApi(telegram.token, telegram.url), "4711", _NoInbox())
        calls = TelegramCalls(account, TelegramLine(clock, shown), _URL, secret_of(telegram.token))
        listening = asyncio.create_task(calls.listen(_NoInbox()))
        await telegram.wait_for(lambda: "setWebhook" in telegram.calls)
        telegram.say("hello")
        await telegram.wait_for(lambda: telegram.posts.error != "")
        while shown.last != LineState.DOWN:
            await clock.advance(30_000)
            await account.api.call("getMyCommands", {})
        assert "cannot post to telegram.webhook_url: Connection failed" in shown.reason
        telegram.posts.addresses[_URL] = f"{telegram.url}/bot{telegram.token}/getMyCommands"
        await telegram.wait_for(lambda: telegram.waiting == 0)
        while shown.last != LineState.UP:
            await clock.advance(30_000)
            await account.api.call("getMyCommands", {})
        telegram.calls.clear()
        for _ in range(60):
            await clock.advance(60_000)
            await account.api.call("getMyCommands", {})
        del telegram.calls["getMyCommands"]
        assert 6 <= sum(telegram.calls.values()) <= 80
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening
        await account.api.close()
