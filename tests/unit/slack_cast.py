"""A bot at a scripted Slack: its listener, how it sends, and replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.adapters.channels.slack import SlackChannel
from keepsaid.adapters.channels.slack_api import SlackApi
from keepsaid.adapters.channels.slack_line import SlackAccount, SlackLine
from keepsaid.adapters.channels.slack_sockets import SlackSockets
from keepsaid.adapters.channels.uploads import UploadSource, no_uploads
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.reply import ReplyDraft, StoredReply
from keepsaid.ports.runtime import Clock
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.slack import ACCOUNT, SlackServer


def api_of(slack: SlackServer) -> SlackApi:
    return SlackApi(slack.bot_token, slack.app_token, f"{slack.url}/api")


@asynccontextmanager
async def listening(
    slack: SlackServer, inbox: MemoryInbox, clock: Clock, shown: LineLog | None = None, account: str = ACCOUNT
) -> AsyncIterator[asyncio.Task[None]]:
    """A listener of the bot, until the block ends."""
    api = api_of(slack)
    line = SlackLine(clock, shown or LineLog())
    task = asyncio.create_task(SlackSockets(SlackAccount(api, account), line).listen(inbox))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await api.close()


@asynccontextmanager
async def channel_of(
    slack: SlackServer, clock: Clock | None = None, uploads: UploadSource = no_uploads
) -> AsyncIterator[SlackChannel]:
    """The bot as it sends."""
    pace = SendingPace(clock or VirtualClock(), Rate(0.0), Rate(0.0))
    channel = SlackChannel(SlackAccount(api_of(slack), ACCOUNT), pace, uploads)
    try:
        yield channel
    finally:
        await channel.close()


def lane_in(channel: str, thread: str | None = None, account: str = ACCOUNT) -> Lane:
    conversation = f"slack:{channel}"
    return Lane("slack", account, conversation, lane_key(conversation, thread))


def reply_of(text: str, lane: Lane | None = None, *, number: int = 1, tried_from: int = 0) -> StoredReply:
    draft = ReplyDraft(number, text)
    created = 1_750_000_000_000
    return StoredReply(number, lane or lane_in("C1"), 1, "sending", draft, created_at=created, tried_from=tried_from)


async def two_open(slack: SlackServer) -> None:
    """Wait until both sockets are open."""
    await slack.wait_for(lambda: len(slack.sockets.open_sockets) == 2)


async def settled(slack: SlackServer) -> None:
    """Wait until every envelope is acknowledged, or given up."""
    await slack.wait_for(lambda: slack.sockets.waiting == 0)
