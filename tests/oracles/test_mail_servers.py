"""Our own mailbox reads from pymap and sends by aiosmtpd, which other programs are tested with."""

from __future__ import annotations

import argparse
import asyncio
import email
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from email.message import EmailMessage
from email.policy import default
from imaplib import IMAP4
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult
from proxyprotocol.sock import SocketInfoLocal
from pymap.backend.dict import DictBackend
from pymap.imap import IMAPServer, IMAPService
from tests.unit.email_cast import ACCOUNT, ALICE, OPEN, part_of, reply_of

from keepsaid.adapters.channels.email.account import MailServer
from keepsaid.adapters.channels.email.channel import EmailChannel
from keepsaid.adapters.channels.email.imap import ImapFolder, ImapRefused
from keepsaid.adapters.channels.email.line import EmailLine
from keepsaid.adapters.channels.email.listener import EmailListener
from keepsaid.adapters.channels.email.mailbox import MailboxReader
from keepsaid.adapters.channels.email.smtp import SmtpRefused, SmtpSender
from keepsaid.adapters.channels.email.threads import EmailThreads
from keepsaid.adapters.channels.email.updates import MailReader
from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.adapters.system.machine import SystemClock
from keepsaid.domain.line import LineState
from keepsaid.domain.reply import Delivered
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.email_imap import mail_from
from keepsaid.testing.providers.email_smtp import PASSWORD, USER

# aiosmtpd warns of a login without TLS
pytestmark = pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning")


class SmtpTaker:
    """Takes what aiosmtpd hands over; refuses who is not Alice."""

    def __init__(self) -> None:
        self.taken: list[Any] = []

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:  # noqa: N802
        if address != ALICE:
            return "550 5.1.1 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        self.taken.append(envelope)
        return "250 2.0.0 taken"


def log_in(server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> Any:
    is_ours = (given.login, given.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_ours, handled=False)


@asynccontextmanager
async def smtp_server(taker: SmtpTaker) -> AsyncIterator[int]:
    """The port of aiosmtpd with our account."""
    loop = asyncio.get_running_loop()

    def serve() -> Any:
        return SMTP(taker, authenticator=log_in, auth_required=True, auth_require_tls=False, loop=loop)

    server = await loop.create_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


@asynccontextmanager
async def imap_server() -> AsyncIterator[int]:
    """The port of pymap, in memory, with our account and an empty INBOX."""
    parser = argparse.ArgumentParser()
    DictBackend.add_subparser("dict", parser.add_subparsers())
    IMAPService.add_arguments(parser)
    parser.set_defaults(skip_services=[], passlib_cfg=None, debug=False)
    args = parser.parse_args(["--no-tls", "dict", "--demo-user", USER, "--demo-password", PASSWORD])
    backend, config = await DictBackend.init(args)
    config.apply_context()
    answer = IMAPServer(backend.login, config)
    clients: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        clients.add(task)
        try:
            await answer(reader, writer, SocketInfoLocal(writer))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*clients, return_exceptions=True)
        await server.wait_closed()


def server_at(port: int, password: str = PASSWORD) -> MailServer:
    return MailServer("127.0.0.1", port, USER, password, tls=False)


async def put_mails(port: int, *mails: bytes) -> None:
    """Put mails into the INBOX, as a delivering server does."""

    def put() -> None:
        with IMAP4("127.0.0.1", port, timeout=30) as client:
            client.login(USER, PASSWORD)
            for mail in mails:
                assert client.append("INBOX", "", "", mail)[0] == "OK"

    await asyncio.to_thread(put)


async def flags_in(port: int) -> list[bytes]:
    """The flags of every mail in the INBOX."""

    def look() -> list[bytes]:
        with IMAP4("127.0.0.1", port, timeout=30) as client:
            client.login(USER, PASSWORD)
            client.select("INBOX", readonly=True)
            return [one for one in client.uid("FETCH", "1:*", "(FLAGS)")[1] if isinstance(one, bytes)]

    return await asyncio.to_thread(look)


