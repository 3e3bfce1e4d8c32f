"""Mails as messages: who wrote, in which thread, and whether a person and not a program did."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from email.message import EmailMessage
from hashlib import sha256

from keepsaid.adapters.channels.email.account import CONVERSATION, NAME, UNVERIFIED, EmailAccount, is_address
from keepsaid.adapters.channels.email.bounces import bounced
from keepsaid.adapters.channels.email.files import attachments_of
from keepsaid.adapters.channels.email.headers import (
    addresses_in,
    automatic,
    ids_in,
    is_one_address,
    normal_id,
    raw_header,
    subject_of,
)
from keepsaid.adapters.channels.email.read import PARSE_ERRORS, parse_mail, read_mail
from keepsaid.adapters.channels.email.threads import EmailThreads
from keepsaid.adapters.channels.email.trust import MailTrust
from keepsaid.domain.line import Cursor
from keepsaid.domain.message import AUTOMATIC, UNREADABLE
from keepsaid.errors import InputError
from keepsaid.ports.channel import Incoming
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.email")

_REFERENCES_MAX = 100
_NAME_CHARS_MAX = 100


@frozen
class ReadMail:
    """A mail that was read: its message, and the ids that it names, as they came, the one that it answers last.

    Of a mail that is not answered, `reason` says why.
    """

    message: Incoming
    references: tuple[str, ...] = ()
    own_id: str = ""
    subject: str = ""
    reason: str = ""


class MailReader:
    """Reads mails that came to an account."""

    def __init__(self, account: EmailAccount, trust: MailTrust) -> None:
        self._account = account
        self._trust = trust

    def read(self, raw: bytes) -> ReadMail:
        """A mail as a message; one that cannot be read, or that a program sent, is kept and answered by nobody."""
        key = f"{NAME}:body:{sha256(raw).hexdigest()}"
        try:
            mail = parse_mail(raw)
            own_id = next(iter(ids_in(raw_header(mail, "message-id"))), "")
            key = f"{NAME}:{normal_id(own_id)}" if own_id else key
            if failure := bounced(mail, self._account):
                _log.warning("a mail server reports that a mail of the agent was not delivered")
                report = self.kept(raw, key, f"[{failure}]", AUTOMATIC)
                return ReadMail(replace(report, undelivered=normal_id(failure.number)), reason=str(failure))
            if why := self._refused(mail):
                _log.info("a mail is kept and not answered: %s", why)
                return ReadMail(self.kept(raw, key, f"[not answered: {why}]", AUTOMATIC), reason=why)
            return self._read(mail, raw, key, own_id)
        except InputError as error:
            _log.warning("a mail cannot be read: %s", error.what, extra={"code": error.code})
            return ReadMail(self.kept(raw, key, f"[{error.what}]"), reason=error.what)
        except PARSE_ERRORS as error:
            what = f"the mail cannot be parsed ({type(error).__name__})"
            _log.warning("%s", what)
            return ReadMail(self.kept(raw, key, f"[{what}]"), reason=what)

    def kept(self, raw: bytes, key: str, reason: str, event: str = UNREADABLE) -> Incoming:
        """A mail that is kept as it came, with the reason why nobody answers it."""
        place = f"{CONVERSATION}unreadable"
        return Incoming(reason, NAME, place, key, payload=raw, event=event, account=self._account.address)

    def _refused(self, mail: EmailMessage) -> str:
        """Why a mail gets no answer: it is automatic, or the agent's own."""
        if why := automatic(mail):
            return why
        senders = addresses_in(mail, "from") + addresses_in(mail, "sender")
        return "the agent sent it" if any(self._account.owns(one) for one, _ in senders) else ""

    def _read(self, mail: EmailMessage, raw: bytes, key: str, own_id: str) -> ReadMail:
        senders = addresses_in(mail, "from")
        if not senders or not is_address(senders[0][0]):
            raise InputError("the mail names no sender that can be answered")
        address, name = senders[0]
        is_verified = is_one_address(mail, "from") and self._trust.verifies(mail, address)
        sender = address if is_verified else f"{UNVERIFIED}{address}"
        answered = ids_in(raw_header(mail, "in-reply-to"))
        references = ids_in(raw_header(mail, "references")) or answered[:1]
        number = own_id or f"{key.rpartition(':')[2][:32]}@{self._account.domain}"
        direct_to = [one for one, _ in addresses_in(mail, "to")]
        others = [one for one in (*direct_to, *(cc for cc, _ in addresses_in(mail, "cc"))) if one != address]
        reply_to = answered[-1] if answered else (references[-1] if references else None)
        text, files = read_mail(mail)
        message = Incoming(
            text or "(no words)",
            sender,
            f"{CONVERSATION}{sender}",
            key,
            normal_id(number),
            normal_id(reply_to) if reply_to else None,
            None,
            name[:_NAME_CHARS_MAX],
            all(self._account.owns(one) for one in others),
            raw,
            account=self._account.address,
            addressed=self._is_addressed(direct_to, reply_to),
            files=attachments_of(files, normal_id(number), raw),
        )
        known = (*references[:1], *references[1:][-_REFERENCES_MAX:])
        return ReadMail(message, known, number, subject_of(mail))

    def _is_addressed(self, direct_to: Sequence[str], reply_to: str | None) -> bool:
        """Whether a mail goes to the agent itself, and not only a copy of it; or answers one of its mails."""
        if reply_to is not None and self._account.is_own_id(reply_to):
            return True
        return not direct_to or any(self._account.owns(one) for one in direct_to)


def in_thread(read: ReadMail, account: EmailAccount, threads: EmailThreads) -> tuple[Incoming, Sequence[Cursor]]:
    """A mail in its thread with its sender, and the cursor that keeps the thread; subjects never join (spec: channels).

    The first of the references is the root. In a thread that the agent began a mail has no topic: its place is that of
    the reply that it answers.
    """
    message = read.message
    if message.event:
        return message, ()
    person = message.sender
    first = read.references[0] if read.references else read.own_id
    root = threads.root_of(person, (*reversed(read.references),)) or normal_id(first)
    cursor = threads.note(person, root, read.subject, (*read.references[-4:], read.own_id))
    topic = None if account.is_own_id(root) else root
    return replace(message, topic=topic), (cursor,)
