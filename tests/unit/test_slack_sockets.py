"""Slack's sockets: what comes by them is stored before it is acknowledged; what came by none is read afterwards."""

from __future__ import annotations

import asyncio
import logging

import pytest
from tests.unit.slack_cast import listening, settled, two_open

from keepsaid.domain.line import LineState
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox, never
from keepsaid.testing.providers.slack import ACCOUNT, BOT, SlackError, SlackServer
from keepsaid.testing.providers.slack_sockets import SocketAct

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000


async def test_what_is_said_is_kept_once_and_acknowledged() -> None:
    """A mention comes as two events, by two sockets, and is one message."""
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock, shown):
        await two_open(slack)
        ts = slack.say(f"<@{BOT}> hello")
        slack.say("between us", channel="D1")
        slack.command("/ask", "why?")
        last = slack.say("a bot speaks", bot_id="B1")
        await settled(slack)
        assert sorted(inbox.texts) == ["/ask why?", f"@{BOT} hello", "a bot speaks", "between us"]
        assert [one.text for one in inbox.kept.values() if one.by_bot] == ["a bot speaks"]
        assert len(slack.sockets.acknowledged) == 5
        assert inbox.kept[f"slack:C1:{ts}"].addressed
        assert inbox.kept[f"slack:C1:{ts}"].topic == ts
        assert inbox.stored["ts:C1"] == last
        assert inbox.stored["threads:C1"] == ts
        assert await shown.until_now(LineState.UP) == ""
        assert slack.calls == {"auth.test": 1, "apps.connections.open": 2}


async def test_an_edit_of_an_old_message_moves_no_cursor_back() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock):
        await two_open(slack)
        old = slack.say("helo")
        newest = slack.say("world")
        await settled(slack)
        edited = {"type": "message", "user": "U7", "text": "hello", "ts": old, "edited": {"ts": "1760000000.000001"}}
        slack.emit({"type": "message", "subtype": "message_changed", "channel": "C1", "message": edited})
        await settled(slack)
        assert inbox.texts == ["helo", "world", "hello"]
        assert inbox.stored["ts:C1"] == newest


async def test_an_event_that_is_not_stored_comes_again_and_is_kept_once() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock):
        await two_open(slack)
        slack.sockets.resend_s = 0.05
        inbox.refuses = lambda: inbox.calls <= 3
        slack.say("hello")
        await settled(slack)
        assert inbox.texts == ["hello"]
        assert [one.attempt for one in slack.sockets.deliveries][:3] == [0, 1, 2]
        assert slack.sockets.given_up == []


async def test_a_store_that_refuses_is_said_and_nothing_is_lost_even_if_slack_gives_up() -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock, shown):
        await two_open(slack)
        slack.sockets.resend_s, slack.sockets.retries_max = 0.01, 1
        inbox.refuses = lambda: True
        slack.say("hello")
        slack.command("/ask", "why?")
        assert "the disk is full" in await shown.until_now(LineState.DOWN)
        await slack.wait_for(lambda: slack.sockets.waiting == 0)
        assert len(slack.sockets.given_up) == 2
        assert slack.sockets.acknowledged == []
        inbox.refuses = never
        await clock.advance(60_000)
        await inbox.wait_for(lambda: len(inbox.kept) == 2)
        assert sorted(inbox.texts) == ["/ask why?", "hello"]
        await shown.until_now(LineState.UP)


async def test_an_event_that_is_stored_too_late_is_not_acknowledged() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock):
        await two_open(slack)
        slack.sockets.resend_s = 60.0
        inbox.held = asyncio.Event()
        slack.say("hello")
        await inbox.entered.wait()
        await clock.advance(2_501)
        inbox.held.set()
        await inbox.wait_for(lambda: inbox.texts == ["hello"])
        slack.command("/ask")
        await slack.wait_for(lambda: len(slack.sockets.acknowledged) == 1)
        assert slack.sockets.waiting == 1
        await slack.sockets.disconnect("warning", every=True)
        await settled(slack)
        assert [one.attempt for one in slack.sockets.deliveries] == [0, 0, 1]
        assert len(slack.sockets.acknowledged) == 2
        assert inbox.texts == ["hello", "/ask"]


async def test_a_message_is_not_acknowledged_before_it_is_stored() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock):
        await two_open(slack)
        slack.sockets.resend_s = 60.0
        inbox.held = asyncio.Event()
        slack.say("hello")
        await inbox.entered.wait()
        slack.sockets.deliver("interactive", {})
        await slack.wait_for(lambda: len(slack.sockets.acknowledged) == 1)
        assert slack.sockets.waiting == 1
        inbox.held.set()
        await settled(slack)
        assert inbox.texts == ["hello"]


