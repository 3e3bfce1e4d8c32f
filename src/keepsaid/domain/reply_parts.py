"""Parts of a reply: what a medium takes in one message at most, made once, kept, and sent one after the other."""

from __future__ import annotations

from keepsaid.domain.commits import Commit
from keepsaid.values import frozen


@frozen
class ReplyPart:
    """A part as it is sent: `body` is what its channel made of it, and the same at every try.

    `n` counts from 0. Of one that is sent, `provider_id` is the name that the provider gave it, if any.
    `possible_duplicate` is set once an earlier try of it may have arrived.
    """

    reply_id: int
    n: int
    body: str
    is_sent: bool = False
    provider_id: str | None = None
    possible_duplicate: bool = False

    @property
    def key(self) -> str:
        """The idempotency key, of at most 25 characters: some providers take no more."""
        return f"k{self.reply_id:x}.{self.n}"


@frozen
class KeepParts(Commit[tuple[ReplyPart, ...]]):
    """Keep the parts of a reply that is being sent, unless it has some, and begin the first that is not sent yet.

    Returns all of them, in order: none where none were kept and `bodies` has none, and with an old fence.
    """

    reply_id: int
    fence: int
    bodies: tuple[str, ...] = ()


@frozen
class NoteUndelivered(Commit[bool]):
    """Note on a sent reply that its medium reports it as undelivered; its state stays, as anybody can forge a report.

    `provider_id` is what the provider calls the reply or a part of it. Refused (False) where no reply that the account
    sent is called so.
    """

    channel: str
    account: str
    provider_id: str
    report: str


@frozen
class ConfirmPart(Commit[bool]):
    """Record that a part arrived, and begin the one after it; refused (False) with an old fence."""

    reply_id: int
    fence: int
    n: int
    provider_id: str | None = None
