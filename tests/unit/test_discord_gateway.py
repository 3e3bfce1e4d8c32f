"""Discord's gateway: every message is kept once, whatever happens to the connection, the session or the process."""

from __future__ import annotations

import random
import sys

import pytest
from tests.unit.discord_cast import listening

from keepsaid.domain.line import LineState
from keepsaid.domain.message import EDITED, REACTION, UNREADABLE
from keepsaid.testing.clock import FastClock
from keepsaid.testing.listening import MemoryInbox, never, times
from keepsaid.testing.providers.discord import BOT, DIRECT, GENERAL, GUILD, TOKEN, DiscordServer
from keepsaid.testing.providers.discord_gateway import GatewayMischief, GatewayMischiefMaker
from keepsaid.testing.providers.mischief import harmless, mischief_of


def first(act: GatewayMischief, kind: str = "MESSAGE_CREATE") -> GatewayMischiefMaker:
    """Do this to the first dispatch of a name, then nothing wrong any more."""
    left = [act]
    return lambda called, _seq: left.pop() if called == kind and left else GatewayMischief.ACCEPT


async def heard(discord: DiscordServer, inbox: MemoryInbox, text: str = "hello", channel: str = GENERAL) -> None:
    """Say something once a session has begun, and wait until it is kept."""
    await inbox.wait_for(lambda: "session" in inbox.stored)
    discord.say(text, channel=channel)
    await inbox.wait_for(lambda: text in inbox.texts)


async def test_first_contact_takes_no_history() -> None:
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        discord.say("before")
        async with listening(discord, inbox, clock) as line:
            await line.wait_for(LineState.UP)
            await heard(discord, inbox, "after")
        assert inbox.texts == ["after"]
        assert "list messages" not in discord.calls
        assert [one["intents"] for one in discord.gateway.identifies] == [sum(1 << n for n in (0, 9, 10, 12, 13, 15))]
        assert {"session", "seq", "since", f"after:{GENERAL}"} == set(inbox.stored)
        assert TOKEN not in str(inbox.stored)


async def test_restart_resumes_and_loses_and_doubles_nothing() -> None:
    """A thread is still a topic of its channel, though the process that saw it begin is gone."""
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        async with listening(discord, inbox, clock) as line:
            await line.wait_for(LineState.UP)
            thread = discord.add_thread("950")
            await heard(discord, inbox, "one")
        for text in ("two", "three"):
            discord.say(text)
        discord.say("in the thread", channel=thread)
        async with listening(discord, inbox, clock) as line:
            await line.wait_for(LineState.UP)
            await inbox.wait_for(lambda: len(inbox.kept) == 4)
            await heard(discord, inbox, "four")
        assert inbox.texts == ["one", "two", "three", "in the thread", "four"]
        assert inbox.repeats == 0
        assert (discord.calls["identify"], discord.calls["resume"]) == (1, 1)
        await discord.wait_for(lambda: discord.gateway.closed == [4_000, 4_000])
        threaded = [(one.conversation, one.topic) for one in inbox.kept.values() if one.topic]
        assert threaded == [(f"discord:{GENERAL}", thread)]


async def test_messages_that_arrived_together_are_kept_in_one_call() -> None:
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        async with listening(discord, inbox, clock):
            await inbox.wait_for(lambda: "session" in inbox.stored)
        before = inbox.calls
        for n in range(50):
            discord.say(str(n))
        async with listening(discord, inbox, clock):
            await inbox.wait_for(lambda: len(inbox.kept) == 50)
        assert inbox.texts == [str(n) for n in range(50)]
        assert inbox.calls - before <= 15


@pytest.mark.parametrize("keeps_messages", [False, True])
async def test_what_cannot_be_stored_comes_again(*, keeps_messages: bool) -> None:
    """The number of a dispatch is never stored before its message."""
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord, listening(discord, inbox, clock) as line:
        await heard(discord, inbox, "one")
        before = inbox.stored["seq"]
        if keeps_messages:
            inbox.half_refuses = times(2)
        else:
            inbox.refuses = times(2)
        discord.say("two")
        shown = await line.wait_for(LineState.DOWN)
        assert "the disk is full" in shown[1]
        assert inbox.stored["seq"] == before
        await inbox.wait_for(lambda: inbox.stored["seq"] != before)
        assert inbox.texts == ["one", "two"]
        assert inbox.repeats == (2 if keeps_messages else 0)
        assert discord.calls["identify"] == 1