async def test_what_comes_by_two_sockets_is_stored_in_the_order_in_which_it_was_said() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock):
        await two_open(slack)
        slack.sockets.resend_s = 60.0
        inbox.held = asyncio.Event()
        for number in range(20):
            slack.say(f"message {number}")
        await inbox.entered.wait()
        slack.sockets.deliver("interactive", {})
        slack.sockets.deliver("interactive", {})
        await slack.wait_for(lambda: len(slack.sockets.acknowledged) == 2)
        inbox.held.set()
        await settled(slack)
        assert inbox.texts == [f"message {number}" for number in range(20)]
        assert inbox.calls <= 2


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_a_socket_that_slack_closes_is_replaced_before(reason: str) -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock):
        await two_open(slack)
        first = slack.sockets.open_sockets[0]
        slack.say("before")
        await slack.sockets.disconnect(reason)
        slack.say("meanwhile")
        await slack.wait_for(lambda: first not in slack.sockets.open_sockets)
        slack.say("after")
        await settled(slack)
        assert slack.sockets.most_open == 3
        assert len(slack.sockets.open_sockets) == 2
        assert sorted(inbox.texts) == ["after", "before", "meanwhile"]
        assert slack.sockets.given_up == []
        assert "conversations.history" not in slack.calls


async def test_one_socket_too_many_is_not_replaced_at_once() -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock, shown):
        await two_open(slack)
        await slack.sockets.disconnect("too_many_websockets")
        await slack.wait_for(lambda: len(slack.sockets.open_sockets) == 1)
        assert slack.sockets.opened == 2
        await clock.advance(1_000)
        await two_open(slack)
        assert slack.sockets.most_open == 2
        assert shown.states[-1] is LineState.UP


async def reconnected(slack: SlackServer, clock: VirtualClock) -> None:
    """Let the waits pass until both sockets are open again."""
    await clock.advance(1_000)
    await two_open(slack)


async def test_what_is_said_while_no_socket_is_open_is_read_afterwards() -> None:
    """In channels, direct messages and threads that are known; of others nothing is read."""
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock, shown):
        await two_open(slack)
        root = slack.say("root")
        asked = slack.say(f"<@{BOT}> hello")
        slack.say("in a thread", thread=root)
        slack.say("between us", channel="D1")
        await settled(slack)
        slack.sockets.drop()
        assert await shown.until_now(LineState.DOWN)
        known = set(inbox.kept)
        await clock.advance(0)
        slack.say("missed 1")
        slack.say("missed 2", thread=root)
        slack.say("missed 3", thread=asked, parent_user_id=BOT)
        slack.say("missed 4", channel="D1")
        slack.say("never seen", channel="C2")
        slack.say("missed 5")
        assert len(slack.sockets.given_up) == 6
        await reconnected(slack, clock)
        await inbox.wait_for(lambda: len(inbox.kept) == len(known) + 5)
        missed = [one for key, one in inbox.kept.items() if key not in known]
        assert [one.text for one in missed if one.conversation == "slack:C1"] == [f"missed {n}" for n in (1, 2, 3, 5)]
        assert {one.text: one.topic for one in missed}["missed 2"] == root
        assert {one.text: one.direct for one in missed}["missed 4"]
        slack.say("and now")
        await settled(slack)
        assert inbox.texts[-1] == "and now"
        assert shown.states[-1] is LineState.UP


@pytest.mark.parametrize("account", ["", ACCOUNT])
async def test_what_is_said_while_the_process_is_off_is_read_after_the_start(account: str) -> None:
    """Also what was said before the cursor and not stored; the first start reads nothing.

    The account is looked up, or configured.
    """
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack:
        slack.say("long ago")
        async with listening(slack, inbox, clock, account=account):
            await two_open(slack)
            slack.say("hello")
            await settled(slack)
        assert set(inbox.stored) == {"ts:C1"}
        lost = slack.say("swallowed")
        await clock.advance(60_000)
        inbox.stored["ts:C1"] = slack.history.add("C1", {"type": "message", "user": "U7", "text": "x"}, None)["ts"]
        await clock.advance(60_000)
        slack.say("missed")
        async with listening(slack, inbox, clock, account=account):
            await inbox.wait_for(lambda: "missed" in inbox.texts)
        assert f"slack:C1:{lost}" in inbox.kept
        assert inbox.texts.count("hello") == 1


