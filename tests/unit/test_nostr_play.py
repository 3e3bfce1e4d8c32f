"""Nostr in trouble, by a seed: relays fail, lie and replay, the disk refuses, the process ends; and a real relay."""

from __future__ import annotations

import asyncio
import importlib
import json
import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.unit.nostr_cast import AGENT, hear, listening, reply_of, sending
from tests.unit.test_nostr import now_s, person_of

from keepsaid.adapters.channels.nostr.channel import NostrChannel
from keepsaid.adapters.channels.nostr.socket import NostrSocket, open_relay
from keepsaid.adapters.system.machine import SystemClock
from keepsaid.domain.reply import Delivered, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.testing.clock import FastClock
from keepsaid.testing.listening import MemoryInbox
from keepsaid.testing.providers.mischief import mischief_of
from keepsaid.testing.providers.nostr import NostrRelayServer, delivery_acts_of
from keepsaid.testing.providers.nostr_people import NostrPerson


class Waiting:
    """A reply of the outbox: its parts, kept before the first is sent, and how many of them are confirmed."""

    def __init__(self, reply: StoredReply, bodies: Sequence[str]) -> None:
        self.reply, self.bodies, self.sent = reply, bodies, 0


class Play:
    """Ann and Bob write to the account, which answers; `number` counts what they wrote."""

    def __init__(self, seed: int, relay: NostrRelayServer, theirs: NostrRelayServer) -> None:
        self.clock, self.inbox = FastClock(225), MemoryInbox()
        self.chance = random.Random(seed)
        self.relay, self.theirs = relay, theirs
        self.people = {name: person_of(name, self.clock) for name in ("ann", "bob")}
        self.rooms: dict[str, str] = {}
        self.number = 0
        self.at_s = 0

    async def meet(self) -> None:
        """Let everybody write once, and name the relay on which they read."""
        for name, person in self.people.items():
            self.rooms[name] = await hear(self.inbox, self.clock, self.relay, person)
            await self.relay.store(person.relay_list(self.theirs.url))
        self.at_s = now_s(self.clock)

    async def write(self) -> None:
        """Let somebody write; each message is a second younger than the one before."""
        name = self.chance.choice(sorted(self.people))
        self.at_s += 1
        await self.relay.store(
            self.people[name].write(f"{name} {self.number}", AGENT, at_s=min(self.at_s, now_s(self.clock)))[1]
        )
        self.number += 1

    async def deliver(self, channel: NostrChannel, waiting: Waiting) -> None:
        """Send parts until all are confirmed, as the outbox does."""
        for n, body in enumerate(waiting.bodies):
            while n >= waiting.sent:
                result = await channel.send_part(waiting.reply, ReplyPart(waiting.reply.id, n, body))
                assert result.outcome is not Delivered.DEAD, result.detail
                if result.outcome is Delivered.CONFIRMED:
                    waiting.sent = n + 1
                else:
                    await self.clock.wait(asyncio.Event(), result.retry_after_ms or 1_000)

    async def deliver_all(self, channel: NostrChannel, outbox: list[Waiting]) -> None:
        """Send all replies, one after the other."""
        for waiting in outbox:
            await self.deliver(channel, waiting)

    def expect_all(self) -> None:
        """Nothing is lost or twice, everything is in its conversation and in the order of its author."""
        said = [one for one in self.inbox.kept.values() if one.text != "hello"]
        assert len(said) == self.number
        for name, person in self.people.items():
            mine = [one for one in said if one.sender == person.public]
            assert {one.conversation for one in mine} <= {self.rooms[name]}
            assert sorted(one.text for one in mine) == sorted({one.text for one in mine})
            assert all(one.text.startswith(name) for one in mine)


@pytest.mark.parametrize("seed", range(5))
async def test_nothing_is_lost_or_repeated_whatever_goes_wrong(seed: int) -> None:
    async with NostrRelayServer() as relay, NostrRelayServer() as theirs:
        play = Play(seed, relay, theirs)
        await play.meet()
        theirs.mischief, relay.mischief = mischief_of(seed, 0.3), mischief_of(seed, 0.1)
        relay.act, relay.replays_all = delivery_acts_of(seed, 0.1), seed % 2 == 0
        play.inbox.refuses = lambda: play.chance.random() < 0.2
        replies = 0
        async with (
            listening(play.inbox, play.clock, relay.url),
            sending(play.inbox, play.clock, relay.url, theirs.url) as channel,
        ):
            for n in range(18):
                await play.write()
                if n % 3 == 2:
                    name = sorted(play.people)[n % 2]
                    reply = reply_of(f"answer {n} " + "x" * 30_000 * (n % 6 == 5), play.rooms[name], number=n)
                    waiting = Waiting(reply, await channel.split(reply))
                    await play.deliver(channel, waiting)
                    replies += waiting.sent
                if n % 8 == 7:
                    relay.drop()
            await play.inbox.wait_for(lambda: len(play.inbox.kept) == play.number + 2)
        play.expect_all()
        expect_answers(play, replies)


def expect_answers(play: Play, parts: int) -> None:
    """Everybody read their own answers once, in order, and the relay keeps one event for each part."""
    found = 0
    for name, person in play.people.items():
        texts = [text.strip("x ") for text in person.read_texts(play.theirs)]
        numbers = [int(text.removeprefix("answer ")) for text in texts if text]
        assert numbers == sorted(set(numbers))
        assert all(sorted(play.people)[number % 2] == name for number in numbers)
        found += len(texts)
    assert found == parts == len({event["id"] for event in play.theirs.accepted if event["kind"] == 1_059})


