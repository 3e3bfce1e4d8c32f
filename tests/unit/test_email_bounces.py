"""A mail server says that a mail of the agent did not arrive: that is kept in words, and answered by nobody."""

from __future__ import annotations

import pytest
from tests.unit.email_cast import ACCOUNT, read

from keepsaid.domain.message import AUTOMATIC

_OWN = f"kab12.1@{ACCOUNT.domain}"
_STATUS = """Reporting-MTA: dns; mx.example.net

Final-Recipient: rfc822; bob@example.net
Action: failed
Status: 5.1.1
Diagnostic-Code: smtp; 550 5.1.1 no
 such user
"""
_RETURNED = f"message/rfc822\n\nMessage-ID: <{_OWN}>\nSubject: Re: boat\n\nhello\n"
_HEADERS = f"text/rfc822-headers\n\nSubject: Re: boat\nMessage-Id: <{_OWN}>\n"


def report(status: str = _STATUS, original: str = _RETURNED, kind: str = "multipart/report") -> bytes:
    """A notification as Postfix writes it."""
    parts = ("text/plain\n\nI'm sorry to have to inform you\n", f"message/delivery-status\n\n{status}", original)
    body = "".join(f"--b\nContent-Type: {part}\n" for part in parts)
    head = (
        "From: MAILER-DAEMON@example.net\nTo: agent@example.org\nMessage-ID: <dsn1@example.net>\nReturn-Path: <>\n"
        "Auto-Submitted: auto-replied\nSubject: Undelivered Mail Returned to Sender\nMIME-Version: 1.0\n"
        f"Content-Type: {kind}; report-type=delivery-status; boundary=b\n\n"
    )
    return f"{head}{body}--b--\n".replace("\n", "\r\n").encode()


@pytest.mark.parametrize("original", [_RETURNED, _HEADERS])
def test_bounce_says_which_mail_failed_where_and_why(original: str) -> None:
    message = read(report(original=original)).message
    assert message.event == AUTOMATIC
    expected = f"[the mail <{_OWN}> was not delivered to bob@example.net (5.1.1 550 5.1.1 no such user)]"
    assert message.text == expected
    assert message.payload == report(original=original)
    assert message.undelivered == _OWN


@pytest.mark.parametrize(
    "raw",
    [
        report(_STATUS.replace("failed", "delayed")),
        report(original=_RETURNED.replace("kab12.1", "m1")),
        report(original="text/plain\n\nnothing\n"),
        report(kind="multipart/mixed"),
        report(""),
        report(original="message/rfc822\n\n"),
        report(original="text/rfc822-headers\nContent-Transfer-Encoding: base64\n\n????\n"),
        report()[: len(report()) // 2],
    ],
)
def test_other_reports_are_kept_as_automatic_mail(raw: bytes) -> None:
    message = read(raw).message
    assert (message.event, message.text) == (AUTOMATIC, "[not answered: Auto-Submitted: auto-replied]")


def test_report_of_thousands_of_recipients_stays_short() -> None:
    blocks = "\n".join(f"Final-Recipient: rfc822; {'b' * 900}{n}@example.net\nAction: failed\n" for n in range(5_000))
    message = read(report(f"Reporting-MTA: dns; mx.example.net\n\n{blocks}")).message
    assert message.event
    assert len(message.text) < 3_000
