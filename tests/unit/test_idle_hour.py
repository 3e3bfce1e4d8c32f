"""An hour in which nobody writes: Telegram and Discord are asked little, and nothing is written to the store."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import httpx2
from tests.unit.discord_cast import listening

from keepsaid.adapters.channels.telegram_api import TelegramApi
from keepsaid.adapters.channels.telegram_line import TelegramAccount, TelegramLine
from keepsaid.adapters.channels.telegram_poll import TelegramPoll
from keepsaid.domain.line import LineState
from keepsaid.testing.clock import FastClock, VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.discord import DiscordServer
from keepsaid.testing.providers.telegram import TelegramServer

_REQUESTS_MAX = 80
_HOUR_S = 3_600


async def test_idle_hour_of_telegram_polls_and_writes_nothing() -> None:
    clock, inbox, line = FastClock(), MemoryInbox(), LineLog()
    async with TelegramServer() as telegram:
        telegram.poll_scale = 0.0005
        account = TelegramAccount(TelegramApi(telegram.token, telegram.url), "4711", inbox)
        polling = asyncio.create_task(TelegramPoll(account, TelegramLine(clock, line)).listen(inbox))
        try:
            await line.wait_for(LineState.UP)
            puts = inbox.calls
            await telegram.wait_for(lambda: telegram.polled_s >= _HOUR_S)
            assert sum(telegram.calls.values()) <= _REQUESTS_MAX
            assert inbox.calls == puts
        finally:
            polling.cancel()
            with suppress(asyncio.CancelledError):
                await polling
            await account.api.close()


async def test_idle_hour_of_discord_keeps_one_session_and_asks_and_writes_nothing() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with (
        DiscordServer(now_ms=clock.now_ms) as discord,
        httpx2.AsyncClient(trust_env=False) as http,
        listening(discord, inbox, clock) as line,
    ):
        await line.wait_for(LineState.UP)
        await inbox.wait_for(lambda: "session" in inbox.stored)
        puts, interval_ms = inbox.calls, discord.gateway.interval_ms
        discord.calls.clear()
        beats = _HOUR_S * 1_000 // interval_ms
        for n in range(beats):
            await clock.advance(interval_ms)
            await discord.wait_for(lambda n=n: discord.calls.get("heartbeat", 0) > n)  # type: ignore[misc]
            await http.get(f"{discord.api_url}/gateway/bot")  # the answer to the heartbeat arrives before this one's
        assert discord.calls.pop("heartbeat") <= beats + 1
        assert sum(discord.calls.values()) == beats, "the channel asked for something too"
        assert inbox.calls == puts
        assert len(discord.gateway.identifies) == 1
