"""Delivery status notifications: a mail server says that a mail of the agent did not arrive (RFC 3464).

Anybody can forge one, so it moves no reply to another state. It is kept, says which mail failed and why, and is noted
on the reply.
"""

from __future__ import annotations

from collections.abc import Iterator
from email.message import EmailMessage, Message
from itertools import islice
from typing import Any

from keepsaid.adapters.channels.email.account import EmailAccount
from keepsaid.adapters.channels.email.headers import ids_in, raw_header
from keepsaid.values import frozen

_PARTS_MAX = 10
"""Parts of a notification that are read, and blocks of fields in one of them: a block describes one recipient."""

_FIELD_CHARS_MAX = 200
_FAILED = "failed"


@frozen
class Bounce:
    """The Message-ID of a mail of the agent that did not arrive, and at which recipients, with their reasons."""

    number: str
    failures: str

    def __str__(self) -> str:
        """The report on one line."""
        return f"the mail <{self.number}> was not delivered to {self.failures}"


def bounced(mail: EmailMessage, account: EmailAccount) -> Bounce | None:
    """What a mail reports as not delivered; None if it is no such report, or one of a mail that is not the agent's."""
    if mail.get_content_type() != "multipart/report" or not mail.is_multipart():
        return None
    parts = list(islice(mail.iter_parts(), _PARTS_MAX))
    number = next((one for part in parts for one in _original_ids(part) if account.is_own_id(one)), "")
    failures = [one for part in parts for one in _failures(part)]
    return Bounce(number, "; ".join(failures)) if number and failures else None


def _original_ids(part: Message[Any, Any]) -> Iterator[str]:
    """The Message-ID of the mail that a part returns: the whole mail, or its headers alone."""
    kind = part.get_content_type()
    if kind == "message/rfc822":
        for original in islice(part.walk(), 1, 2):
            yield from ids_in(raw_header(original, "message-id"))
    elif kind == "text/rfc822-headers":
        text = str(part.get_payload())
        lines = (line.partition(":") for line in text.splitlines())
        yield from (one for name, _, value in lines if name.strip().lower() == "message-id" for one in ids_in(value))


def _failures(part: Message[Any, Any]) -> Iterator[str]:
    """Each recipient that got nothing, with the status and the words of its server."""
    if part.get_content_type() != "message/delivery-status" or not part.is_multipart():
        return
    for block in islice(part.get_payload(), _PARTS_MAX):
        if isinstance(block, Message) and _field(block, "action").lower() == _FAILED:
            recipient = _field(block, "final-recipient").rpartition(";")[2].strip() or "its recipient"
            reasons = (_field(block, "status"), _field(block, "diagnostic-code").rpartition(";")[2].strip())
            why = " ".join(one for one in reasons if one)
            yield f"{recipient} ({why})" if why else recipient


def _field(block: Message[Any, Any], name: str) -> str:
    return " ".join(raw_header(block, name).split())[:_FIELD_CHARS_MAX]
