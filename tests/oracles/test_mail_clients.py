"""Python's imaplib and smtplib do with the scripted mail servers as a normal program does."""

from __future__ import annotations

import asyncio
import smtplib
from collections.abc import Callable
from email.message import EmailMessage
from imaplib import IMAP4
from typing import TypeVar

import pytest

from keepsaid.testing.providers.email_imap import ImapServer, mail_from
from keepsaid.testing.providers.email_smtp import PASSWORD, USER, SmtpServer
from keepsaid.testing.providers.mischief import Mischief, one_after_the_other

ALICE, BOB = "alice@example.net", "bob@example.net"
_Result = TypeVar("_Result")


async def with_imap(imap: ImapServer, play: Callable[[IMAP4], _Result]) -> _Result:
    """Run a play with a client that is logged in, in a thread."""

    def run() -> _Result:
        with IMAP4("127.0.0.1", imap.port, timeout=30) as client:
            client.login(USER, PASSWORD)
            return play(client)

    return await asyncio.to_thread(run)


async def with_smtp(smtp: SmtpServer, play: Callable[[smtplib.SMTP], _Result]) -> _Result:
    """Run a play with a client that is logged in, in a thread."""

    def run() -> _Result:
        with smtplib.SMTP("127.0.0.1", smtp.port, local_hostname="[127.0.0.1]", timeout=30) as client:
            client.login(USER, PASSWORD)
            return play(client)

    return await asyncio.to_thread(run)


async def test_wrong_password_is_refused() -> None:
    def play(port: int) -> None:
        with IMAP4("127.0.0.1", port, timeout=30) as client:
            assert "IMAP4REV1" in client.capabilities
            with pytest.raises(IMAP4.error, match="AUTHENTICATIONFAILED"):
                client.login(USER, "another")

    async with ImapServer() as imap:
        await asyncio.to_thread(play, imap.port)


async def test_folder_is_opened_with_what_rfc_3501_wants() -> None:
    def play(client: IMAP4) -> None:
        assert client.select("INBOX", readonly=True) == ("OK", [b"2"])
        assert client.response("UIDVALIDITY") == ("UIDVALIDITY", [b"1"])
        assert client.response("UIDNEXT") == ("UIDNEXT", [b"3"])
        assert client.response("RECENT") == ("RECENT", [b"0"])
        assert client.response("FLAGS")[1] == [rb"(\Seen)"]
        assert client.response("READ-ONLY")[1] == [b""]
        assert client.select("INBOX") == ("OK", [b"2"])
        assert client.response("READ-WRITE")[1] == [b""]
        assert client.select("Nowhere")[0] == "NO"

    async with ImapServer() as imap:
        for number in ("1@x", "2@x"):
            imap.deliver(mail_from(ALICE, "hello", number))
        await with_imap(imap, play)


async def test_mails_are_found_and_fetched() -> None:
    raw = mail_from(ALICE, "Grüße\n", "1@x", "Hello")

    def play(client: IMAP4) -> None:
        client.select("INBOX", readonly=True)
        assert client.uid("SEARCH", "ALL") == ("OK", [b"1 2"])
        assert client.uid("SEARCH", "UNSEEN") == ("OK", [b"1 2"])
        assert client.uid("SEARCH", "UID", "2:*") == ("OK", [b"2"])
        assert client.uid("SEARCH", "SINCE", "01-Jan-2020") == ("OK", [b"1 2"])
        status, [(head, body), end] = client.uid("FETCH", "1", "(FLAGS BODY.PEEK[])")
        assert (status, body, end) == ("OK", raw, b")")
        assert head == b"1 (UID 1 FLAGS () BODY[] {%d}" % len(raw)
        status, [facts] = client.uid("FETCH", "2", "(FLAGS RFC822.SIZE INTERNALDATE)")
        assert facts.startswith(rb"2 (UID 2 FLAGS () RFC822.SIZE ")
        status, [(_, header), _] = client.uid("FETCH", "2", "(BODY.PEEK[HEADER])")
        assert header.endswith(b"\r\n\r\n")
        assert b"Message-ID: <2@x>\r\n" in header
        assert client.close()[0] == "OK"
        assert client.logout()[0] == "BYE"

    async with ImapServer() as imap:
        imap.deliver(raw)
        imap.deliver(mail_from(ALICE, "more", "2@x"))
        await with_imap(imap, play)
        assert imap.seen == set()


