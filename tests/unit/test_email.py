"""E-mail that goes out: to one person, in their thread, under an id made before; the result of every refusal."""

from __future__ import annotations

import pytest
from tests.unit.email_cast import ACCOUNT, ALICE, OPEN, channel_of, folder_of, lane_with, part_of, reply_of, server_of

from keepsaid.adapters.channels.email.account import MailServer
from keepsaid.adapters.channels.email.channel import EmailChannel
from keepsaid.adapters.channels.email.compose import html_of
from keepsaid.adapters.channels.email.setup import look_up
from keepsaid.adapters.channels.email.smtp import SmtpSender
from keepsaid.adapters.channels.email.threads import EmailThreads
from keepsaid.adapters.channels.email.trust import MailTrust
from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.domain.reply import Delivered, SendResult
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import ChannelError, StoreError
from keepsaid.ports.channel import MAY_SEND, PartedChannel
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import MemoryInbox
from keepsaid.testing.providers.email_imap import ImapServer
from keepsaid.testing.providers.email_smtp import USER, SmtpServer
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other


async def inbox_with_thread(*ids: str, subject: str = "Hello", person: str = ALICE) -> MemoryInbox:
    """An inbox that knows a thread of mails with these ids; the first is its root."""
    inbox = MemoryInbox()
    threads = EmailThreads(USER, inbox)
    await threads.load()
    await inbox.put_all((), (threads.note(person, ids[0].lower(), subject, ids),))
    return inbox


async def test_an_answer_goes_to_its_thread_under_the_id_of_its_part() -> None:
    inbox = await inbox_with_thread("m1@example.net", "m2@Example.NET")
    async with SmtpServer() as smtp:
        channel = channel_of(smtp, inbox)
        assert isinstance(channel, PartedChannel)
        reply = reply_of("**yes**\n.dot\n", number=255, answers="m2@example.net")
        result = await channel.send_part(reply, await part_of(channel, reply))
        [sent] = smtp.sent
    assert result == SendResult(Delivered.CONFIRMED, "", "kff.0@example.org")
    assert (sent.sender, sent.recipient, sent.message_id) == (USER, ALICE, "kff.0@example.org")
    assert str(sent.mail["To"]) == ALICE
    assert sent.mail["Cc"] is None
    assert str(sent.mail["From"]) == f"Keepsaid <{USER}>"
    assert str(sent.mail["Subject"]) == "Re: Hello"
    assert str(sent.mail["In-Reply-To"]) == "<m2@Example.NET>"
    assert str(sent.mail["References"]) == "<m1@example.net> <m2@Example.NET>"
    assert str(sent.mail["Auto-Submitted"]) == "auto-replied"
    assert sent.text == "**yes**\n.dot"
    assert "<strong>yes</strong>" in sent.raw.decode()


async def test_every_try_sends_the_same_bytes() -> None:
    """The id is made once, so a receiver can show a repeat once."""
    async with SmtpServer(one_after_the_other(Mischief.RESET_AFTER, method="DATA")) as smtp:
        channel = channel_of(smtp)
        reply = reply_of("yes")
        first = await channel.send_part(reply, part := await part_of(channel, reply))
        assert first.outcome is Delivered.DOUBT
        repeat = ReplyPart(part.reply_id, part.n, part.body, possible_duplicate=True)
        assert (await channel.send_part(reply, repeat)).outcome is Delivered.CONFIRMED
        one, other = smtp.sent
        assert one.raw == other.raw


_REFUSALS = [
    ("GREETING", "554 no service", Delivered.RETRY, True),
    ("GREETING", "421 busy", Delivered.RETRY, True),
    ("AUTH", "535 5.7.8 wrong", Delivered.RETRY, True),
    ("AUTH", "454 later", Delivered.RETRY, True),
    ("MAIL", "550 not you", Delivered.RETRY, True),
    (ALICE, "450 greylisted", Delivered.RETRY, True),
    (ALICE, "550 5.1.1 no such user", Delivered.DEAD, False),
    ("DATA", "451 later", Delivered.RETRY, True),
    ("CONTENT", "452 full", Delivered.RETRY, True),
    ("CONTENT", "554 spam", Delivered.DEAD, False),
]


@pytest.mark.parametrize(("step", "answer", "outcome", "outage"), _REFUSALS)
async def test_each_refusal_has_its_outcome(step: str, answer: str, outcome: Delivered, outage: bool) -> None:
    async with SmtpServer() as smtp:
        smtp.refuses[step] = answer
        result = await channel_of(smtp).send(reply_of("yes"))
        assert (result.outcome, result.outage) == (outcome, outage)
        assert answer[:3] in result.detail
        assert "scripted-password" not in result.detail
        assert not smtp.sent


