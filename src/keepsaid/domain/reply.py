"""Replies: outbound items, in order per conversation, and how a channel sends them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from keepsaid.domain.message import Lane, StoredMessage
from keepsaid.domain.turn_files import TurnFile
from keepsaid.values import frozen


class Sending(StrEnum):
    """How a channel delivers: not at all, when asked, or by calling out."""

    NONE = "none"
    PULL = "pull"
    PUSH = "push"


@frozen
class ReplyDraft:
    """A reply to be put in the outbox; `notice` marks one the program wrote, not the agent.

    `url` is where to push it, `reply_to` the provider id of the message it answers.
    """

    id: int
    text: str
    notice: bool = False
    url: str | None = None
    reply_to: str | None = None


GITHUB_ISSUE = r"github:([^/\s]+/[^/\s#@]+)#([0-9]+)"
"""A conversation about an issue or a pull request, the only ones at GitHub that can be answered."""


def address(messages: Sequence[StoredMessage]) -> tuple[str | None, str | None]:
    """Where the reply to a batch goes: the newest URL among its messages, and the message it answers, the last."""
    urls = (message.inbound.reply_url for message in reversed(messages))
    answered = messages[-1].inbound.marks.provider_id if messages else None
    return next((url for url in urls if url is not None), None), answered


@frozen
class StoredReply:
    """A stored reply. `key` is stable over retries and restarts, for providers that take one.

    `possible_duplicate` is set once an earlier try may have arrived. `detail` is the result of the last attempt. Of one
    that was taken to be sent, `doubts` says how many tries ended in doubt, and `tried_from` when the first one began.
    """

    id: int
    lane: Lane
    turn_id: int | None
    state: str
    draft: ReplyDraft
    fence: int = 0
    attempts: int = 0
    possible_duplicate: bool = False
    created_at: int = 0
    detail: str = ""
    doubts: int = 0
    tried_from: int = 0
    files: tuple[TurnFile, ...] = ()

    @property
    def key(self) -> str:
        """The idempotency key."""
        return f"keepsaid-{self.id:x}"

    def within(self, bytes_max: int) -> StoredReply:
        """The reply with the files that its medium takes, of `bytes_max` bytes at most; its text names the others."""
        left = [one for one in self.files if one.size > bytes_max]
        if not left:
            return self
        why = "is too large to be sent here" if bytes_max else "cannot be sent here"
        lines = "\n".join(f"[{one.described} {why}]" for one in left)
        text = f"{self.draft.text}\n\n{lines}" if self.draft.text.strip() else lines
        files = tuple(one for one in self.files if one.size <= bytes_max)
        return replace(self, draft=replace(self.draft, text=text), files=files)


@frozen
class SendLimits:
    """When a reply is given up: on a channel in `without_resend` once it may have arrived, on others after 20 doubts.

    What was provably not sent is tried again for `dead_after_ms`.
    """

    without_resend: frozenset[str] = frozenset()
    dead_after_ms: int = 86_400_000


class Delivered(StrEnum):
    """The result of one attempt to send: the verb that settles it."""

    CONFIRMED = "confirm"
    RETRY = "retry"
    DOUBT = "doubt"
    DEAD = "bury"
    REFUSED = "refuse"


@frozen
class SendResult:
    """A channel's report on one try; `detail` says why, `provider_id` names the delivered item.

    An `outage` is a failure of the provider, not of the reply: it is tried again however often.
    """

    outcome: Delivered
    detail: str = ""
    provider_id: str | None = None
    retry_after_ms: int | None = None
    outage: bool = False


IN_DOUBT = "it may have arrived; the channel's policy is not to repeat"
SENT_AGAIN = "sent again: it may have arrived"


def accepted(detail: str) -> str:
    """What a reply says that a person has given up: why it could not be delivered, and who said so."""
    return f"{detail}; accepted by a person" if detail else "accepted by a person"
