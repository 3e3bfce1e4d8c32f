"""E-mail beside scripted servers for IMAP and SMTP, as the contract of channels plays with them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from tests.contract.provider_cast import QUICK, SPEED, ListeningProviderServer, ProviderCast, reply_in

from keepsaid.adapters.channels.email.account import EmailAccount, MailServer
from keepsaid.adapters.channels.email.attached import WITHOUT_WORDS
from keepsaid.adapters.channels.email.channel import EmailChannel
from keepsaid.adapters.channels.email.imap import ImapFolder
from keepsaid.adapters.channels.email.line import EmailLine
from keepsaid.adapters.channels.email.listener import EmailListener
from keepsaid.adapters.channels.email.mailbox import MailboxReader
from keepsaid.adapters.channels.email.smtp import SmtpSender
from keepsaid.adapters.channels.email.threads import EmailThreads
from keepsaid.adapters.channels.email.trust import MailTrust
from keepsaid.adapters.channels.email.updates import MailReader
from keepsaid.adapters.channels.pace import SendingPace
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.reply import StoredReply
from keepsaid.ports.channel import Channel
from keepsaid.ports.extension import ListeningProvider
from keepsaid.testing.clock import FastClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.listening_contract import ProviderTraits
from keepsaid.testing.providers.email_imap import ImapServer, mail_from
from keepsaid.testing.providers.email_lines import LineServer
from keepsaid.testing.providers.email_smtp import PASSWORD, USER, SentMail, SmtpServer
from keepsaid.testing.providers.mischief import Mischief, harmless, mischief_of, one_after_the_other

_ANN = "ann@example.net"


class EmailReaders(ProviderCast):
    """What people see of the mails that they get."""

    smtp: SmtpServer

    def script_upload(self, *acts: Mischief) -> None:
        self.smtp.mischief = one_after_the_other(*acts, method="DATA")

    def sent(self) -> Sequence[str]:
        """The texts of the mails; that of a mail with files alone is the medium's, which has no mail without words."""
        return [one.text.removeprefix(WITHOUT_WORDS).strip() for one in self._mails()]

    def sent_files(self) -> Sequence[tuple[str, bytes]]:
        return [(file.name, file.content) for one in self._mails() for file in one.files]

    def _mails(self) -> Sequence[SentMail]:
        """The mails as programs show them; each try brings the same bytes."""
        mails: dict[str, SentMail] = {}
        for one in self.smtp.sent:
            assert mails.setdefault(one.message_id, one).raw == one.raw
        return list(mails.values())


class EmailCast(EmailReaders):
    """A mailbox. Readers show mail with one Message-ID once; there are no groups, only mail with several recipients."""

    acts = upload_acts = (Mischief.DROP, Mischief.RESET_AFTER, Mischief.FAIL_AFTER, Mischief.GARBLE)
    secrets = (PASSWORD,)
    provider = ProviderTraits(groups=False)

    def __init__(self) -> None:
        self.clock = FastClock(SPEED)
        self.smtp = SmtpServer()
        self.imap = ImapServer(now_ms=lambda: self.clock.now_ms() + self.ahead_ms)
        self.server: ListeningProviderServer = self.smtp
        self.inbox = MemoryInbox()
        self._account = EmailAccount(USER)
        self._said = 0

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.imap.__aenter__()
        threads = EmailThreads(USER, self.inbox)
        pace = SendingPace(self.clock, QUICK, QUICK)
        self.channel: Channel = EmailChannel(
            self._account, SmtpSender(_server(self.smtp)), threads, pace, uploads=self.upload
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.imap.__aexit__(kind, error, trace)
        await super().__aexit__(kind, error, trace)

    def reply(self, text: str, number: int = 1) -> StoredReply:
        conversation = f"email:{_ANN}"
        return reply_in(Lane("email", USER, conversation, lane_key(conversation)), text, number, self.clock.now_ms())

    script = EmailReaders.script_upload

    def close_place(self) -> None:
        self.smtp.refuses[_ANN] = "550 5.1.1 no such mailbox"

    @asynccontextmanager
    async def listener(self, line: LineLog) -> AsyncIterator[ListeningProvider]:
        reader = MailReader(self._account, MailTrust(checks=False))
        mailbox = MailboxReader(self._account, reader, EmailThreads(USER, self.inbox), self.clock)
        yield EmailListener(ImapFolder(_server(self.imap), "INBOX"), mailbox, EmailLine(self.clock, line))

    def say(self, text: str) -> None:
        self._deliver(text)

    def answer_unknown(self, text: str) -> None:
        self._deliver(text, In_Reply_To="<gone@example.net>")

    def _deliver(self, text: str, **headers: str) -> None:
        self._said += 1
        written = text.encode("utf-8", "replace").decode()
        self.imap.deliver(mail_from(_ANN, written, f"m{self._said}@example.net", "", **headers))

    def say_in_group(self, text: str, *, addressed: bool) -> None:
        raise NotImplementedError("mail has no groups")

    def say_itself(self, text: str) -> None:
        self.imap.deliver(mail_from(USER, text, "own@example.org", ""))

    def garble(self) -> None:
        self.imap.deliver(b"\xff\x00 this is no mail \xfe")

    def drop(self) -> None:
        self._dropping = asyncio.ensure_future(self.imap.drop())

    def trouble(self, seed: int) -> None:
        self.imap.mischief = mischief_of(seed, 0.1) if seed else harmless

    def refuse(self, *, token: bool) -> None:
        self.imap.passwords = {"another"} if token else {PASSWORD}


def _server(scripted: LineServer) -> MailServer:
    return MailServer("127.0.0.1", scripted.port, USER, PASSWORD, tls=False)
