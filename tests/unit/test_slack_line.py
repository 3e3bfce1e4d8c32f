"""The line of a bot of Slack: why nothing comes, and how long until the next try."""

from __future__ import annotations

import sys

import pytest
from tests.unit.slack_cast import listening, two_open

from keepsaid.adapters.channels.backoff import LineBackoff
from keepsaid.domain.line import LineState
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.slack import SlackError, SlackServer


@pytest.mark.parametrize(
    ("error", "state", "reason"),
    [
        (SlackError("invalid_auth"), LineState.REFUSED, "KS-CHN: slack.bot_token or slack.app_token is not accepted"),
        (SlackError("token_revoked"), LineState.REFUSED, "token_revoked"),
        (SlackError("slack_app_disabled"), LineState.REFUSED, "KS-CHN: Socket Mode of the app is off"),
        (SlackError("ratelimited", 429, 30), LineState.THROTTLED, "ratelimited"),
        (SlackError("internal_error", 500), LineState.DOWN, "internal_error"),
    ],
)
async def test_the_line_says_why_nothing_comes(error: SlackError, state: LineState, reason: str) -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with SlackServer(now_ms=clock.now_ms) as slack:
        slack.errors["apps.connections.open"] = error
        async with listening(slack, inbox, clock, shown):
            assert reason in await shown.until_now(state)
            assert not any("scripted" in why for why in shown.reasons)
            slack.errors.clear()
            await clock.advance(60_000)
            await two_open(slack)
            assert await shown.until_now(LineState.UP) == ""


async def test_a_rate_limit_is_waited_out_whole() -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with SlackServer(now_ms=clock.now_ms) as slack:
        slack.errors["apps.connections.open"] = SlackError("ratelimited", 429, 30)
        async with listening(slack, inbox, clock, shown):
            await slack.wait_for(lambda: slack.calls.get("apps.connections.open") == 2)
            await shown.until_now(LineState.THROTTLED)
            slack.errors.clear()
            await clock.advance(29_000)
            assert slack.calls["apps.connections.open"] == 2
            await clock.advance(1_000)
            await two_open(slack)


async def test_the_wait_before_a_try_doubles_up_to_a_minute() -> None:
    """By chance it is shorter; after a minute without trouble it begins with a second."""
    clock = VirtualClock()
    waits = []
    for _ in range(100):
        backoff = LineBackoff(clock)
        waits.append([backoff.next_ms() for _ in range(10)])
    longest = [max(wait) for wait in zip(*waits, strict=True)]
    for number, wait in enumerate(longest):
        assert 0.5 * min(1_000 * 2**number, 60_000) < wait <= min(1_000 * 2**number, 60_000)
    backoff.up()
    await clock.advance(60_000)
    assert backoff.next_ms() <= 1_000


async def test_sockets_that_are_closed_for_good_are_dialled_seldom() -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with SlackServer(now_ms=clock.now_ms) as slack:
        slack.sockets.refuses = "link_disabled"
        async with listening(slack, inbox, clock, shown):
            assert "link_disabled" in await shown.until_now(LineState.REFUSED)
            await slack.wait_for(lambda: slack.calls["apps.connections.open"] == 2)
            await clock.advance(59_000)
            assert slack.calls["apps.connections.open"] == 2
            slack.sockets.refuses = ""
            await clock.advance(1_000)
            await two_open(slack)


async def test_the_tokens_of_another_bot_are_refused() -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock, shown, "T0TEAM:U0OTHER"):
        assert "is not accepted" in await shown.until_now(LineState.REFUSED)
        assert "apps.connections.open" not in slack.calls


async def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with SlackServer(now_ms=clock.now_ms) as slack:
        monkeypatch.setitem(sys.modules, "websockets.asyncio.client", None)
        async with listening(slack, inbox, clock, shown):
            assert "keepsaid[channels]" in await shown.until_now(LineState.REFUSED)
