"""E-mail that comes in: each mail is stored once, in its order, with the place behind it; no flag is changed."""

from __future__ import annotations

import pytest
from tests.unit.email_cast import ALICE, idling, listening

from keepsaid.domain.line import LineState
from keepsaid.domain.message import UNREADABLE
from keepsaid.testing.clock import FastClock, VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.email_imap import ImapServer, mail_from
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other

_DAY_MS = 86_400_000


def mail(n: int, **headers: str) -> bytes:
    return mail_from(ALICE, f"message {n}", f"m{n}@example.net", **headers)


def words(inbox: MemoryInbox) -> list[str]:
    return [text.rpartition("\n")[2] for text in inbox.texts]


async def test_the_first_contact_takes_no_history_and_then_each_mail_once() -> None:
    clock, inbox, shown = VirtualClock(), MemoryInbox(), LineLog()
    async with ImapServer() as imap:
        imap.deliver(mail(0))
        async with listening(imap, inbox, clock, shown):
            await shown.until_now(LineState.UP)
            await idling(imap)
            assert inbox.stored["uid:INBOX"] == "1:1"
            for n in range(1, 4):
                imap.deliver(mail(n))
                await inbox.wait_for(lambda n=n: len(inbox.kept) == n)  # type: ignore[misc]
                await idling(imap)
    assert words(inbox) == ["message 1", "message 2", "message 3"]
    assert inbox.stored["uid:INBOX"] == "1:4"
    assert inbox.repeats == 0
    assert imap.seen == set()
    [first, *_] = inbox.kept.values()
    assert (first.sender, first.conversation, first.topic) == (ALICE, f"email:{ALICE}", "m1@example.net")
    assert (first.external_id, first.provider_id) == ("email:m1@example.net", "m1@example.net")
    assert first.direct
    assert first.addressed
    assert first.payload == imap.mails[1].raw


async def test_what_came_while_nobody_listened_is_read_in_its_order() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with ImapServer() as imap:
        async with listening(imap, inbox, clock):
            await idling(imap)
        for n in range(120):
            imap.deliver(mail(n))
        imap.delete(3)
        async with listening(imap, inbox, clock):
            await idling(imap)
    assert words(inbox) == [f"message {n}" for n in range(120) if n != 2]
    assert inbox.repeats == 0


async def test_a_mail_that_is_announced_with_another_answer_is_read_at_once() -> None:
    """Most servers announce a mail once, with the answer to whatever command comes next; IDLE then says nothing."""
    inbox = MemoryInbox()

    def deliver_more(method: str, _number: int) -> Mischief:
        if method == "UID FETCH" and imap.next_uid == 2:
            imap.deliver(mail(2))
        return Mischief.ACCEPT

    async with ImapServer(deliver_more) as imap, listening(imap, inbox, VirtualClock()):
        await idling(imap)
        imap.deliver(mail(1))
        await inbox.wait_for(lambda: len(inbox.kept) == 2)
    assert words(inbox) == ["message 1", "message 2"]
    assert inbox.repeats == 0


async def test_the_last_mail_is_not_read_again_and_again() -> None:
    """A server answers `n:*` with its last mail, whatever its number is."""
    clock, inbox = FastClock(2000), MemoryInbox()
    async with ImapServer() as imap:
        imap.idles = False
        async with listening(imap, inbox, clock):
            await imap.wait_for(lambda: imap.calls.get("UID SEARCH") == 1)
            imap.deliver(mail(1))
            await imap.wait_for(lambda: imap.calls["UID SEARCH"] == 6)
            await inbox.wait_for(lambda: len(inbox.kept) == 1)
    assert inbox.repeats == 0
    assert imap.calls["UID FETCH"] == 2


async def test_a_server_that_notifies_nobody_is_looked_at_each_ten_minutes() -> None:
    clock, inbox = FastClock(2000), MemoryInbox()
    async with ImapServer() as imap:
        imap.deaf = True
        async with listening(imap, inbox, clock):
            await idling(imap)
            imap.deliver(mail(1))
            await inbox.wait_for(lambda: len(inbox.kept) == 1)
        # ten times a minute, and the next wait may have begun
        assert imap.calls["IDLE"] in (10, 11)


async def test_an_idle_hour_takes_less_than_eighty_requests_and_no_write() -> None:
    clock, inbox = FastClock(2000), MemoryInbox()
    async with ImapServer() as imap, listening(imap, inbox, clock):
        await idling(imap)
        before, puts = sum(imap.calls.values()), inbox.calls
        start = clock.monotonic_ms()
        await imap.wait_for(lambda: clock.monotonic_ms() - start >= 3_600_000)
        assert sum(imap.calls.values()) - before <= 80
        assert inbox.calls == puts


