"""Matrix in trouble, by a seed: requests fail, the disk refuses, the process ends; in both directions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.matrix_cast import ANN, BOB, channel_of, contacted, lane_in, listening, reply_of

from keepsaid.adapters.channels.matrix.channel import MatrixChannel
from keepsaid.adapters.channels.matrix.contents import REPEATED
from keepsaid.domain.reply import Delivered
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.testing.clock import FastClock
from keepsaid.testing.listening import MemoryInbox
from keepsaid.testing.providers.matrix import MatrixServer
from keepsaid.testing.providers.mischief import harmless, mischief_of

ROOMS = ("!r0:test", "!r1:test", "!r2:test")


@pytest.mark.parametrize("seed", range(5))
async def test_nothing_is_lost_or_repeated_whatever_goes_wrong(seed: int) -> None:
    """People talk while answers are sent; in the midst of it the process ends, and the device of the token changes."""
    clock, inbox, chance = FastClock(7200), MemoryInbox(), random.Random(seed)
    said: dict[str, list[str]] = {room: [] for room in ROOMS}
    async with MatrixServer(now_ms=clock.now_ms) as matrix:
        for room in ROOMS:
            matrix.room(room, ANN, BOB)
        async with listening(matrix, inbox, clock):
            await contacted(inbox)
        matrix.mischief = mischief_of(seed, 0.3)
        inbox.refuses = lambda: chance.random() < 0.2
        number = 0
        for life in range(3):
            if life == 2:
                matrix.device = "ANOTHER"
            async with listening(matrix, inbox, clock), channel_of(matrix, clock) as channel:
                for _ in range(6):
                    for _ in range(chance.randrange(1, 5)):
                        room = chance.choice(ROOMS)
                        said[room].append(f"{room} {len(said[room])}")
                        matrix.say(said[room][-1], room)
                    await deliver(channel, clock, number, chance)
                    number += 1
        matrix.mischief, inbox.refuses = harmless, lambda: False
        async with listening(matrix, inbox, clock):
            await inbox.wait_for_count(sum(map(len, said.values())))
    for room, texts in said.items():
        assert [one.text for one in inbox.kept.values() if one.conversation == f"matrix:{room}"] == texts
    check_sent(matrix, number)


async def deliver(channel: MatrixChannel, clock: FastClock, number: int, chance: random.Random) -> None:
    """Send a reply of two parts as the outbox does: the same bytes again, marked once it may have arrived."""
    reply = reply_of(text_of(number), lane_in(ROOMS[number % 3]), number=number, tried_from=clock.now_ms())
    bodies = await channel.split(reply)
    for n, body in enumerate(bodies):
        part, is_sent = ReplyPart(number, n, body), False
        while not is_sent:
            result = await channel.send_part(reply, part)
            assert result.outcome in (Delivered.CONFIRMED, Delivered.RETRY, Delivered.DOUBT)
            is_sent = result.outcome is Delivered.CONFIRMED
            part = replace(part, possible_duplicate=part.possible_duplicate or result.outcome is Delivered.DOUBT)
            if not is_sent:
                await clock.wait(asyncio.Event(), chance.choice([1_000, 1_000, 1_000, 1_500_000]))


def text_of(number: int) -> str:
    return f"answer {number} " + "x" * 20_000


def check_sent(matrix: MatrixServer, count: int) -> None:
    """Each part is in its own room, in order, and once; or else the repeat says that it may be one."""
    keys: Sequence[str] = [one.txn for one in matrix.sent if not one.body.startswith(REPEATED)]
    assert len(keys) == len(set(keys))
    firsts = list(dict.fromkeys(one.txn for one in matrix.sent))
    assert firsts == [f"k{number:x}.{n}" for number in range(count) for n in range(2)]
    assert all(one.room == ROOMS[int(one.txn[1:].split(".")[0], 16) % 3] for one in matrix.sent)


async def test_a_restart_in_the_midst_of_many_messages_settles_all() -> None:
    clock, inbox = FastClock(180), MemoryInbox()
    rooms = [f"!m{n}:test" for n in range(5)]
    async with MatrixServer(now_ms=clock.now_ms) as matrix:
        for room in rooms:
            matrix.room(room, ANN, BOB)
        async with listening(matrix, inbox, clock):
            await contacted(inbox)
            for n in range(250):
                matrix.say(f"{n}", rooms[n % 5])
            await inbox.wait_for_count(1)
        for n in range(250, 500):
            matrix.say(f"{n}", rooms[n % 5])
        async with listening(matrix, inbox, clock), asyncio.timeout(5):
            await inbox.wait_for_count(500)
    for n, room in enumerate(rooms):
        kept = [one.text for one in inbox.kept.values() if one.conversation == f"matrix:{room}"]
        assert kept == [f"{m}" for m in range(n, 500, 5)]