@pytest.mark.parametrize(
    ("act", "method", "outcome"),
    [
        (Mischief.DROP, "EHLO", Delivered.RETRY),
        (Mischief.DROP, "RCPT", Delivered.RETRY),
        (Mischief.DROP, "DATA", Delivered.RETRY),
        (Mischief.FAIL, "RCPT", Delivered.RETRY),
        (Mischief.SLOW_DOWN, "MAIL", Delivered.RETRY),
        (Mischief.GARBLE, "MAIL", Delivered.RETRY),
        (Mischief.RESET_AFTER, "DATA", Delivered.DOUBT),
        (Mischief.GARBLE, "DATA", Delivered.DOUBT),
    ],
)
async def test_doubt_begins_when_the_content_leaves(act: Mischief, method: str, outcome: Delivered) -> None:
    async with SmtpServer(one_after_the_other(act, method=method)) as smtp:
        result = await channel_of(smtp).send(reply_of("yes"))
        assert result.outcome is outcome
        assert result.outage is (outcome is Delivered.RETRY)
        assert len(smtp.sent) == (outcome is Delivered.DOUBT)


async def test_a_server_that_cannot_be_reached_costs_no_try() -> None:
    channel = EmailChannel(
        ACCOUNT,
        SmtpSender(MailServer("127.0.0.1", 9, "a", "scripted-password", tls=False)),
        EmailThreads(USER, MemoryInbox()),
        SendingPace(VirtualClock(), Rate(0.0), Rate(0.0)),
    )
    result = await channel.send(reply_of("yes"))
    assert (result.outcome, result.outage) == (Delivered.RETRY, True)
    await channel.close()


async def test_a_process_that_others_took_for_dead_sends_nothing() -> None:
    async with SmtpServer() as smtp:
        token = MAY_SEND.set(lambda: False)
        try:
            result = await channel_of(smtp).send(reply_of("yes"))
        finally:
            MAY_SEND.reset(token)
        assert (result.outcome, smtp.sent) == (Delivered.RETRY, [])


async def test_ten_answers_an_hour_to_one_thread() -> None:
    clock = VirtualClock()
    pace = SendingPace(clock, Rate(0.0), Rate(360_000.0, burst=10))
    async with SmtpServer() as smtp:
        channel = channel_of(smtp, pace=pace)
        results = [await channel.send(reply_of("yes", number=n)) for n in range(1, 12)]
        assert [one.outcome for one in results] == [*[Delivered.CONFIRMED] * 10, Delivered.RETRY]
        assert results[-1].outage
        assert results[-1].retry_after_ms is not None
        other = await channel.send(reply_of("yes", lane_with(root="m9@example.net"), number=12))
        assert other.outcome is Delivered.CONFIRMED
        await clock.advance(results[-1].retry_after_ms)
        assert (await channel.send(reply_of("yes", number=11))).outcome is Delivered.CONFIRMED


async def test_a_thread_is_found_by_its_root_or_by_what_is_answered() -> None:
    inbox = await inbox_with_thread("m1@example.net", subject="Re: Plans")
    async with SmtpServer() as smtp:
        channel = channel_of(smtp, inbox)
        await channel.send(reply_of("by root", number=1))
        await channel.send(reply_of("by answer", lane_with(root=None), number=2, answers="m1@example.net"))
        await channel.send(reply_of("unknown", lane_with(root="m7@example.net"), number=3))
        await channel.send(reply_of("another person", lane_with("bob@example.net"), number=4))
        subjects = [str(one.mail["Subject"]) for one in smtp.sent]
        assert subjects == ["Re: Plans", "Re: Plans", "Re: your message", "Re: your message"]
        assert smtp.sent[3].recipient == "bob@example.net"


async def test_the_answers_of_an_unverified_sender_go_to_the_address_that_it_wrote() -> None:
    async with SmtpServer() as smtp:
        await channel_of(smtp).send(reply_of("yes", lane_with(f"unverified/{ALICE}")))
        assert smtp.sent[0].recipient == ALICE


@pytest.mark.parametrize("person", ["", "unreadable", "a@b\r\nBcc: c@d", "Ä@example.net", "a@b>", '"a b"@c'])
async def test_a_conversation_without_an_address_gets_no_mail(person: str) -> None:
    async with SmtpServer() as smtp:
        part = ReplyPart(1, 0, "To: x\r\n\r\nyes")
        result = await channel_of(smtp).send_part(reply_of("yes", lane_with(person)), part)
        assert result.outcome is Delivered.DEAD
        assert not smtp.calls