async def test_lost_session_is_caught_up_everywhere_oldest_first() -> None:
    """Also in a channel where nothing was said before, and before what is said in the new session."""
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        discord.messages.add_channel({"id": "960", "type": 0, "name": "quiet", "guild_id": GUILD})
        async with listening(discord, inbox, clock) as line:
            await line.wait_for(LineState.UP)
            thread = discord.add_thread("950")
            for channel in (GENERAL, thread, DIRECT):
                await heard(discord, inbox, f"at first in {channel}", channel)
        clock.jump(120_000)
        discord.gateway.end_sessions()
        for channel in (DIRECT, "960", thread, GENERAL):
            discord.say(f"missed in {channel}", channel=channel)
        async with listening(discord, inbox, clock):
            await inbox.wait_for(lambda: len(inbox.kept) == 7)
            await heard(discord, inbox, "and now")
        missed = [f"missed in {channel}" for channel in (DIRECT, "960", thread, GENERAL)]
        assert inbox.texts[3:] == [*missed, "and now"]
        assert discord.calls["identify"] == 2
        direct, quiet, threaded, _ = [one for one in inbox.kept.values() if one.text in missed]
        assert (direct.direct, quiet.direct, threaded.direct) == (True, False, False)
        assert (threaded.conversation, threaded.topic) == (f"discord:{GENERAL}", thread)


async def test_what_follows_a_message_of_the_future_is_caught_up() -> None:
    clock, inbox, ahead = FastClock(), MemoryInbox(), [3_600_000]
    async with DiscordServer(now_ms=lambda: clock.now_ms() + ahead[0]) as discord:
        async with listening(discord, inbox, clock):
            await heard(discord, inbox, "from the future")
        ahead[0] = 0
        clock.jump(120_000)
        discord.gateway.end_sessions()
        discord.say("now")
        async with listening(discord, inbox, clock):
            await inbox.wait_for(lambda: "now" in inbox.texts)
        assert inbox.texts == ["from the future", "now"]


async def test_catch_up_is_bounded_and_does_not_repeat() -> None:
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        async with listening(discord, inbox, clock):
            await heard(discord, inbox, "one")
        discord.gateway.end_sessions()
        discord.say("too old")
        clock.jump(25 * 3_600_000)
        for n in range(130):
            discord.say(str(n))
        async with listening(discord, inbox, clock):
            await inbox.wait_for(lambda: len(inbox.kept) == 101)
            await heard(discord, inbox, "live")
        assert inbox.texts == ["one", *(str(n) for n in range(100)), "live"]
        asked = discord.calls["list messages"]
        discord.gateway.end_sessions()
        async with listening(discord, inbox, clock) as line:
            await line.wait_for(LineState.UP)
            await heard(discord, inbox, "later")
        assert discord.calls["list messages"] == asked
        assert inbox.texts[-2:] == ["live", "later"]


async def test_death_before_the_catch_up_is_stored_leaves_it_to_the_next_process() -> None:
    """The new session is not stored before what was missed is, or it would be resumed, and the gap forgotten."""
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        async with listening(discord, inbox, clock):
            await heard(discord, inbox, "one")
        old = inbox.stored["session"]
        discord.gateway.end_sessions()
        discord.say("missed")
        inbox.refuses = times(1)
        before = inbox.calls
        async with listening(discord, inbox, clock) as line:
            await inbox.wait_for(lambda: inbox.calls > before)
            await line.wait_for(LineState.DOWN, 2)
            inbox.refuses = times(1_000)
        assert inbox.stored["session"] == old or "missed" in inbox.texts
        inbox.refuses = never
        discord.gateway.end_sessions()
        async with listening(discord, inbox, clock):
            await heard(discord, inbox, "live")
        assert inbox.texts == ["one", "missed", "live"]


