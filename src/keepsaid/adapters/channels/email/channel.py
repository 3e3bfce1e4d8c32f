"""E-mail as a channel that answers: each reply is a mail to the one person who wrote, never to all.

Its Message-ID is made before the first try. Without an answer to its content nobody knows whether it arrived: the same
bytes are sent again, and programs of receivers may show two mails with one id once (spec: channels, sections 3 and 8).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace

from keepsaid.adapters.channels.abilities import EMAIL
from keepsaid.adapters.channels.email.account import NAME, EmailAccount, address_in, is_address
from keepsaid.adapters.channels.email.attached import composed, read_body, refused_files, uploads_of
from keepsaid.adapters.channels.email.compose import mails_of, message_id
from keepsaid.adapters.channels.email.files import MailFiles
from keepsaid.adapters.channels.email.smtp import SmtpRefused, SmtpSender, SmtpUnreachable, refused, unreachable
from keepsaid.adapters.channels.email.threads import EmailThreads, MailThread
from keepsaid.adapters.channels.pace import SendingPace
from keepsaid.adapters.channels.sending import send_parts
from keepsaid.adapters.channels.uploads import UploadSource, no_uploads
from keepsaid.domain.message import Attachment, topic_of
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import ChannelError, FileRefused, StoreError

_INLINE_CHARS_MAX = 4_096
"""A longer text is rendered in a thread, so that it does not hold up the event loop."""

_NOT_INSTALLED_WAIT_MS = 60_000


class EmailChannel:
    """Sends by one account. `pace` limits mails of the account, and the answers to one thread (10 an hour).

    `files` reads what is attached to mails; without it nothing is. `uploads` reads the files that go with replies.
    """

    name = NAME
    sending = Sending.PUSH
    abilities = EMAIL

    def __init__(
        self,
        account: EmailAccount,
        smtp: SmtpSender,
        threads: EmailThreads,
        pace: SendingPace,
        files: MailFiles | None = None,
        uploads: UploadSource = no_uploads,
    ) -> None:
        self._files = files or MailFiles()
        self._uploads = uploads
        self._account = account
        self._smtp = smtp
        self._threads = threads
        self._pace = pace

    @property
    def account(self) -> str:
        """The address that it sends by."""
        return self._account.address

    async def send(self, reply: StoredReply) -> SendResult:
        """Send all mails at once, for what is only tried; never raises."""
        return await send_parts(self, reply)

    async def split(self, reply: StoredReply) -> Sequence[str]:
        """Each mail with its headers, and its id kept in its thread, so that answers find it. Raises StoreError."""
        await self._threads.load()
        thread = self._thread_of(reply)
        if len(reply.draft.text) > _INLINE_CHARS_MAX:
            mails = await asyncio.to_thread(mails_of, reply, self._account, thread)
        else:
            mails = mails_of(reply, self._account, thread)
        if thread is not None:
            await self._threads.keep_sent(
                thread, [message_id(ReplyPart(reply.id, n, ""), self._account) for n in range(len(mails))]
            )
        return mails

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        """Send a mail once; never raises."""
        if reply.lane.account != self.account:
            return SendResult(Delivered.REFUSED, f"the account {reply.lane.account} is not set up here any more")
        address = address_in(reply.lane.conversation)
        if not is_address(address):
            return SendResult(Delivered.DEAD, "the conversation names no address that a mail can be sent to")
        strand = f"{reply.lane.conversation} {reply.lane.key}"
        if (held_ms := await self._pace.enter(strand)) is not None:
            return SendResult(Delivered.RETRY, "the rate limit is reached", retry_after_ms=held_ms, outage=True)
        result = await self._sent(address, reply, part)
        if result.outcome is Delivered.CONFIRMED:
            return replace(result, provider_id=message_id(part, self._account))
        return result

    def fetch(self, account: str, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a part of a mail that came to this account."""
        if account != self.account:
            raise FileRefused(f"the account {account} is not set up here any more")
        return self._files.pieces(account, file.ref)

    async def _sent(self, address: str, reply: StoredReply, part: ReplyPart) -> SendResult:
        """Send a mail with its files; words in their place where the server takes the mail only without them."""
        mail, detail = read_body(part.body, part.key), ""
        try:
            files = await uploads_of(self._uploads, reply, mail)
            while True:
                try:
                    content = await asyncio.to_thread(composed, mail, files)
                    await self._smtp.send(self.account, address, content)
                except SmtpRefused as error:
                    if not error.is_of_content or all(isinstance(one, str) for one in files):
                        return refused(error)
                    files = refused_files(reply, mail, f"the mail server answers {error}")
                    detail = f"files were not sent: {error}"
                else:
                    return SendResult(Delivered.CONFIRMED, detail)
        except SmtpUnreachable as error:
            return unreachable(error)
        except InterruptedError as error:
            return SendResult(Delivered.RETRY, f"not sent: {error}", outage=True)
        except StoreError as error:
            return SendResult(Delivered.RETRY, f"not sent: {error.what}")
        except ChannelError as error:
            what = f"not sent: {error.what}; {error.hint}"
            return SendResult(Delivered.RETRY, what, retry_after_ms=_NOT_INSTALLED_WAIT_MS, outage=True)

    def _thread_of(self, reply: StoredReply) -> MailThread | None:
        """The thread of a reply, by the topic of its lane or by what it answers; None of one that is not known."""
        person = reply.lane.conversation.partition(":")[2]
        return self._threads.find(person, topic_of(reply.lane), reply.draft.reply_to)

    async def close(self) -> None:
        """Close nothing: each mail has a connection of its own."""