async def test_mails_that_are_numbered_again_are_read_again_and_known_by_their_keys() -> None:
    """None is taken from before the first contact, or from more than 30 days ago."""
    clock, inbox = VirtualClock(), MemoryInbox()
    now = clock.now_ms()
    async with ImapServer(now_ms=clock.now_ms) as imap:
        imap.deliver(mail(0), now - 2 * _DAY_MS)
        async with listening(imap, inbox, clock):
            await idling(imap)
            imap.deliver(mail(1))
            await inbox.wait_for(lambda: len(inbox.kept) == 1)
            await idling(imap)
        imap.deliver(mail(2))
        imap.delete(1)
        imap.mails.insert(0, imap.mails[0].__class__(1, mail(8), now - _DAY_MS))
        imap.renumber(first=1)
        async with listening(imap, inbox, clock):
            await idling(imap)
            imap.deliver(mail(3))
            await inbox.wait_for(lambda: len(inbox.kept) == 3)
    assert words(inbox) == ["message 1", "message 2", "message 3"]
    assert inbox.repeats == 1
    assert inbox.stored["uid:INBOX"] == "2:4"


async def test_a_mail_is_not_behind_the_cursor_before_it_is_stored() -> None:
    clock, inbox = FastClock(2000), MemoryInbox()
    async with ImapServer() as imap, listening(imap, inbox, clock):
        await idling(imap)
        inbox.refuses = lambda: inbox.calls < 6
        imap.deliver(mail(1))
        await imap.wait_for(lambda: imap.calls.get("LOGIN", 0) >= 3)
        assert inbox.stored["uid:INBOX"] == "1:0"
        await inbox.wait_for(lambda: len(inbox.kept) == 1)
    assert words(inbox) == ["message 1"]


async def test_a_mail_that_is_too_large_is_not_fetched_and_kept_by_its_headers() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with ImapServer() as imap, listening(imap, inbox, clock):
        await idling(imap)
        imap.sizes[1] = 25_000_001
        imap.deliver(mail(1))
        await inbox.wait_for(lambda: len(inbox.kept) == 1)
        await idling(imap)
        imap.deliver(mail(2))
        await inbox.wait_for(lambda: len(inbox.kept) == 2)
        large, small = inbox.kept.values()
    assert large.event == UNREADABLE
    assert "25,000,001 bytes" in large.text
    assert large.payload is not None
    assert b"Subject: Hello" in large.payload
    assert b"message 1" not in large.payload
    assert small.text.endswith("message 2")


async def test_a_mail_that_the_server_refuses_holds_up_nothing() -> None:
    clock, inbox = FastClock(2000), MemoryInbox()
    async with ImapServer() as imap, listening(imap, inbox, clock):
        await idling(imap)
        imap.refused.add(2)
        for n in range(1, 4):
            imap.deliver(mail(n))
        await inbox.wait_for(lambda: len(inbox.kept) == 3)
        assert [one.event for one in inbox.kept.values()] == ["", UNREADABLE, ""]
        assert inbox.stored["uid:INBOX"] == "1:3"


@pytest.mark.parametrize("act", [one for one in Mischief if one is not Mischief.ACCEPT])
async def test_a_fetch_that_goes_wrong_is_made_again(act: Mischief) -> None:
    clock, inbox, shown = FastClock(2000), MemoryInbox(), LineLog()
    trouble = one_after_the_other(act, act, method="UID FETCH")
    async with ImapServer(trouble) as imap, listening(imap, inbox, clock, shown):
        await idling(imap)
        imap.deliver(mail(1))
        imap.deliver(mail(2))
        await inbox.wait_for(lambda: len(inbox.kept) == 2)
        await shown.until_now(LineState.UP)
    assert words(inbox) == ["message 1", "message 2"]
    assert not any(one.event for one in inbox.kept.values())


async def test_the_flags_of_mails_mean_nothing() -> None:
    """Another program may read the mailbox at the same time, and mark mails as read."""
    clock, inbox = VirtualClock(), MemoryInbox()
    async with ImapServer() as imap, listening(imap, inbox, clock):
        await idling(imap)
        imap.seen.add(1)
        imap.deliver(mail(1))
        await inbox.wait_for(lambda: len(inbox.kept) == 1)
        assert imap.calls["EXAMINE"] == 1
        assert "SELECT" not in imap.calls


async def test_a_server_that_does_not_name_the_next_uid_is_asked_for_the_last() -> None:
    clock, inbox = VirtualClock(), MemoryInbox()
    async with ImapServer() as imap:
        imap.names_next = False
        imap.deliver(mail(0))
        async with listening(imap, inbox, clock):
            await idling(imap)
            assert inbox.stored["uid:INBOX"] == "1:1"
            imap.deliver(mail(1))
            await inbox.wait_for(lambda: len(inbox.kept) == 1)
    assert words(inbox) == ["message 1"]