@pytest.mark.parametrize(("answer", "identifies"), [(True, 1), (False, 2), (4_007, 2), (4_009, 2), (4_000, 1)])
async def test_refused_resume(answer: bool | int, identifies: int) -> None:
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord, listening(discord, inbox, clock):
        await heard(discord, inbox, "one")
        discord.gateway.answers_resume.append(answer)
        discord.gateway.drop()
        discord.say("two")
        await inbox.wait_for(lambda: len(inbox.kept) == 2)
        await heard(discord, inbox, "three")
        assert inbox.texts == ["one", "two", "three"]
        assert discord.calls["identify"] == identifies
        if identifies == 2:
            early, late = discord.gateway.identifies
            assert (late["at"] - early["at"]) * 50 >= 4.9


async def test_reconnect_is_no_outage() -> None:
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord, listening(discord, inbox, clock) as line:
        await heard(discord, inbox, "one")
        await discord.gateway.send(7)
        await line.wait_for(LineState.UP, 2)
        await heard(discord, inbox, "two")
        assert LineState.DOWN not in line.states
        assert (discord.calls["identify"], discord.calls["resume"]) == (1, 1)


async def test_half_open_connection_is_noticed_and_the_session_resumed() -> None:
    clock, inbox = FastClock(200), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        discord.gateway.mischief = first(GatewayMischief.HALF_OPEN)
        async with listening(discord, inbox, clock) as line:
            await line.wait_for(LineState.UP)
            discord.say("hello")
            shown = await line.wait_for(LineState.DOWN)
            assert "does not answer heartbeats" in shown[1]
            await inbox.wait_for(lambda: inbox.texts == ["hello"])
            await discord.wait_for(lambda: discord.gateway.closed == [4_000])
            assert discord.calls["identify"] == 1


async def test_idle_connection_writes_nothing() -> None:
    """Heartbeats go on; what is no message, such as the bot's own words, is not worth a write."""
    clock, inbox = FastClock(200), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord, listening(discord, inbox, clock) as line:
        await heard(discord, inbox)
        before = inbox.calls
        own = {"id": "1", "channel_id": GENERAL, "guild_id": GUILD, "author": {"id": BOT, "bot": True}, "content": "hi"}
        discord.gateway.dispatch("MESSAGE_CREATE", own)
        beats = discord.calls.get("heartbeat", 0)
        await discord.wait_for(lambda: discord.calls.get("heartbeat", 0) >= beats + 3)
        assert inbox.calls == before
        assert line.states == [LineState.CONNECTING, LineState.UP]


@pytest.mark.parametrize("act", [GatewayMischief.DROP, GatewayMischief.GARBLE, GatewayMischief.DUPLICATE])
async def test_each_mischief_of_the_gateway(act: GatewayMischief) -> None:
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        discord.gateway.mischief = first(act)
        async with listening(discord, inbox, clock):
            await inbox.wait_for(lambda: "session" in inbox.stored)
            discord.say("one")
            await heard(discord, inbox, "two")
        assert inbox.texts == ["one", "two"]
        assert discord.calls.get("resume", 0) == (0 if act is GatewayMischief.DUPLICATE else 1)


async def test_frame_that_stays_malformed_is_kept_and_holds_up_nobody() -> None:
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord, listening(discord, inbox, clock):
        await heard(discord, inbox, "one")
        discord.gateway.dispatch_malformed('{"op": 0, "t": "MESSAGE_CR')
        await heard(discord, inbox, "two")
        odd = [one for one in inbox.kept.values() if one.event == UNREADABLE]
        assert [one.payload for one in odd] == [b'{"op": 0, "t": "MESSAGE_CR']


async def test_switched_off_intent_is_said_and_waited_for() -> None:
    clock, inbox = FastClock(200), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        discord.gateway.denied_intents = 1 << 15
        async with listening(discord, inbox, clock) as line:
            _, reason, wait_ms = await line.wait_for(LineState.REFUSED)
            assert "MESSAGE CONTENT" in reason
            assert wait_ms >= 60_000
            discord.gateway.denied_intents = 0
            await line.wait_for(LineState.UP)
            await heard(discord, inbox)


