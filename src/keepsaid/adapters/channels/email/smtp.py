"""One mail sent by SMTP, with aiosmtplib; it is known whether its last byte may have left (spec: channels, C4)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from keepsaid.adapters.channels.email.account import MailServer
from keepsaid.domain.reply import Delivered, SendResult
from keepsaid.errors import ChannelError, installation
from keepsaid.ports.channel import check_may_send

if TYPE_CHECKING:
    from aiosmtplib import SMTP

_CONNECT_S, _ANSWER_S, _IN_ALL_S = 10.0, 60.0, 180.0
_BYTES_A_S = 100_000
"""How fast a line has to be at least: a larger mail has more time."""

_HELLO = "[127.0.0.1]"
"""The name in EHLO: an address literal, so that the name of this machine stays here (RFC 5321, 4.1.3)."""

_BAD_LOGIN_WAIT_MS, _LATER_WAIT_MS = 60_000, 120_000
_BAD_LOGIN: Final = "the login is not accepted; see email.password and email.smtp_password"

LOGIN, SENDER, RECIPIENT, CONTENT = "login", "sender", "recipient", "content"
"""The steps of a dialogue that a server may refuse."""


class SmtpRefused(Exception):
    """The server refuses a step, with a code of three digits: nothing was sent."""

    def __init__(self, step: str, code: int, what: str) -> None:
        super().__init__(f"{code} {' '.join(what.split())[:200]}")
        self.step = step
        self.code = code

    @property
    def is_of_content(self) -> bool:
        """Whether it is the content that the server does not take, now or later."""
        return self.step == CONTENT and self.code >= 500


class SmtpUnreachable(Exception):
    """The server cannot be reached, or does not answer; `sent` says that the mail may have arrived."""

    def __init__(self, what: str, *, sent: bool = False) -> None:
        super().__init__(what)
        self.sent = sent


class SmtpSender:
    """Sends by one server, over a connection for each mail."""

    def __init__(self, server: MailServer) -> None:
        self._server = server

    async def check(self) -> None:
        """Log in, and send nothing. Raises SmtpRefused, SmtpUnreachable, and ChannelError without aiosmtplib."""
        await self._talk(None)

    async def send(self, sender: str, recipient: str, mail: bytes) -> None:
        """Send a mail, whose lines end in CRLF, to one address.

        Raises SmtpRefused, SmtpUnreachable, and ChannelError without aiosmtplib.
        """
        await self._talk((sender, recipient, mail))

    async def _talk(self, mail: tuple[str, str, bytes] | None) -> None:
        try:
            import aiosmtplib  # noqa: PLC0415 - 70 ms that only this channel needs
        except ImportError as error:
            raise ChannelError("e-mail needs the package aiosmtplib", hint=installation("email")) from error
        server = self._server
        client = aiosmtplib.SMTP(
            hostname=server.host,
            port=server.port,
            use_tls=server.tls and not server.starttls,
            start_tls=server.starttls,
            tls_context=await asyncio.to_thread(server.trusted) if server.tls else None,
            timeout=_CONNECT_S,
            local_hostname=_HELLO,
        )
        dialogue = _Dialogue(client, server)
        try:
            async with asyncio.timeout(_IN_ALL_S + (_line_s(mail[2]) if mail is not None else 0.0)):
                await dialogue.run(mail)
        except aiosmtplib.SMTPResponseException as error:
            if 400 <= error.code < 600:
                raise SmtpRefused(dialogue.step, error.code, error.message) from error
            raise SmtpUnreachable("the answer makes no sense", sent=dialogue.may_have_arrived) from error
        except aiosmtplib.SMTPRecipientsRefused as error:
            raise SmtpRefused(RECIPIENT, error.recipients[0].code, error.recipients[0].message) from error
        except InterruptedError:
            raise
        except (aiosmtplib.SMTPException, OSError, ValueError, RuntimeError) as error:
            what = " ".join(str(error).split())[:200] or type(error).__name__
            raise SmtpUnreachable(what, sent=dialogue.may_have_arrived) from error
        finally:
            client.close()


class _Dialogue:
    """The steps of sending a mail; `may_have_arrived` from the moment on in which its content leaves."""

    def __init__(self, client: SMTP, server: MailServer) -> None:
        self._client = client
        self._server = server
        self.step = LOGIN
        self.may_have_arrived = False

    async def run(self, mail: tuple[str, str, bytes] | None) -> None:
        await self._client.connect()
        if self._server.user:
            await self._client.login(self._server.user, self._server.password)
        if mail is None:
            return
        sender, recipient, content = mail
        self.step = SENDER
        await self._client.mail(sender)
        self.step = RECIPIENT
        await self._client.rcpt(recipient)
        self.step = CONTENT
        self._check_size(len(content))
        self._trace(await asyncio.to_thread(_lines_of, content))
        await self._client.data(b"", timeout=_ANSWER_S + _line_s(content))

    def _check_size(self, size: int) -> None:
        """Raise SmtpRefused for more bytes than the server has said that it takes (RFC 1870); 0 means any number."""
        told = self._client.esmtp_extensions.get("size", "").strip()
        if told.isascii() and told.isdigit() and len(told) < 19 and 0 < int(told) < size:
            raise SmtpRefused(CONTENT, 552, f"the mail has {size:,} bytes, and the server takes {int(told):,}")

    def _trace(self, lines: bytes) -> None:
        """Write the content, and notice when it leaves: the client first writes DATA, and waits for the answer to it.

        What the client itself makes of the lines of a mail takes a second for 15 MB, in which nothing else runs.
        """
        protocol = self._client.protocol
        if protocol is None:
            return
        write = protocol.write

        def traced(data: bytes) -> None:
            if data != b"DATA\r\n":
                check_may_send()
                self.may_have_arrived = True
                data = lines
            write(data)

        protocol.write = traced  # type: ignore[method-assign]


def _line_s(content: bytes) -> float:
    """How long a mail may be on its way beyond what every mail may."""
    return len(content) / _BYTES_A_S


def _lines_of(content: bytes) -> bytes:
    """A mail as it is written after DATA: its last line is a full stop, and no other (RFC 5321, section 4.5.2)."""
    end = b"" if content.endswith(b"\r\n") else b"\r\n"
    stuffed = content.replace(b"\r\n.", b"\r\n..")
    return b"".join((b"." if stuffed.startswith(b".") else b"", stuffed, end, b".\r\n"))


def refused(error: SmtpRefused) -> SendResult:
    """The result of a try that the server did not accept: what may pass is tried again, and costs no try."""
    if error.step == LOGIN and error.code in (530, 534, 535, 538):
        what = f"not sent: {_BAD_LOGIN} ({error})"
        return SendResult(Delivered.RETRY, what, retry_after_ms=_BAD_LOGIN_WAIT_MS, outage=True)
    if error.code < 500 or error.step in (LOGIN, SENDER):
        what = f"not sent: the mail server answers {error}"
        return SendResult(Delivered.RETRY, what, retry_after_ms=_LATER_WAIT_MS, outage=True)
    if error.step == RECIPIENT:
        return SendResult(Delivered.DEAD, f"the mail server does not deliver to the address: {error}")
    return SendResult(Delivered.DEAD, f"the mail server does not accept the mail: {error}")


def unreachable(error: SmtpUnreachable) -> SendResult:
    """The result of a try without an answer."""
    if error.sent:
        return SendResult(Delivered.DOUBT, f"no answer after sending: {error}")
    return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)