async def test_fetch_without_peek_marks_a_mail_as_seen() -> None:
    def play(client: IMAP4) -> None:
        client.select("INBOX")
        client.uid("FETCH", "1", "(BODY[])")
        assert client.uid("SEARCH", "UNSEEN") == ("OK", [b""])
        assert client.uid("FETCH", "1", "(FLAGS)")[1] == [rb"1 (UID 1 FLAGS (\Seen))"]

    async with ImapServer() as imap:
        imap.deliver(mail_from(ALICE, "hello", "1@x"))
        await with_imap(imap, play)
        assert imap.seen == {1}


async def test_idle_says_that_a_mail_came() -> None:
    """imaplib has IDLE from Python 3.14 on only; its lines are written by hand here."""

    def play(client: IMAP4) -> tuple[bytes, bytes]:
        assert "IDLE" in client.capabilities
        client.select("INBOX", readonly=True)
        client.send(b"x1 IDLE\r\n")
        assert client.readline().startswith(b"+ ")
        news = client.readline()
        client.send(b"DONE\r\n")
        return news, client.readline()

    async with ImapServer() as imap:
        running = asyncio.ensure_future(with_imap(imap, play))
        await imap.wait_for(lambda: imap.idling == 1)
        imap.deliver(mail_from(ALICE, "hello", "1@x"))
        assert await running == (b"* 1 EXISTS\r\n", b"x1 OK IDLE\r\n")


async def test_server_that_is_busy_says_no() -> None:
    def play(client: IMAP4) -> None:
        client.select("INBOX", readonly=True)
        assert client.uid("SEARCH", "ALL")[0] == "NO"
        assert client.uid("SEARCH", "ALL") == ("OK", [b""])

    async with ImapServer(one_after_the_other(Mischief.SLOW_DOWN, method="UID SEARCH")) as imap:
        await with_imap(imap, play)


def mail_of(text: str) -> EmailMessage:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"], mail["Message-ID"] = USER, ALICE, "Hello", "<k1.0@example.org>"
    mail.set_content(text)
    return mail


async def test_mail_is_taken_as_it_was_sent() -> None:
    async with SmtpServer() as smtp:
        assert await with_smtp(smtp, lambda client: client.send_message(mail_of(".\n.dot\nGrüße\n"))) == {}
        [sent] = smtp.sent
        assert (sent.sender, sent.recipient, sent.message_id) == (USER, ALICE, "k1.0@example.org")
        assert sent.text == ".\n.dot\nGrüße"


async def test_second_recipient_is_refused_rather_than_lost() -> None:
    async with SmtpServer() as smtp:
        refused = await with_smtp(smtp, lambda client: client.sendmail(USER, [ALICE, BOB], b"hello\r\n"))
        assert {who: code for who, (code, _) in refused.items()} == {BOB: 452}
        assert [one.recipient for one in smtp.sent] == [ALICE]


async def test_dialogue_goes_on_after_a_refusal() -> None:
    def play(client: smtplib.SMTP) -> None:
        with pytest.raises(smtplib.SMTPRecipientsRefused) as found:
            client.sendmail(USER, [BOB], b"hello\r\n")
        assert found.value.recipients[BOB][0] == 550
        assert client.noop()[0] == 250
        assert client.docmd("TURN")[0] == 502
        assert client.sendmail(USER, [ALICE], b"hello\r\n") == {}
        with pytest.raises(smtplib.SMTPDataError) as early:
            client.data(b"hello\r\n")
        assert early.value.smtp_code == 503

    async with SmtpServer() as smtp:
        smtp.refuses[BOB] = "550 5.1.1 no such user"
        await with_smtp(smtp, play)
        assert [one.recipient for one in smtp.sent] == [ALICE]


async def test_login_and_rate_limit_are_refused_with_their_codes() -> None:
    async with SmtpServer(one_after_the_other(Mischief.FAIL, method="MAIL")) as smtp:

        def play(client: smtplib.SMTP) -> None:
            with pytest.raises(smtplib.SMTPSenderRefused) as found:
                client.send_message(mail_of("hello"))
            assert found.value.smtp_code == 451
            assert client.send_message(mail_of("hello")) == {}

        def wrong(port: int) -> None:
            with smtplib.SMTP("127.0.0.1", port, timeout=30) as client:
                assert client.ehlo("[127.0.0.1]")[0] == 250
                with pytest.raises(smtplib.SMTPAuthenticationError) as refused:
                    client.login(USER, "another")
                assert refused.value.smtp_code == 535

        await with_smtp(smtp, play)
        await asyncio.to_thread(wrong, smtp.port)
        assert len(smtp.sent) == 1