@pytest.mark.parametrize("seed", range(5))
async def test_process_that_ends_anywhere_loses_nothing(seed: int) -> None:
    """It ends while messages come, are stored or are sent; the parts of a reply are kept as the outbox keeps them."""
    async with NostrRelayServer() as relay, NostrRelayServer() as theirs:
        play = Play(seed, relay, theirs)
        await play.meet()
        theirs.mischief = mischief_of(seed, 0.3)
        outbox: list[Waiting] = []
        for n in range(6):
            async with (
                listening(play.inbox, play.clock, relay.url),
                sending(play.inbox, play.clock, relay.url, theirs.url) as channel,
            ):
                reply = reply_of(f"answer {n}", play.rooms[sorted(play.people)[n % 2]], number=n)
                outbox.append(Waiting(reply, await channel.split(reply)))
                task = asyncio.create_task(play.deliver_all(channel, outbox))
                for _ in range(play.chance.randrange(1, 4)):
                    await play.write()
                for _ in range(play.chance.randrange(1, 60)):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await play.write()
        async with (
            listening(play.inbox, play.clock, relay.url),
            sending(play.inbox, play.clock, relay.url, theirs.url) as channel,
        ):
            await play.deliver_all(channel, outbox)
            await play.inbox.wait_for(lambda: len(play.inbox.kept) == play.number + 2)
        play.expect_all()
        expect_answers(play, len(outbox))


async def test_order_of_a_conversation_is_kept_when_the_relay_loses_the_connection() -> None:
    async with NostrRelayServer() as relay, NostrRelayServer() as theirs:
        play = Play(0, relay, theirs)
        await play.meet()
        relay.act = delivery_acts_of(3, 0.1)
        async with listening(play.inbox, play.clock, relay.url):
            for n in range(20):
                at = now_s(play.clock) + n
                await relay.store(play.people["ann"].write(f"{n}", AGENT, at_s=at)[1])
                if n % 6 == 5:
                    relay.drop()
            await play.inbox.wait_for(lambda: len(play.inbox.kept) == 22)
        assert [text for text in play.inbox.texts if text != "hello"] == [f"{n}" for n in range(20)]


@pytest.mark.parametrize("seed", range(3))
async def test_one_of_two_relays_is_enough_for_a_message(seed: int) -> None:
    """Each message reaches one relay or both; both lose connections, and one of them sends everything again."""
    async with NostrRelayServer() as relay, NostrRelayServer() as theirs, NostrRelayServer() as second:
        play = Play(seed, relay, theirs)
        await play.meet()
        relay.act, second.act = delivery_acts_of(seed, 0.05), delivery_acts_of(seed + 100, 0.05)
        second.replays_all = True
        async with listening(play.inbox, play.clock, relay.url, second.url):
            for n in range(24):
                event = play.people["ann"].write(f"ann {n}", AGENT)[1]
                for one in play.chance.choice(([relay], [second], [relay, second])):
                    await one.store(event)
                if n % 8 == 7:
                    play.chance.choice((relay, second)).drop()
            play.number = 24
            await play.inbox.wait_for(lambda: len(play.inbox.kept) == 26)
        play.expect_all()


@pytest.mark.parametrize("asks", [False, True])
async def test_relay_of_nostr_sdk_takes_and_gives_messages(asks: bool) -> None:
    """The relay that nostr-sdk brings is one that was written by others; with `asks` it wants NIP-42 for all."""
    sdk: Any = importlib.import_module("nostr_sdk")

    builder = sdk.LocalRelayBuilder()
    if asks:
        builder = builder.nip42(sdk.LocalRelayBuilderNip42(mode=sdk.LocalRelayBuilderNip42Mode.BOTH))
    relay = builder.build()
    await relay.run()
    try:
        url = str(await relay.url()).rstrip("/")
        clock, inbox = SystemClock(), MemoryInbox()
        ann = NostrPerson("ann", lambda: clock.now_ms() // 1_000)
        socket = await open_relay(url, ann.keys, clock, authenticates=True)
        await publish(socket, ann.relay_list(url))
        async with listening(inbox, clock, url):
            await inbox.wait_for(lambda: "first" in inbox.stored)
            await publish(socket, ann.write("hello", AGENT)[1])
            await inbox.wait_for(lambda: inbox.texts == ["hello"])
        await publish(socket, ann.write("missed", AGENT)[1])
        async with listening(inbox, clock, url):
            await inbox.wait_for(lambda: inbox.texts == ["hello", "missed"])
        async with sending(inbox, clock, url) as channel:
            reply = reply_of("an answer", next(iter(inbox.kept.values())).conversation)
            part = ReplyPart(1, 0, (await channel.split(reply))[0])
            for _ in range(2):
                assert (await channel.send_part(reply, part)).outcome is Delivered.CONFIRMED
        answers = [ann.keys.open_wrap(one) for one in await socket.search({"kinds": [1_059], "#p": [ann.public]})]
        assert [one.source["content"] for one in answers] == ["an answer"]
        await socket.close()
    finally:
        relay.shutdown()


async def publish(socket: NostrSocket, event: Mapping[str, Any]) -> None:
    await socket.publish(str(event["id"]), json.dumps(event))
