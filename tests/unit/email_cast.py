"""A mailbox at scripted servers: an inbox in memory that can refuse, a line that is looked at, and replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from keepsaid.adapters.channels.email.account import EmailAccount, MailServer
from keepsaid.adapters.channels.email.channel import EmailChannel
from keepsaid.adapters.channels.email.imap import ImapFolder
from keepsaid.adapters.channels.email.line import EmailLine
from keepsaid.adapters.channels.email.listener import EmailListener
from keepsaid.adapters.channels.email.mailbox import MailboxReader
from keepsaid.adapters.channels.email.smtp import SmtpSender
from keepsaid.adapters.channels.email.threads import EmailThreads
from keepsaid.adapters.channels.email.trust import MailTrust
from keepsaid.adapters.channels.email.updates import MailReader, ReadMail
from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.reply import ReplyDraft, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.ports.runtime import Clock
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.email_imap import ImapServer
from keepsaid.testing.providers.email_lines import LineServer
from keepsaid.testing.providers.email_smtp import PASSWORD, USER, SmtpServer

ACCOUNT = EmailAccount(USER, frozenset(("help@example.org",)), "Keepsaid")
OPEN = MailTrust(checks=False)
ALICE = "alice@example.net"
CREATED_MS = 1_750_000_000_000


def server_of(scripted: LineServer, password: str = PASSWORD, *, tls: bool = False) -> MailServer:
    return MailServer("127.0.0.1", scripted.port, USER, password, tls=tls)


def folder_of(imap: ImapServer, folder: str = "INBOX") -> ImapFolder:
    return ImapFolder(server_of(imap), folder)


@asynccontextmanager
async def listening(
    imap: ImapServer, inbox: MemoryInbox, clock: Clock, shown: LineLog | None = None, folder: ImapFolder | None = None
) -> AsyncIterator[asyncio.Task[None]]:
    """A listener of the mailbox, until the block ends."""
    threads = EmailThreads(USER, inbox)
    mailbox = MailboxReader(ACCOUNT, MailReader(ACCOUNT, OPEN), threads, clock)
    listener = EmailListener(folder or folder_of(imap), mailbox, EmailLine(clock, shown or LineLog()))
    task = asyncio.create_task(listener.listen(inbox))
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await imap.wait_for(lambda: imap.idling == 0)


def channel_of(smtp: SmtpServer, inbox: MemoryInbox | None = None, pace: SendingPace | None = None) -> EmailChannel:
    """The account as it sends."""
    threads = EmailThreads(USER, inbox or MemoryInbox())
    free = SendingPace(VirtualClock(), Rate(0.0), Rate(0.0))
    return EmailChannel(ACCOUNT, SmtpSender(server_of(smtp)), threads, pace or free)


def lane_with(person: str = ALICE, root: str | None = "m1@example.net", account: str = USER) -> Lane:
    conversation = f"email:{person}"
    return Lane("email", account, conversation, lane_key(conversation, root))


def reply_of(text: str, lane: Lane | None = None, *, number: int = 1, answers: str | None = None) -> StoredReply:
    draft = ReplyDraft(number, text, reply_to=answers)
    return StoredReply(number, lane or lane_with(), 1, "sending", draft, created_at=CREATED_MS)


async def part_of(channel: EmailChannel, reply: StoredReply, *, is_repeat: bool = False) -> ReplyPart:
    """The only part of a short reply."""
    [body] = await channel.split(reply)
    return ReplyPart(reply.id, 0, body, possible_duplicate=is_repeat)


def read(raw: bytes, trust: MailTrust = OPEN) -> ReadMail:
    return MailReader(ACCOUNT, trust).read(raw)


async def idling(imap: ImapServer) -> None:
    """Wait until the listener has read all, and waits for news."""
    await imap.wait_for(lambda: imap.idling == 1)
