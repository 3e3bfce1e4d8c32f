"""STARTTLS: a mail server whose connection begins without TLS learns nothing before it, and proves who it is."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from tests.unit.test_files_nostr import certificate

from keepsaid.adapters.channels.email.account import STARTTLS_PORTS, MailServer
from keepsaid.adapters.channels.email.imap import ImapFolder, ImapLost
from keepsaid.adapters.channels.email.smtp import SmtpSender, SmtpUnreachable
from keepsaid.errors import ChannelError
from keepsaid.testing.providers.email_imap import ImapServer, mail_from
from keepsaid.testing.providers.email_lines import LineServer
from keepsaid.testing.providers.email_smtp import PASSWORD, USER, SmtpServer


def behind(scripted: LineServer, trusted: ssl.SSLContext) -> MailServer:
    """A scripted server as one on a port of STARTTLS is reached."""
    server = MailServer("localhost", scripted.port, USER, PASSWORD)
    server.starttls, server.trusted = True, lambda: trusted
    return server


def test_the_port_says_how_tls_begins() -> None:
    assert {port for port in (25, 143, 465, 587, 993) if MailServer("mail.example.org", port, "a", "b").starttls} == {
        *STARTTLS_PORTS
    }
    assert not MailServer("127.0.0.1", 143, "a", "b", tls=False).starttls


async def test_mail_is_read_and_sent_after_starttls(tmp_path: Path) -> None:
    proof, trusted = certificate(tmp_path, "localhost")
    async with ImapServer() as imap, SmtpServer() as smtp:
        imap.certificate = smtp.certificate = proof
        imap.deliver(mail_from("ann@example.net", "hello", "m1@example.net"))
        folder = ImapFolder(behind(imap, trusted), "INBOX")
        state = await folder.open()
        assert state.idles
        [uid] = await folder.since(0)
        assert b"hello" in (await folder.mails([uid]))[uid]
        await folder.close()
        await SmtpSender(behind(smtp, trusted)).send(USER, "ann@example.net", mail_from(USER, "hi", "k1@example.org"))
        assert smtp.sent[0].recipient == "ann@example.net"


async def test_a_server_without_starttls_is_told_no_password(tmp_path: Path) -> None:
    """Who stands between takes STARTTLS out of what the server offers, and hopes for a login in plain text."""
    _, trusted = certificate(tmp_path, "localhost")
    async with ImapServer() as imap, SmtpServer() as smtp:
        folder = ImapFolder(behind(imap, trusted), "INBOX")
        with pytest.raises(ChannelError, match="does not begin TLS"):
            await folder.open()
        await folder.close()
        with pytest.raises(SmtpUnreachable, match="STARTTLS") as refused:
            await SmtpSender(behind(smtp, trusted)).check()
        assert not refused.value.sent
        assert "LOGIN" not in imap.calls
        assert "AUTH" not in smtp.calls


async def test_a_server_that_nobody_vouches_for_is_told_no_password(tmp_path: Path) -> None:
    proof, _ = certificate(tmp_path, "localhost")
    async with ImapServer() as imap, SmtpServer() as smtp:
        imap.certificate = smtp.certificate = proof
        folder = ImapFolder(behind(imap, ssl.create_default_context()), "INBOX")
        with pytest.raises(ImapLost, match="CERTIFICATE_VERIFY_FAILED"):
            await folder.open()
        await folder.close()
        with pytest.raises(SmtpUnreachable, match="CERTIFICATE_VERIFY_FAILED"):
            await SmtpSender(behind(smtp, ssl.create_default_context())).check()
        assert "LOGIN" not in imap.calls
        assert "AUTH" not in smtp.calls
