"""E-mail in trouble, by a seed: commands fail, connections are lost, the disk refuses, the process ends."""

from __future__ import annotations

import asyncio
import random

import pytest
from tests.unit.email_cast import channel_of, idling, lane_with, listening, part_of, reply_of

from keepsaid.domain.reply import Delivered
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.testing.clock import FastClock, VirtualClock
from keepsaid.testing.listening import MemoryInbox
from keepsaid.testing.providers.email_imap import ImapServer, mail_from
from keepsaid.testing.providers.email_smtp import SmtpServer
from keepsaid.testing.providers.mischief import harmless, mischief_of

PEOPLE = ("alice@example.net", "bob@example.net", "carol@example.com")


def _mail(chance: random.Random, n: int, last: dict[str, str]) -> bytes:
    """A mail of somebody, in a thread of theirs or in a new one."""
    person = chance.choice(PEOPLE)
    headers = {"References": f"<{last[person]}>"} if person in last and chance.random() < 0.5 else {}
    last.setdefault(person, f"m{n}@example.net")
    return mail_from(person, f"message {n}", f"m{n}@example.net", f"Thread of {person}", **headers)


def _words(inbox: MemoryInbox) -> list[str]:
    return [text.rpartition("\n")[2] for text in inbox.texts]


def _check(inbox: MemoryInbox, count: int) -> None:
    """Nothing is lost, all are in order, and each is in a conversation with its sender."""
    assert _words(inbox) == [f"message {n}" for n in range(count)]
    for one in inbox.kept.values():
        assert one.conversation == f"email:{one.sender}"
        assert one.payload is not None
        assert f"From: {one.sender}".encode() in one.payload
        assert one.topic is not None


@pytest.mark.parametrize("seed", range(5))
async def test_nothing_is_lost_whatever_goes_wrong(seed: int) -> None:
    """Commands fail, connections are lost in the midst of mails, the folder is numbered again, the disk refuses."""
    clock, inbox = FastClock(2000), MemoryInbox()
    chance, last = random.Random(seed), dict[str, str]()
    async with ImapServer(now_ms=clock.now_ms) as imap, listening(imap, inbox, clock):
        await idling(imap)
        imap.mischief = mischief_of(seed, 0.25)
        inbox.refuses = lambda: chance.random() < 0.2
        for n in range(30):
            imap.deliver(_mail(chance, n, last))
            if chance.random() < 0.3:
                await inbox.wait_for(lambda: len(inbox.kept) >= n - 2)  # noqa: B023 - waited for at once
            if n % 10 == 9:
                imap.renumber(first=chance.randrange(1, 9))
                await imap.drop()
        imap.mischief, inbox.refuses = harmless, lambda: False
        await inbox.wait_for(lambda: len(inbox.kept) == 30)
    _check(inbox, 30)


@pytest.mark.parametrize("seed", range(4))
async def test_a_process_that_ends_anywhere_loses_nothing(seed: int) -> None:
    """What comes until the next start is read then."""
    clock, inbox = FastClock(2000), MemoryInbox()
    chance, last = random.Random(seed), dict[str, str]()
    number = 0
    async with ImapServer(now_ms=clock.now_ms) as imap:
        async with listening(imap, inbox, clock):
            await idling(imap)
        for _ in range(8):
            async with listening(imap, inbox, clock):
                for _ in range(chance.randrange(1, 6)):
                    imap.deliver(_mail(chance, number, last))
                    number += 1
                if chance.random() < 0.5:
                    await imap.wait_for(lambda: imap.calls.get("UID FETCH", 0) % 3 == 1 or imap.idling == 1)
                for _ in range(chance.randrange(1, 60)):
                    await asyncio.sleep(0)
            imap.deliver(_mail(chance, number, last))
            number += 1
        async with listening(imap, inbox, clock):
            await inbox.wait_for(lambda: len(inbox.kept) == number)
    _check(inbox, number)


@pytest.mark.parametrize("seed", range(5))
async def test_every_answer_arrives_and_a_repeat_has_the_same_id(seed: int) -> None:
    """Ten answers while steps fail in every way; each goes to the person it is for, and in its order."""
    clock = VirtualClock()
    chance = random.Random(seed)
    async with SmtpServer(mischief_of(seed, 0.3)) as smtp:
        for number in range(1, 11):
            person = chance.choice(PEOPLE)
            channel = channel_of(smtp)
            reply = reply_of(f"answer {number}", lane_with(person), number=number)
            part = await part_of(channel, reply)
            in_doubt = False
            for _ in range(100):
                result = await channel.send_part(reply, ReplyPart(number, 0, part.body, possible_duplicate=in_doubt))
                if result.outcome is Delivered.CONFIRMED:
                    break
                assert result.outcome in (Delivered.RETRY, Delivered.DOUBT)
                in_doubt |= result.outcome is Delivered.DOUBT
                await clock.advance(result.retry_after_ms or 1_000)
            assert result.provider_id == f"k{number:x}.0@example.org"
            copies = [one for one in smtp.sent if one.message_id == result.provider_id]
            assert copies
            assert len(copies) == 1 or in_doubt
            assert {(one.recipient, one.raw) for one in copies} == {(person, copies[0].raw)}
        order = list(dict.fromkeys(one.message_id for one in smtp.sent))
        assert order == [f"k{number:x}.0@example.org" for number in range(1, 11)]


async def test_five_hundred_mails_are_read_within_seconds() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    chance, last = random.Random(1), dict[str, str]()
    async with ImapServer(now_ms=clock.now_ms) as imap:
        async with listening(imap, inbox, clock):
            await idling(imap)
        for n in range(500):
            imap.deliver(_mail(chance, n, last))
        async with asyncio.timeout(5), listening(imap, inbox, clock):
            await inbox.wait_for(lambda: len(inbox.kept) == 500)
    _check(inbox, 500)
