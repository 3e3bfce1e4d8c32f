"""(short: one actor) What tests of Discord share: a running listener, which nothing but its inbox outlives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from keepsaid.adapters.channels.discord_api import DiscordApi
from keepsaid.adapters.channels.discord_gateway import DiscordGateway
from keepsaid.adapters.channels.discord_line import DiscordAccount, DiscordLine
from keepsaid.adapters.channels.discord_places import DiscordPlaces
from keepsaid.ports.runtime import Clock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.discord import BOT, DiscordServer


@asynccontextmanager
async def listening(discord: DiscordServer, inbox: MemoryInbox, clock: Clock) -> AsyncIterator[LineLog]:
    """A listener as a process has it, until the block ends; nothing but the inbox outlives it."""
    api = DiscordApi(discord.token, clock, discord.api_url)
    log = LineLog()
    places = DiscordPlaces(api, BOT)
    gateway = DiscordGateway(DiscordAccount(api, BOT), places, DiscordLine(clock, log))
    task = asyncio.create_task(gateway.listen(inbox))
    try:
        yield log
    finally:
        is_over = task.done()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await api.close()
        assert not is_over