async def test_a_reply_of_another_account_is_refused() -> None:
    async with SmtpServer() as smtp:
        result = await channel_of(smtp).send(reply_of("yes", lane_with(account="other@example.org")))
        assert (result.outcome, smtp.calls) == (Delivered.REFUSED, {})


async def test_subjects_and_ids_add_no_header() -> None:
    inbox = await inbox_with_thread("m1@example.net\r\nBcc: x@y", subject="a\r\nBcc: c@d\x00 ü" + "w" * 500)
    async with SmtpServer() as smtp:
        channel = channel_of(smtp, inbox)
        await channel.send(reply_of("x\0\ud800 ü", lane_with(root="m1@example.net\r\nbcc: x@y")))
        [sent] = smtp.sent
    assert sent.mail["Bcc"] is None
    assert str(sent.mail["Subject"]).startswith("Re: a Bcc: c@d")
    assert sent.text == "x? ü"


async def test_a_long_text_goes_in_several_mails_with_all_its_words() -> None:
    text = "\n\n".join(f"paragraph {n} " + "word " * 60 for n in range(1_200))
    async with SmtpServer() as smtp:
        result = await channel_of(smtp).send(reply_of(text))
        assert result.outcome is Delivered.CONFIRMED
        assert [one.message_id for one in smtp.sent] == ["k1.0@example.org", "k1.1@example.org"]
        assert "".join("".join(one.text.split()) for one in smtp.sent) == "".join(text.split())


async def test_a_mail_without_words_says_so() -> None:
    async with SmtpServer() as smtp:
        await channel_of(smtp).send(reply_of(" \n"))
        assert smtp.sent[0].text == "(no words)"


def test_html_loads_nothing_and_runs_nothing() -> None:
    page = html_of("<script>x</script> ![a](http://tracker.example/x.png) [b](javascript:x) `<i>`")
    assert "<script" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page
    assert "<pre>" in html_of("[" * 3_000)


async def test_nothing_is_split_while_the_disk_refuses() -> None:
    """The place of the answer in its thread would be lost."""
    inbox = await inbox_with_thread("m1@example.net")
    inbox.refuses = lambda: True
    async with SmtpServer() as smtp:
        channel = channel_of(smtp, inbox)
        with pytest.raises(StoreError):
            await channel.split(reply_of("yes"))
        assert not smtp.calls


def test_another_machine_is_reached_by_tls_alone() -> None:
    with pytest.raises(ChannelError):
        MailServer("mail.example.org", 143, "a", "b", tls=False)
    assert "secret" not in repr(MailServer("mail.example.org", 993, "a", "secret"))


async def test_without_tls_at_the_other_end_nothing_is_said() -> None:
    async with SmtpServer() as smtp, ImapServer() as imap:
        channel = EmailChannel(
            ACCOUNT,
            SmtpSender(server_of(smtp, tls=True)),
            EmailThreads(USER, MemoryInbox()),
            SendingPace(VirtualClock(), Rate(0.0), Rate(0.0)),
        )
        result = await channel.send(reply_of("yes"))
        assert (result.outcome, result.outage) == (Delivered.RETRY, True)
        assert not imap.calls
        assert "AUTH" not in smtp.calls


async def test_the_account_is_looked_up_at_both_servers() -> None:
    async with SmtpServer() as smtp, ImapServer() as imap:
        sender = SmtpSender(server_of(smtp))
        checked = MailTrust(frozenset(("mx.example.org",)))
        report = await look_up(ACCOUNT, folder_of(imap), sender, checked)
        assert (report.channel, report.account, report.name, report.notes) == ("email", USER, USER, ())
        assert not smtp.sent
        imap.idles = False
        notes = (await look_up(ACCOUNT, folder_of(imap), sender, MailTrust())).notes
        assert "IDLE" in notes[0]
        assert "email.authserv_ids" in notes[1]
        [_, note] = (await look_up(ACCOUNT, folder_of(imap), sender, OPEN)).notes
        assert "email.require_dmarc" in note
        with pytest.raises(ChannelError, match="NONEXISTENT"):
            await look_up(ACCOUNT, folder_of(imap, "Agent"), sender, OPEN)
        smtp.refuses["AUTH"] = "535 wrong"
        with pytest.raises(ChannelError) as caught:
            await look_up(ACCOUNT, folder_of(imap), sender, OPEN)
        assert "smtp_password" in caught.value.hint
        imap.passwords.clear()
        with pytest.raises(ChannelError) as caught:
            await look_up(ACCOUNT, folder_of(imap), sender, OPEN)
        assert "email.password" in caught.value.hint
        assert "scripted-password" not in str(caught.value)
    with pytest.raises(ChannelError, match="IMAP server cannot be reached"):
        await look_up(ACCOUNT, folder_of(imap), sender, OPEN)