async def test_token_that_is_reset_is_said() -> None:
    clock, inbox = FastClock(200), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord, listening(discord, inbox, clock) as line:
        await heard(discord, inbox, "one")
        discord.token = "NDcxMQ.another.one"
        discord.gateway.drop()
        _, reason, wait_ms = await line.wait_for(LineState.REFUSED)
        assert "discord.token is not accepted" in reason
        assert wait_ms >= 60_000
        assert not any(TOKEN in told for _, told, _ in line.shown)
        discord.token = TOKEN
        await heard(discord, inbox, "two")


async def test_no_session_is_begun_when_few_are_left() -> None:
    """But one that exists is resumed."""
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        async with listening(discord, inbox, clock):
            await heard(discord, inbox, "one")
        discord.identifies_left = 199
        async with listening(discord, inbox, clock):
            await heard(discord, inbox, "two")
        discord.gateway.end_sessions()
        async with listening(discord, inbox, clock) as line:
            _, reason, wait_ms = await line.wait_for(LineState.REFUSED)
            assert "199 sessions are left" in reason
            assert wait_ms == 3_600_000
        assert discord.calls["identify"] == 1


async def test_edits_and_reactions_are_events() -> None:
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord, listening(discord, inbox, clock):
        await inbox.wait_for(lambda: "session" in inbox.stored)
        number = discord.say("helo")
        discord.edit(number, "hello")
        given = {"user_id": "7", "channel_id": GENERAL, "message_id": number, "guild_id": GUILD}
        discord.gateway.dispatch("MESSAGE_REACTION_ADD", given | {"emoji": {"id": None, "name": "👍"}})
        await inbox.wait_for(lambda: len(inbox.kept) == 3)
        told = [(one.text, one.event, one.provider_id, one.reply_to) for one in inbox.kept.values()]
        assert told == [("helo", "", number, None), ("hello", EDITED, number, None), ("👍", REACTION, None, number)]


async def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, inbox = FastClock(), MemoryInbox()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        monkeypatch.setitem(sys.modules, "websockets.asyncio.client", None)
        async with listening(discord, inbox, clock) as line:
            _, reason, _ = await line.wait_for(LineState.REFUSED)
            assert "keepsaid[channels]" in reason


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_is_lost_or_kept_twice_under_mischief(seed: int) -> None:
    """Requests and frames go wrong, the inbox refuses, the process restarts and sessions end, in any order."""
    chance = random.Random(f"discord:{seed}")
    clock, inbox = FastClock(500), MemoryInbox()
    bad = [GatewayMischief.DROP, GatewayMischief.GARBLE, GatewayMischief.DUPLICATE]
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        thread = discord.add_thread("950")
        places = (GENERAL, DIRECT, thread)
        async with listening(discord, inbox, clock):
            for channel in places:
                await heard(discord, inbox, f"first in {channel}", channel)
        discord.mischief = mischief_of(seed, 0.2)
        discord.gateway.mischief = lambda _kind, _seq: (
            chance.choice(bad) if chance.random() < 0.1 else GatewayMischief.ACCEPT
        )
        said: list[str] = []
        for part in range(4):
            async with listening(discord, inbox, clock):
                for n in range(15):
                    said.append(f"{part}.{n}")
                    discord.say(said[-1], channel=chance.choice(places))
                if chance.random() < 0.5:
                    await inbox.wait_for(lambda: said[-8] in inbox.texts)
                inbox.refuses = times(chance.choice((0, 0, 1)))
                inbox.half_refuses = times(chance.choice((0, 0, 1)))
                if chance.random() < 0.4:
                    discord.gateway.end_sessions()
        discord.mischief = harmless
        discord.gateway.mischief = lambda _kind, _seq: GatewayMischief.ACCEPT
        inbox.refuses = inbox.half_refuses = never
        async with listening(discord, inbox, clock):
            await inbox.wait_for(lambda: set(said) <= set(inbox.texts))
        assert sorted(inbox.texts) == sorted([*said, *(f"first in {channel}" for channel in places)])
        for place in {(one.conversation, one.topic) for one in inbox.kept.values()}:
            found = [one for one in inbox.kept.values() if (one.conversation, one.topic) == place]
            numbers = [int(one.provider_id or 0) for one in found]
            assert numbers == sorted(numbers)
