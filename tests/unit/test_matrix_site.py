"""Matrix and e-mail with the whole runtime: what is written to the account is answered there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.http_cast import site
from tests.unit.test_email_bounces import report
from tests.unit.test_telegram import line_that_is, until

from keepsaid.config import Config
from keepsaid.domain.line import LineState
from keepsaid.testing.providers.email_imap import ImapServer, mail_from
from keepsaid.testing.providers.email_smtp import PASSWORD, SmtpServer
from keepsaid.testing.providers.email_smtp import USER as ADDRESS
from keepsaid.testing.providers.matrix import TOKEN, MatrixServer
from keepsaid.testing.providers.matrix_rooms import USER

_ANN, _EVE = "@ann:test", "@eve:test"
_ANNS, _EVES = "!ann:test", "!eve:test"
_MAILS = "ann@example.net"


async def test_what_is_written_in_a_room_is_answered(tmp_path: Path) -> None:
    """The owner is answered; a stranger in a room of two is sent a code."""
    async with MatrixServer() as matrix:
        matrix.room(_ANNS, _ANN)
        matrix.room(_EVES, _EVE)
        owner = [{"channel": "matrix", "account": USER, "sender": _ANN}]
        named = {"token": TOKEN, "homeserver": matrix.url}
        async with site(tmp_path, matrix=named, owner=owner) as at:
            await line_that_is(at, LineState.UP)
            matrix.say("my dog is called Rex", _ANNS, _ANN)
            await matrix.wait_for(lambda: len(matrix.sent) == 1)
            matrix.say("what is the name of my dog?", _ANNS, _ANN)
            await matrix.wait_for(lambda: "Rex" in matrix.sent[-1].body and len(matrix.sent) == 2)
            matrix.say("let me in", _EVES, _EVE)
            await matrix.wait_for(lambda: len(matrix.sent) == 3)
            assert (matrix.sent[2].room, "channel pair --owner" in matrix.sent[2].body) == (_EVES, True)
            assert {row[0] for row in at.rows("SELECT account FROM lane")} == {USER}


async def test_a_mail_is_answered_and_a_strangers_is_kept(tmp_path: Path) -> None:
    """A stranger is sent nothing: mail with a code would go to an address that somebody forged."""
    async with ImapServer() as imap, SmtpServer() as smtp:
        settings: dict[str, Any] = {"address": ADDRESS, "password": PASSWORD, "tls": False, "require_dmarc": False}
        settings |= {"imap_host": "127.0.0.1", "imap_port": imap.port}
        settings |= {"smtp_host": "127.0.0.1", "smtp_port": smtp.port}
        owner = [{"channel": "email", "account": ADDRESS, "sender": _MAILS}]
        async with site(tmp_path, email=settings, owner=owner) as at:
            await line_that_is(at, LineState.UP)
            imap.deliver(mail_from("eve@example.net", "let me in", "e1@example.net"))
            imap.deliver(mail_from(_MAILS, "my dog is called Rex", "a1@example.net"))
            await smtp.wait_for(lambda: len(smtp.sent) == 1)
            assert (smtp.sent[0].recipient, smtp.sent[0].mail["In-Reply-To"]) == (_MAILS, "<a1@example.net>")
            rows = at.rows("SELECT sender, event FROM message ORDER BY sender")
            assert rows == [(_MAILS, ""), ("eve@example.net", "stranger")]


async def test_a_report_of_an_undelivered_mail_is_noted_on_its_reply(tmp_path: Path) -> None:
    """The reply stays sent, as anybody can forge a report; one about a mail that was never sent is noted nowhere."""
    async with ImapServer() as imap, SmtpServer() as smtp:
        settings: dict[str, Any] = {"address": ADDRESS, "password": PASSWORD, "tls": False, "require_dmarc": False}
        settings |= {"imap_host": "127.0.0.1", "imap_port": imap.port}
        settings |= {"smtp_host": "127.0.0.1", "smtp_port": smtp.port}
        owner = [{"channel": "email", "account": ADDRESS, "sender": _MAILS}]
        async with site(tmp_path, email=settings, owner=owner) as at:
            await line_that_is(at, LineState.UP)
            imap.deliver(mail_from(_MAILS, "my dog is called Rex", "a1@example.net"))
            await until(at, "SELECT id FROM reply WHERE state = 'sent'")
            number = smtp.sent[0].message_id.strip("<>")
            forged = report().replace(b"kab12.1@", b"kabc.0@").replace(b"<dsn1@", b"<dsn0@")
            imap.deliver(forged)
            imap.deliver(report().replace(b"kab12.1@example.org", number.encode()))
            [(state, detail)] = await until(at, "SELECT state, detail FROM reply WHERE detail <> ''")
            assert state == "sent"
            told = f"[the mail <{number}> was not delivered to bob@example.net (5.1.1 550 5.1.1 no such user)]"
            assert detail == f"reported undelivered: {told}"
            assert at.rows("SELECT count(*) FROM message WHERE event = 'automatic'") == [(2,)]
            assert len(smtp.sent) == 1


def test_without_all_they_need_they_are_off() -> None:
    assert not {"matrix", "email"} & set(Config().listening)
    assert "email" not in Config.model_validate({"email": {"address": ADDRESS, "password": PASSWORD}}).listening