@asynccontextmanager
async def listening(port: int, inbox: MemoryInbox) -> AsyncIterator[LineLog]:
    """Our listener of the INBOX, until the block ends."""
    clock, log = SystemClock(), LineLog()
    mailbox = MailboxReader(ACCOUNT, MailReader(ACCOUNT, OPEN), EmailThreads(USER, inbox), clock)
    listener = EmailListener(ImapFolder(server_at(port)), mailbox, EmailLine(clock, log))
    task = asyncio.create_task(listener.listen(inbox))
    try:
        yield log
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_mails_come_by_idle_and_after_a_restart_and_stay_unseen() -> None:
    inbox = MemoryInbox()
    async with imap_server() as port:
        async with listening(port, inbox) as log:
            await log.wait_for(LineState.UP)
            await put_mails(port, mail_from(ALICE, "hello", "1@x"), mail_from(ALICE, "Grüße", "2@x"))
            await inbox.wait_for_count(2)
        await put_mails(port, mail_from(ALICE, "meanwhile", "3@x", In_Reply_To="<1@x>", References="<1@x>"))
        async with listening(port, inbox):
            await inbox.wait_for_count(3)
        assert [text.split("\n")[-1] for text in inbox.texts] == ["hello", "Grüße", "meanwhile"]
        assert inbox.repeats == 0
        flags = await flags_in(port)
        assert len(flags) == 3
        assert not any(b"Seen" in one for one in flags)


async def test_login_that_pymap_refuses_is_a_refused_login() -> None:
    async with imap_server() as port:
        refused = await refusal_of(ImapFolder(server_at(port, "another")))
        assert refused.is_login
        missing = await refusal_of(ImapFolder(server_at(port), "Nowhere"))
        assert missing.is_folder


async def refusal_of(folder: ImapFolder) -> ImapRefused:
    """What the server says to opening a folder."""
    try:
        with pytest.raises(ImapRefused) as found:
            await folder.open()
    finally:
        await folder.close()
    return found.value


def channel_at(port: int) -> EmailChannel:
    """Our account as it sends."""
    free = SendingPace(VirtualClock(), Rate(0.0), Rate(0.0))
    return EmailChannel(ACCOUNT, SmtpSender(server_at(port)), EmailThreads(USER, MemoryInbox()), free)


async def test_answer_is_taken_whole_by_aiosmtpd() -> None:
    taker = SmtpTaker()
    async with smtp_server(taker) as port:
        channel, reply = channel_at(port), reply_of("**Grüße**\n.\nand more")
        part = await part_of(channel, reply)
        assert (await channel.send_part(reply, part)).outcome is Delivered.CONFIRMED
    [envelope] = taker.taken
    assert (envelope.mail_from, envelope.rcpt_tos) == (USER, [ALICE])
    mail = email.message_from_bytes(envelope.content, policy=default)
    assert isinstance(mail, EmailMessage)
    assert str(mail["From"].addresses[0].addr_spec) == USER
    assert str(mail["Auto-Submitted"]) == "auto-replied"
    plain, rich = (mail.get_body((kind,)) for kind in ("plain", "html"))
    assert plain is not None
    assert rich is not None
    assert "Grüße" in plain.get_content()
    assert "\n.\n" in plain.get_content().replace("\r\n", "\n")
    assert "<strong>Grüße</strong>" in rich.get_content() or "<b>Grüße</b>" in rich.get_content()


async def test_refusals_of_aiosmtpd_are_understood() -> None:
    taker = SmtpTaker()
    async with smtp_server(taker) as port:
        with pytest.raises(SmtpRefused) as login:
            await SmtpSender(server_at(port, "another")).check()
        assert (login.value.step, login.value.code) == ("login", 535)
        with pytest.raises(SmtpRefused) as recipient:
            await SmtpSender(server_at(port)).send(USER, "bob@example.net", mail_from(USER, "hi", "k1.0@example.org"))
        assert (recipient.value.step, recipient.value.code) == ("recipient", 550)
        await SmtpSender(server_at(port)).check()
    assert taker.taken == []
