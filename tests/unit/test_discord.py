"""Discord: a reply arrives once, in parts that Discord takes, and what may have arrived is looked for or marked."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from keepsaid.adapters.channels.discord import DiscordChannel, nonce_of
from keepsaid.adapters.channels.discord_api import DiscordApi
from keepsaid.adapters.channels.discord_limits import REFUSALS_MAX, DiscordLimits
from keepsaid.adapters.channels.discord_line import bot_of
from keepsaid.adapters.channels.discord_markdown import discord_parts
from keepsaid.adapters.channels.discord_places import DiscordPlaces
from keepsaid.adapters.channels.discord_setup import look_up
from keepsaid.adapters.channels.markdown import read_markdown
from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.reply import Delivered, ReplyDraft, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import ChannelError
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.providers.discord import BOT, DIRECT, GENERAL, TOKEN, DiscordServer
from keepsaid.testing.providers.discord_messages import DiscordFault
from keepsaid.testing.providers.mischief import Mischief, mischief_of, one_after_the_other

_REPEAT = "(may be a repeat)\n"
_TEN_MINUTES = 600_000


@asynccontextmanager
async def channel_of(discord: DiscordServer, clock: VirtualClock, token: str = TOKEN) -> AsyncIterator[DiscordChannel]:
    """A channel of the scripted bot, as a process has it."""
    api = DiscordApi(token, clock, discord.api_url)
    pace = SendingPace(clock, Rate(0), Rate(0))
    channel = DiscordChannel(api, pace, DiscordPlaces(api, BOT), clock)
    try:
        yield channel
    finally:
        await channel.close()


def reply(text: str, clock: VirtualClock, number: int = 1, *, to: str | None = None, topic: str = "") -> StoredReply:
    """A reply that is being sent for the first time now."""
    lane = Lane("discord", BOT, f"discord:{GENERAL}", lane_key(f"discord:{GENERAL}", topic or None))
    draft = ReplyDraft(number, text, reply_to=to)
    return StoredReply(number, lane, 1, "sending", draft, created_at=clock.now_ms(), tried_from=clock.now_ms())


async def sent_part(channel: DiscordChannel, said: StoredReply, *, again: bool = False) -> SendResult:
    """Try to send the only part of a reply."""
    [body] = await channel.split(said)
    return await channel.send_part(said, ReplyPart(said.id, 0, body, possible_duplicate=again))


def texts(discord: DiscordServer) -> list[str]:
    return [one.text for one in discord.sent]


async def test_reply_is_sent_under_its_nonce_and_mentions_nobody() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        asked = discord.say("hello")
        result = await sent_part(channel, reply("hi **all**, @everyone", clock, 2**62, to=asked))
        [sent] = discord.sent
        assert (result.outcome, result.provider_id) == (Delivered.CONFIRMED, sent.id)
        assert (sent.channel, sent.text) == (GENERAL, "hi **all**, @everyone")
        assert sent.parameters["allowed_mentions"] == {"parse": []}
        assert sent.parameters["flags"] == 4
        assert sent.parameters["message_reference"] == {"message_id": asked, "fail_if_not_exists": False}
        assert sent.parameters["enforce_nonce"] is True
        assert sent.parameters["nonce"] == nonce_of(ReplyPart(2**62, 0, "")) == "kz1ci99jj7474.0"
        assert len(nonce_of(ReplyPart(2**63 - 1, 9_999_999, ""))) <= 25


async def test_a_reply_goes_to_its_thread_and_direct_ones_have_no_anchor() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        thread = discord.add_thread("950")
        await sent_part(channel, reply("in the thread", clock, topic=thread))
        assert [one.channel for one in discord.sent] == [thread]
        api = DiscordApi(TOKEN, clock, discord.api_url)
        places = DiscordPlaces(api, BOT)
        places.direct(DIRECT)
        direct = DiscordChannel(api, SendingPace(clock, Rate(0), Rate(0)), places, clock)
        lane = Lane("discord", BOT, f"discord:{DIRECT}", lane_key(f"discord:{DIRECT}"))
        result = await direct.send(StoredReply(2, lane, 1, "sending", ReplyDraft(2, "hi", reply_to="7")))
        await direct.close()
        assert result.outcome is Delivered.CONFIRMED
        assert discord.sent[-1].channel == DIRECT
        assert "message_reference" not in discord.sent[-1].parameters


@pytest.mark.parametrize(
    ("act", "outcome", "is_outage"),
    [
        (Mischief.DROP, Delivered.DOUBT, False),
        (Mischief.FAIL, Delivered.DOUBT, False),
        (Mischief.FAIL_AFTER, Delivered.DOUBT, False),
        (Mischief.RESET_AFTER, Delivered.DOUBT, False),
        (Mischief.GARBLE, Delivered.DOUBT, False),
        (Mischief.SLOW_DOWN, Delivered.RETRY, True),
    ],
)
async def test_what_went_wrong_says_whether_it_may_have_arrived(
    act: Mischief, outcome: Delivered, *, is_outage: bool
) -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        discord.mischief = one_after_the_other(act, method="create message")
        result = await sent_part(channel, reply("hi", clock))
        assert (result.outcome, result.outage) == (outcome, is_outage)
        assert TOKEN not in result.detail


@pytest.mark.parametrize(
    ("status", "code", "outcome", "words"),
    [
        (403, 50_013, Delivered.DEAD, "the bot may not write there"),
        (403, 50_007, Delivered.DEAD, "the bot may not write there"),
        (404, 10_003, Delivered.DEAD, "nothing is sent elsewhere"),
        (400, 50_006, Delivered.DEAD, "400"),
        (401, 0, Delivered.RETRY, "discord.token is not accepted"),
        (502, 0, Delivered.DOUBT, "502"),
    ],
)
async def test_what_is_refused(status: int, code: int, outcome: Delivered, words: str) -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        discord.messages.gone[GENERAL] = DiscordFault(status, code, "No")
        result = await sent_part(channel, reply("hi", clock))
        assert (result.outcome, words in result.detail) == (outcome, True)
        assert discord.sent == []


async def test_no_connection_is_an_outage_and_another_account_is_refused() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        pass
    async with channel_of(discord, clock) as channel:
        result = await sent_part(channel, reply("hi", clock))
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)
        said = reply("hi", clock)
        [body] = await channel.split(said)
        others = StoredReply(1, said.lane._replace(account="9"), 1, "sending", said.draft)
        assert (await channel.send_part(others, ReplyPart(1, 0, body))).outcome is Delivered.REFUSED


async def test_lost_answer_is_asked_for_again_with_the_same_nonce() -> None:
    """Within two minutes Discord returns the first message: nothing is written twice, and nothing marked."""
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        discord.mischief = one_after_the_other(Mischief.RESET_AFTER, Mischief.GARBLE, method="create message")
        said = reply("hi", clock)
        assert (await sent_part(channel, said)).outcome is Delivered.DOUBT
        assert (await sent_part(channel, said, again=True)).outcome is Delivered.DOUBT
        await clock.advance(100_000)
        result = await sent_part(channel, said, again=True)
        assert result.outcome is Delivered.CONFIRMED
        assert [(one.id, one.text) for one in discord.sent] == [(result.provider_id, "hi")]
        assert "list messages" not in discord.calls


async def test_later_the_channel_is_read_for_it() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        discord.mischief = one_after_the_other(Mischief.RESET_AFTER, method="create message")
        said = reply("hi", clock, to=discord.say("hello"))
        assert (await sent_part(channel, said)).outcome is Delivered.DOUBT
        for n in range(150):
            discord.say(f"noise {n}")
        await clock.advance(_TEN_MINUTES)
        result = await sent_part(channel, said, again=True)
        assert (result.outcome, result.provider_id) == (Delivered.CONFIRMED, discord.sent[0].id)
        assert texts(discord) == ["hi"]


async def test_what_is_not_found_is_repeated_marked() -> None:
    """The same words of another reply, or of somebody else, are not taken for it."""
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        discord.mischief = one_after_the_other(Mischief.ACCEPT, Mischief.DROP, method="create message")
        assert (await sent_part(channel, reply("hi", clock, 1))).outcome is Delivered.CONFIRMED
        discord.say("hi")
        said = reply("hi", clock, 2)
        assert (await sent_part(channel, said)).outcome is Delivered.DOUBT
        await clock.advance(_TEN_MINUTES)
        assert (await sent_part(channel, said, again=True)).outcome is Delivered.CONFIRMED
        assert texts(discord) == ["hi", f"{_REPEAT}hi"]


async def test_nothing_is_repeated_while_the_channel_cannot_be_read() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        discord.mischief = one_after_the_other(Mischief.FAIL, method="list messages")
        said = reply("hi", clock)
        await clock.advance(_TEN_MINUTES)
        result = await sent_part(channel, said, again=True)
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)
        assert "create message" not in discord.calls


async def test_message_that_cannot_be_answered_is_sent_without_an_anchor() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        discord.messages.refuses_references = True
        result = await sent_part(channel, reply("hi", clock, to="77"))
        assert result.outcome is Delivered.CONFIRMED
        assert "without the message it answers" in result.detail
        assert texts(discord) == ["hi"]


async def test_long_reply_is_sent_in_complete_parts_and_only_the_first_answers() -> None:
    clock = VirtualClock()
    code = "\n".join(f"line_{n} = '*{n}*'" for n in range(200))
    long = f"**{'bold ' * 600}**\n\n```python\n{code}\n```\n\nthe end_of_it"
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        result = await channel.send(reply(long, clock, to=discord.say("hello")))
        assert result.outcome is Delivered.CONFIRMED
        parts = texts(discord)
        assert len(parts) >= 4
        assert all(len(text) <= 2_000 and text.count("```") % 2 == 0 and text.count("**") % 2 == 0 for text in parts)
        assert "".join(parts).count("bold") == 600
        lines = [line for text in parts for line in text.split("\n") if line.startswith("line_")]
        assert lines == code.split("\n")
        assert sum(text.startswith("```python\n") for text in parts) >= 2
        assert parts[-1].endswith("the end\\_of\\_it")
        assert ["message_reference" in one.parameters for one in discord.sent] == [True] + [False] * (len(parts) - 1)
        assert [one.parameters["nonce"] for one in discord.sent] == [f"k1.{n}" for n in range(len(parts))]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("*a* and `b*` ~~c~~", "*a* and `b*` ~~c~~"),
        ("snake_case 2 * 3 <@7>", "snake\\_case 2 \\* 3 \\<@7>"),
        ("see https://x.example/a_b_c", "see https://x.example/a_b_c"),
        ("[here](https://x.example/a)", "[here](https://x.example/a)"),
        ("[here](javascript:a)", "[here](javascript:a)"),
        ("# Title\n\n> quoted\n> more", "**Title**\n\n> quoted\n> more"),
        ("\\# no title", "\\# no title"),
        ("1. a\n2. b\n\n- c", "1. a\n2. b\n• c"),
        ("``a`b``", "`` a`b ``"),
        ("***both***", "***both***"),
        ("", "(no words)"),
    ],
)
def test_markdown_of_models_becomes_that_of_discord(text: str, content: str) -> None:
    found = discord_parts(text)
    if "javascript" in text:
        assert found[0].replace("\\", "") == content
    elif "• c" in content:
        assert "".join(found).split() == content.split()
    else:
        assert found == [content]


@pytest.mark.parametrize("seed", range(30))
def test_any_text_is_cut_into_parts_that_discord_takes(seed: int) -> None:
    chance = random.Random(f"discord parts:{seed}")
    pieces = [
        "*",
        "**",
        "_",
        "```",
        "`",
        "~~",
        "> ",
        "# ",
        "[a](https://x.example/b)",
        "\n",
        "\n\n",
        "😀",
        "word ",
        "|",
    ]
    text = "".join(chance.choice(pieces) * chance.randint(1, 40) for _ in range(400))
    parts = discord_parts(text)
    assert len(parts) > 1
    assert all(part == part.strip() and 0 < len(part.encode("utf-16-le")) // 2 <= 1_982 for part in parts)
    assert "".join(parts).count("😀") == read_markdown(text).text.count("😀")


async def test_rate_limit_is_obeyed_before_discord_has_to_say_it() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        discord.messages.rate = (1, 30.0)
        assert (await sent_part(channel, reply("one", clock, 1))).outcome is Delivered.CONFIRMED
        result = await sent_part(channel, reply("two", clock, 2))
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)
        assert 30_000 <= (result.retry_after_ms or 0) <= 33_001
        assert discord.calls["create message"] == 1
        await clock.advance(result.retry_after_ms or 0)
        assert (await sent_part(channel, reply("two", clock, 2))).outcome is Delivered.CONFIRMED


@pytest.mark.parametrize("everywhere", [False, True])
async def test_429_holds_its_route_or_everything(*, everywhere: bool) -> None:
    clock = VirtualClock()
    limits = DiscordLimits(clock)
    limits.hold("POST channels/*/messages 1", 900.0, everywhere=everywhere)
    assert limits.wait_ms("POST channels/*/messages 1") == 900
    assert limits.wait_ms("POST channels/*/messages 2") == (900 if everywhere else 0)
    await clock.advance(900)
    assert limits.wait_ms("POST channels/*/messages 1") == 0


async def test_after_a_thousand_refusals_nothing_more_is_asked() -> None:
    """Discord bans an address at ten thousand."""
    clock = VirtualClock()
    limits = DiscordLimits(clock)
    for n in range(REFUSALS_MAX + 5):
        limits.note("GET users/@me ", 429, {"x-ratelimit-scope": "shared"} if n < 5 else {})
        assert limits.is_broken is (n >= REFUSALS_MAX + 4)
    await clock.advance(600_000)
    assert not limits.is_broken


async def test_typing_is_shown_in_the_thread() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, channel_of(discord, clock) as channel:
        thread = discord.add_thread("950")
        assert await channel.show_typing(reply("", clock, topic=thread).lane)
        assert discord.typing == [thread]
        discord.messages.gone[thread] = DiscordFault(403, 50_001, "Missing Access")
        assert not await channel.show_typing(reply("", clock, topic=thread).lane)
        assert not await channel.show_draft(reply("", clock).lane, 1, "text")


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_is_lost_and_no_repeat_is_unmarked(seed: int) -> None:
    """Replies are tried as the outbox does, with waits from a second to ten minutes between two tries."""
    clock = VirtualClock()
    chance = random.Random(f"discord sends:{seed}")
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        for first in (1, 11):
            discord.mischief = mischief_of(seed, 0.5)
            async with channel_of(discord, clock) as channel:
                for number in range(first, first + 10):
                    await _settle(channel, reply(f"answer {number}", clock, number), clock, chance)
        for number in range(1, 21):
            arrived = [text for text in texts(discord) if text.endswith(f"answer {number}")]
            assert arrived
            assert all(text.startswith(_REPEAT) for text in arrived[1:])


async def _settle(channel: DiscordChannel, said: StoredReply, clock: VirtualClock, chance: random.Random) -> None:
    """Try to send a reply until it is confirmed."""
    is_doubtful = False
    for _ in range(100):
        result = await sent_part(channel, said, again=is_doubtful)
        is_doubtful = is_doubtful or result.outcome is Delivered.DOUBT
        if result.outcome is Delivered.CONFIRMED:
            return
        await clock.advance(max(result.retry_after_ms or 0, chance.choice((1_000, 60_000, _TEN_MINUTES))))
    raise AssertionError("it is never confirmed")


async def test_bot_is_looked_up_and_what_stands_in_its_way_is_said() -> None:
    clock = VirtualClock()
    assert bot_of(TOKEN) == BOT
    with pytest.raises(ValueError, match="form"):
        bot_of("hello")
    async with DiscordServer(now_ms=clock.now_ms) as discord:
        report = await look_up(DiscordApi(TOKEN, clock, discord.api_url), BOT)
        assert (report.account, report.name, report.notes) == (BOT, "scripted_bot", ())
        discord.application_flags, discord.in_guild = 0, False
        report = await look_up(DiscordApi(TOKEN, clock, discord.api_url), BOT)
        assert [note.split(":")[0] for note in report.notes] == [
            "the intent MESSAGE CONTENT is off",
            "it is in no server yet",
        ]
        with pytest.raises(ChannelError, match="refuses the token") as raised:
            await look_up(DiscordApi("NDcxMQ.wrong.token", clock, discord.api_url), BOT)
        assert "wrong.token" not in f"{raised.value!r} {json.dumps(raised.value.hint)}"
        assert "wrong.token" not in repr(DiscordApi("NDcxMQ.wrong.token", clock, discord.api_url))
