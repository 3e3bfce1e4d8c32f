"""Lines of channels: a wait that a provider asks for is obeyed, and no number that it sends stops a listener."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import pytest

from keepsaid.adapters.channels import discord_api, slack_api, telegram_api
from keepsaid.adapters.channels.backoff import LineBackoff
from keepsaid.adapters.channels.discord_line import DiscordLine
from keepsaid.adapters.channels.email.line import EmailLine
from keepsaid.adapters.channels.line import REQUESTED_MS_MAX, ChannelLine
from keepsaid.adapters.channels.matrix import api as matrix_api
from keepsaid.adapters.channels.matrix.line import MatrixLine
from keepsaid.adapters.channels.slack_line import SlackLine
from keepsaid.adapters.channels.telegram_line import TelegramLine
from keepsaid.domain.line import LineState
from keepsaid.domain.reply import Delivered, SendResult
from keepsaid.errors import StoreError
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import LineLog

_HUGE = 10**30
_WAITS: dict[str, tuple[Exception, Callable[[], SendResult]]] = {
    "telegram": (
        telegram_api.TelegramRefused(429, "later", {"retry_after": _HUGE}),
        lambda: telegram_api.refused(telegram_api.TelegramRefused(429, "later", {"retry_after": _HUGE})),
    ),
    "discord": (
        discord_api.DiscordRefused(429, "later", float(_HUGE)),
        lambda: discord_api.refused(discord_api.DiscordRefused(429, "later", float(_HUGE))),
    ),
    "slack": (
        slack_api.SlackRefused("ratelimited", 429, _HUGE),
        lambda: slack_api.refused(slack_api.SlackRefused("ratelimited", 429, _HUGE)),
    ),
    "matrix": (
        matrix_api.MatrixRefused(429, "M_LIMIT_EXCEEDED", "later", _HUGE),
        lambda: matrix_api.refused(matrix_api.MatrixRefused(429, "M_LIMIT_EXCEEDED", "later", _HUGE)),
    ),
}


@pytest.mark.parametrize("name", _WAITS)
def test_a_reply_waits_a_day_at_most_however_long_a_provider_asks_for(name: str) -> None:
    result = _WAITS[name][1]()
    assert result.outcome is Delivered.RETRY
    assert result.retry_after_ms is not None
    assert REQUESTED_MS_MAX <= result.retry_after_ms <= 1.1 * REQUESTED_MS_MAX + 1


def line_of(name: str, shown: LineLog) -> ChannelLine | SlackLine:
    clock = VirtualClock()
    made: dict[str, Callable[[], ChannelLine | SlackLine]] = {
        "telegram": lambda: TelegramLine(clock, shown),
        "discord": lambda: DiscordLine(clock, shown),
        "matrix": lambda: MatrixLine(clock, shown),
        "email": lambda: EmailLine(clock, shown),
        "slack": lambda: SlackLine(clock, shown),
    }
    return made[name]()


async def shown_after(name: str, error: Exception) -> tuple[LineState, str, int]:
    """How the line of a channel is shown while it waits after an error."""
    shown = LineLog()
    line = line_of(name, shown)
    waiting = line.wait_out(error, LineBackoff(line.clock)) if isinstance(line, SlackLine) else line.wait_out(error)
    task = asyncio.create_task(waiting)
    await shown.wait_for(LineState.DOWN if isinstance(error, StoreError) else LineState.THROTTLED)
    assert not task.done()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return shown.shown[-1]


@pytest.mark.parametrize("name", _WAITS)
async def test_a_line_waits_a_day_at_most_however_long_a_provider_asks_for(name: str) -> None:
    _, reason, wait_ms = await shown_after(name, _WAITS[name][0])
    assert reason
    assert REQUESTED_MS_MAX <= wait_ms <= 1.1 * REQUESTED_MS_MAX + 1


@pytest.mark.parametrize("name", ["telegram", "discord", "matrix", "email", "slack"])
async def test_a_store_that_refuses_is_an_outage_of_a_second_at_first(name: str) -> None:
    state, reason, wait_ms = await shown_after(name, StoreError("the disk is full"))
    assert (state, "the disk is full" in reason) == (LineState.DOWN, True)
    assert wait_ms <= 1_000
