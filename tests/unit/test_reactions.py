"""Reactions that the agent gives, by each messenger: what its provider gets, and what a refusal says to the model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.contract.channel_casts import telegram_account
from tests.unit import matrix_cast, slack_cast
from tests.unit.test_discord import channel_of as discord_channel
from tests.unit.test_nostr_sending import Scene

from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.adapters.channels.slack_reactions import name_of
from keepsaid.adapters.channels.telegram import TelegramChannel
from keepsaid.domain.message import Lane, lane_key
from keepsaid.errors import ToolError
from keepsaid.ports.channel import ReactionTarget
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import MemoryInbox
from keepsaid.testing.providers.discord import BOT, GENERAL, DiscordServer
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other
from keepsaid.testing.providers.nostr import NostrRelayServer
from keepsaid.testing.providers.nostr_people import NostrPerson
from keepsaid.testing.providers.slack import SlackError, SlackServer
from keepsaid.testing.providers.telegram import TelegramServer

AT_MS = 1_750_000_000_000


@asynccontextmanager
async def bot_of(telegram: TelegramServer) -> AsyncIterator[TelegramChannel]:
    pace = SendingPace(VirtualClock(), Rate(0), Rate(0))
    channel = TelegramChannel(telegram_account(telegram, MemoryInbox()), pace)
    try:
        yield channel
    finally:
        await channel.close()


def chat(number: int = 7, account: str = "4711") -> Lane:
    return Lane("telegram", account, f"telegram:chat:{number}", lane_key(f"telegram:chat:{number}"))


def target(number: object) -> ReactionTarget:
    return ReactionTarget(str(number), "7", AT_MS)


@pytest.mark.parametrize(("emoji", "shown"), [("👍", "👍"), ("❤️", "❤"), ("🤷\u200d♂️", "🤷\u200d♂")])
async def test_telegram_takes_an_emoji_of_its_own_without_the_sign_of_style(emoji: str, shown: str) -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        number = telegram.say("done?")
        for _ in range(2):
            await bot.react(chat(), target(number), emoji)
        assert telegram.reactions.given == {(7, number): shown}


@pytest.mark.parametrize("emoji", ["🦖", ":tada:", "👍🏽", "yes"])
async def test_telegram_refuses_any_other_and_the_error_names_some_that_it_takes(emoji: str) -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        with pytest.raises(ToolError, match="a bot may use 👍"):
            await bot.react(chat(), target(telegram.say("done?")), emoji)
        assert telegram.reactions.given == {}


async def test_a_message_of_a_group_that_became_another_is_in_that_one() -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        number = telegram.say("here", chat=-99)
        await bot.react(chat(-50), target(f"-99/{number}"), "👍")
        assert telegram.reactions.given == {(-99, number): "👍"}


@pytest.mark.parametrize(
    ("lane", "number", "told"),
    [
        (chat(), "999", "the message is gone"),
        (chat(), "x", "it is not one of Telegram"),
        (chat(account="1"), "1", "is not set up here any more"),
    ],
)
async def test_telegram_says_why_a_message_gets_no_reaction(lane: Lane, number: str, told: str) -> None:
    async with TelegramServer() as telegram, bot_of(telegram) as bot:
        telegram.say("done?")
        with pytest.raises(ToolError, match=told):
            await bot.react(lane, target(number), "👍")


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (Mischief.SLOW_DOWN, "nothing was done"),
        (Mischief.FAIL, "is not known"),
        (Mischief.GARBLE, "is not known"),
        (Mischief.DROP, "is not known"),
    ],
)
async def test_what_nobody_knows_is_said_so(act: Mischief, told: str) -> None:
    trouble = one_after_the_other(act, method="setMessageReaction")
    async with TelegramServer(mischief=trouble) as telegram, bot_of(telegram) as bot:
        number = telegram.say("done?")
        with pytest.raises(ToolError, match=told):
            await bot.react(chat(), target(number), "👍")
        await bot.react(chat(), target(number), "👍")
        assert telegram.reactions.given == {(7, number): "👍"}


def discord_lane(topic: str | None = None, account: str = BOT) -> Lane:
    return Lane("discord", account, f"discord:{GENERAL}", lane_key(f"discord:{GENERAL}", topic))


async def test_discord_gives_an_emoji_in_a_channel_and_in_a_thread() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, discord_channel(discord, clock) as bot:
        here = discord.say("done?")
        there = discord.say("and this?", channel=discord.add_thread("950"))
        for _ in range(2):
            await bot.react(discord_lane(), target(here), "👍🏽")
        await bot.react(discord_lane("950"), target(there), "❤️")
        assert discord.messages.reactions == {here: ["👍🏽"], there: ["❤️"]}


async def test_discord_says_why_it_refuses() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, discord_channel(discord, clock) as bot:
        number = discord.say("done?")
        for emoji, message, told in (
            (":tada:", number, "does not know this emoji"),
            ("../../@me?x=/", number, "does not know this emoji"),
            ("👍", "1", "the message is gone"),
            ("👍", "x", "it is not one of Discord"),
        ):
            with pytest.raises(ToolError, match=told):
                await bot.react(discord_lane(), target(message), emoji)
        with pytest.raises(ToolError, match="not set up here"):
            await bot.react(discord_lane(account="1"), target(number), "👍")
        discord.messages.reacts_blocked = True
        with pytest.raises(ToolError, match="lets the bot give it no reaction"):
            await bot.react(discord_lane(), target(number), "👍")
        assert discord.messages.reactions == {}


async def test_reactions_of_all_emoji_share_one_rate_limit() -> None:
    clock = VirtualClock()
    async with DiscordServer(now_ms=clock.now_ms) as discord, discord_channel(discord, clock) as bot:
        discord.messages.rate = (1, 60.0)
        number = discord.say("done?")
        await bot.react(discord_lane(), target(number), "👍")
        with pytest.raises(ToolError, match="wants fewer requests"):
            await bot.react(discord_lane(), target(number), "🎉")
        assert discord.calls["react"] == 1, "the second was not even sent"


async def test_slack_gives_an_emoji_by_its_name_and_one_that_is_there_is_no_error() -> None:
    async with SlackServer() as slack, slack_cast.channel_of(slack) as bot:
        here = slack.say("done?")
        there = slack.say("and this?", thread=here)
        for _ in range(2):
            await bot.react(slack_cast.lane_in("C1"), target(here), "👍")
        await bot.react(slack_cast.lane_in("C1", here), target(there), "👏🏿")
        await bot.react(slack_cast.lane_in("C1"), target(here), ":tada:")
        assert slack.history.reactions == {("C1", here): ["+1", "tada"], ("C1", there): ["clap::skin-tone-6"]}


async def test_slack_says_why_it_refuses() -> None:
    async with SlackServer() as slack, slack_cast.channel_of(slack) as bot:
        here = slack.say("done?")
        for emoji, message, told in (
            ("🦖", here, "give the name that it has at Slack"),
            (":no_such_one:", here, "give the name that it has at Slack"),
            ("👍", "1.2", "the message is gone"),
        ):
            with pytest.raises(ToolError, match=told):
                await bot.react(slack_cast.lane_in("C1"), target(message), emoji)
        with pytest.raises(ToolError, match="not set up here"):
            await bot.react(slack_cast.lane_in("C1", account="T1:U1"), target(here), "👍")
        slack.errors["reactions.add"] = SlackError("missing_scope")
        with pytest.raises(ToolError, match="reactions:write"):
            await bot.react(slack_cast.lane_in("C1"), target(here), "👍")
        assert slack.history.reactions == {}


@pytest.mark.parametrize(
    ("emoji", "name"),
    [("tada", "tada"), (":+1::skin-tone-2:", "+1::skin-tone-2"), ("✍🏻", "writing_hand::skin-tone-2")],
)
def test_the_name_of_an_emoji_at_slack(emoji: str, name: str) -> None:
    assert name_of(emoji) == name


async def test_a_reaction_at_matrix_is_one_event_however_often_it_is_sent() -> None:
    async with matrix_cast.server() as matrix, matrix_cast.channel_of(matrix) as bot:
        matrix.room(matrix_cast.ROOM, matrix_cast.ANN)
        number = matrix.say("done?")
        await bot.react(matrix_cast.lane_in(), target(number), "👍")
        await bot.react(matrix_cast.lane_in(), target(number), "👍")
        matrix.forgets_transactions = True
        await bot.react(matrix_cast.lane_in(), target(number), "👍")
        [sent] = matrix.reactions
        assert matrix.calls["send"] == 3
    related = {"rel_type": "m.annotation", "event_id": number, "key": "👍"}
    assert sent.content == {"m.relates_to": related}
    assert matrix.sent == []


async def test_matrix_says_why_there_is_no_reaction() -> None:
    async with matrix_cast.server() as matrix, matrix_cast.channel_of(matrix) as bot:
        matrix.room(matrix_cast.ROOM, matrix_cast.ANN)
        matrix.room("!secret:test", matrix_cast.ANN, encryption="m.megolm.v1.aes-sha2")
        number = matrix.say("done?")
        for lane, message, emoji, told in (
            (matrix_cast.lane_in(), number, "yes", "one emoji of Unicode"),
            (matrix_cast.lane_in(), "7", "👍", "not an event"),
            (matrix_cast.lane_in("!secret:test"), number, "👍", "encrypted"),
            (matrix_cast.lane_in("!other:test"), number, "👍", "may not react"),
            (matrix_cast.lane_in(account="@other:test"), number, "👍", "not set up here"),
        ):
            with pytest.raises(ToolError, match=told):
                await bot.react(lane, target(message), emoji)
        assert matrix.reactions == []


async def test_a_reaction_at_nostr_is_one_event_for_everybody_however_often_it_is_published() -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet()
        [asked] = scene.inbox.kept.values()
        lane = Lane("nostr", asked.account, scene.conversation, lane_key(scene.conversation))
        message = ReactionTarget(asked.provider_id or "", asked.sender, AT_MS)
        agent = NostrPerson("agent", lambda: 0)
        for _ in range(2):
            async with scene.sending() as channel:
                await channel.react(lane, message, "👍")
                await own.wait_for(lambda: bool(agent.read_reactions(own)))
        [rumor] = scene.ann.read_reactions(theirs)
        assert len(theirs.accepted) == 2, "each is another wrap of the same event"
    assert (rumor["kind"], rumor["content"], rumor["created_at"]) == (7, "👍", AT_MS // 1_000)
    assert rumor["tags"] == [["e", asked.provider_id], ["p", scene.ann.public], ["k", "14"]]


async def test_nostr_says_why_there_is_no_reaction() -> None:
    async with NostrRelayServer() as own, NostrRelayServer() as theirs:
        scene = Scene(own, theirs, MemoryInbox(), VirtualClock())
        await scene.meet()
        [asked] = scene.inbox.kept.values()
        here = Lane("nostr", asked.account, scene.conversation, "root")
        number = asked.provider_id or ""
        async with scene.sending() as channel:
            for lane, message, emoji, told in (
                (here, number, "yes", "one emoji of Unicode"),
                (here, "7", "👍", "no id of Nostr"),
                (here._replace(account="ab" * 32), number, "👍", "not set up here"),
                (here._replace(conversation="nostr:direct:other"), number, "👍", "who takes part"),
            ):
                with pytest.raises(ToolError, match=told):
                    await channel.react(lane, ReactionTarget(message, asked.sender, AT_MS), emoji)
            await theirs.close()
            with pytest.raises(ToolError, match="no relay"):
                await channel.react(here, ReactionTarget(number, asked.sender, AT_MS), "👍")
            await theirs.open()
        assert scene.ann.read_reactions(theirs) == []