async def test_the_past_is_bounded(caplog: pytest.LogCaptureFixture) -> None:
    """A day, and a hundred messages of a channel, the oldest first."""
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack:
        async with listening(slack, inbox, clock):
            await two_open(slack)
            slack.say("hello")
            await settled(slack)
        slack.say("too old")
        await clock.advance(_DAY_MS + 1_000)
        for number in range(130):
            slack.say(f"missed {number}")
        slack.history.page_max = 50
        async with listening(slack, inbox, clock):
            await inbox.wait_for(lambda: len(inbox.kept) > 1)
        assert inbox.texts == ["hello", *(f"missed {number}" for number in range(100))]
        assert "not read: 30" in caplog.text
        async with listening(slack, inbox, clock):
            await two_open(slack)
            slack.say("and now")
            await settled(slack)
        assert inbox.texts[-1] == "and now"


async def test_a_history_that_is_closed_or_slow_holds_up_nothing() -> None:
    """One channel was left, and of the other Slack wants to be asked later."""
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack:
        async with listening(slack, inbox, clock):
            await two_open(slack)
            slack.say("hello")
            await settled(slack)
        slack.say("missed")
        inbox.stored["ts:C0GONE"] = inbox.stored["ts:C1"]
        slack.errors["conversations.history"] = SlackError("ratelimited", 429, 30)
        async with listening(slack, inbox, clock):
            await slack.wait_for(lambda: slack.calls.get("conversations.history", 0) == 1)
            await two_open(slack)
            await clock.advance(2_000)
            slack.say("and now")
            await settled(slack)
            assert inbox.texts == ["hello", "and now"]
            before = inbox.stored["ts:C1"]
            slack.errors.clear()
            await clock.advance(31_000)
            await inbox.wait_for(lambda: "missed" in inbox.texts)
            assert inbox.stored["ts:C1"] > before


async def test_ghosts_are_said_and_what_they_swallow_is_read(caplog: pytest.LogCaptureFixture) -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock):
        await two_open(slack)
        slack.say("hello")
        await settled(slack)
        slack.sockets.ghosts = 1
        with caplog.at_level(logging.WARNING, "keepsaid.slack"):
            await slack.sockets.disconnect("warning")
            await slack.wait_for(lambda: slack.sockets.opened == 3 and len(slack.sockets.open_sockets) == 2)
            await slack.wait_for(lambda: slack.calls.get("conversations.history", 0) == 1)
        assert "another program reads this account" in caplog.text
        for number in range(3):
            slack.say(f"message {number}")
        await settled(slack)
        assert any(one.to_ghost for one in slack.sockets.deliveries)
        assert len(inbox.kept) == 3
        slack.sockets.ghosts = 0
        await clock.advance(5_000)
        await inbox.wait_for(lambda: len(inbox.kept) == 4)
        assert sorted(inbox.texts) == ["hello", "message 0", "message 1", "message 2"]


async def test_an_idle_hour_renews_the_sockets_and_asks_little() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock):
        await two_open(slack)
        slack.say("hello")
        await settled(slack)
        puts, first = inbox.calls, list(slack.sockets.open_sockets)
        slack.calls.clear()
        await clock.advance(_HOUR_MS)
        await slack.wait_for(lambda: slack.sockets.opened == 4 and len(slack.sockets.open_sockets) == 2)
        assert not set(first) & set(slack.sockets.open_sockets)
        assert slack.calls == {"apps.connections.open": 2}
        assert inbox.calls == puts
        slack.say("and now")
        await settled(slack)
        assert inbox.texts == ["hello", "and now"]


async def test_what_cannot_be_read_is_kept_and_acknowledged() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock):
        await two_open(slack)
        slack.emit({"type": "message", "ts": "4.5", "user": "U7", "text": "where?"})
        slack.sockets.deliver("events_api", {"type": "event_callback", "event_id": "Ev9", "event": "none"})
        slack.sockets.deliver("interactive", {"type": "block_actions"})
        slack.say("hello")
        await settled(slack)
        assert len(slack.sockets.acknowledged) == 4
        assert sorted(one.event for one in inbox.kept.values()) == ["", "unreadable", "unreadable"]


async def test_a_frame_that_is_garbled_comes_again() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with SlackServer(now_ms=clock.now_ms) as slack, listening(slack, inbox, clock):
        await two_open(slack)
        acts = [SocketAct.GARBLE, SocketAct.DUPLICATE]
        slack.sockets.act = lambda number: acts[number] if number < len(acts) else SocketAct.DELIVER
        slack.say("hello")
        await slack.wait_for(lambda: len(slack.sockets.acknowledged) >= 2)
        assert inbox.texts == ["hello"]
