"""Slack in trouble, by chance and by a seed: requests fail, sockets are lost, the disk refuses, the process ends."""

from __future__ import annotations

import asyncio
import random

import pytest
from tests.unit.slack_cast import channel_of, lane_in, listening, reply_of, settled, two_open

from keepsaid.domain.reply import Delivered
from keepsaid.testing.clock import FastClock
from keepsaid.testing.listening import MemoryInbox, never
from keepsaid.testing.providers.mischief import harmless, mischief_of
from keepsaid.testing.providers.slack import SlackServer
from keepsaid.testing.providers.slack_sockets import SocketAct, acts_of


@pytest.mark.parametrize("seed", range(6))
async def test_nothing_is_lost_whatever_goes_wrong(seed: int) -> None:
    """Requests fail, sockets are lost, frames are garbled or come twice, and the disk refuses; in both directions."""
    clock, inbox = FastClock(60.0), MemoryInbox()
    chance = random.Random(seed)
    async with SlackServer(now_ms=clock.now_ms) as slack, channel_of(slack, clock) as channel:
        slack.sockets.resend_s, slack.sockets.retries_max = 0.02, 50
        async with listening(slack, inbox, clock):
            await two_open(slack)
            for place in ("C1", "C2", "D1"):
                slack.say("hello", channel=place)
            await settled(slack)
            slack.mischief, slack.sockets.act = mischief_of(seed, 0.2), acts_of(seed)
            inbox.refuses = lambda: chance.random() < 0.2
            for number in range(30):
                slack.say(f"message {number}", channel=chance.choice(["C1", "C2", "D1"]))
                if number % 5 == 4:
                    await slack.wait_for(lambda: slack.sockets.waiting < 3)
                    await channel.send(reply_of(f"answer {number}", lane_in("C1"), number=number))
                if number % 15 == 14:
                    slack.sockets.drop()
            slack.mischief, slack.sockets.act = harmless, lambda _number: SocketAct.DELIVER
            inbox.refuses = never
            await inbox.wait_for(lambda: len(inbox.kept) == 33)
            assert sorted(inbox.texts[3:]) == sorted(f"message {number}" for number in range(30))
            assert (await channel.send(reply_of("at last"))).outcome is Delivered.CONFIRMED


@pytest.mark.parametrize("seed", range(4))
async def test_a_process_that_ends_anywhere_loses_nothing(seed: int) -> None:
    """It ends while events come, are stored or are acknowledged, and what is said until the next start is read then."""
    clock, inbox = FastClock(60.0), MemoryInbox()
    chance = random.Random(seed)
    async with SlackServer(now_ms=clock.now_ms) as slack:
        slack.sockets.resend_s = 0.02
        async with listening(slack, inbox, clock):
            await two_open(slack)
            for place in ("C1", "D1"):
                slack.say("hello", channel=place)
            await settled(slack)
        number = 0
        for _ in range(8):
            async with listening(slack, inbox, clock):
                steps = chance.randrange(1, 40)
                for _ in range(chance.randrange(1, 6)):
                    slack.say(f"message {number}", channel=chance.choice(["C1", "D1"]))
                    number += 1
                if chance.random() < 0.5:
                    await slack.wait_for(lambda: slack.sockets.waiting == 0)
                for _ in range(steps):
                    await asyncio.sleep(0)
            slack.say(f"message {number}", channel="C1")
            number += 1
        async with listening(slack, inbox, clock):
            await inbox.wait_for(lambda: len(inbox.kept) == number + 2)
        assert sorted(inbox.texts) == sorted(["hello", "hello", *(f"message {n}" for n in range(number))])
