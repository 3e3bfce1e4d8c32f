"""Pairing: who may talk to the agent; a person who may not is sent a code, by which the owner lets them in.

Sources: spec channels, C8 and C9.
"""

from __future__ import annotations

from enum import StrEnum

from keepsaid.domain.commits import Commit
from keepsaid.domain.message import Origin, Trust
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.visibility import Identity
from keepsaid.values import frozen


class Access(StrEnum):
    """Who may talk to the agent, besides the owner: nobody, those who were let in or are listed, or everybody."""

    OWNER = "owner"
    PAIRED = "paired"
    LISTED = "listed"
    ANYONE = "anyone"


class PairingState(StrEnum):
    """A person was sent a code, was let in, or is the owner."""

    PENDING = "pending"
    KNOWN = "known"
    OWNER = "owner"


@frozen
class AccessRule:
    """Who may talk on a channel: in direct chats, and in groups; `allow` has ids of people and of groups.

    Who was paired may talk in direct chats, unless only the owner may; in a group, all who are in it.
    """

    direct: Access
    group: Access
    allow: frozenset[str] = frozenset()

    def lets_in(self, origin: Origin, paired: PairingState | None) -> bool:
        """Whether the agent hears a sender, whose pairing is given."""
        if origin.trust is Trust.OWNER:
            return True
        access = self.direct if origin.direct else self.group
        if access in (Access.OWNER, Access.ANYONE):
            return access is Access.ANYONE
        if origin.direct and paired is PairingState.KNOWN:
            return True
        return (origin.sender if origin.direct else origin.conversation.rpartition(":")[2]) in self.allow

    def pairs(self, origin: Origin) -> bool:
        """Whether a sender who is not let in is sent a code."""
        return origin.direct and self.direct is Access.PAIRED


_LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Those of a code: none that is taken for another one."""

_CODE_CHARS, _LETTER_BITS = 8, 5
CODE_BITS = _CODE_CHARS * _LETTER_BITS
"""Random bits of a code."""

CODE_MS = 3_600_000
"""How long a code holds, and how long nobody is sent another one."""

PENDING_MAX = 3
"""Codes of one account that hold at a time."""


def code_of(bits: int) -> str:
    """The code of `CODE_BITS` random bits."""
    return "".join(_LETTERS[bits >> place & len(_LETTERS) - 1] for place in range(0, CODE_BITS, _LETTER_BITS))


def code_in(text: str) -> str:
    """The code in a text that was typed, whatever its case and dashes; "" for what is none."""
    letters = "".join(text.upper().replace("-", "").split())
    return letters if len(letters) == _CODE_CHARS and set(letters) <= set(_LETTERS) else ""


@frozen
class Pairing:
    """A person on a channel who was sent a code or let in, when, and until when the code holds (milliseconds UTC).

    `name` is what the channel calls them, and `conversation` where they wrote, as far as their first message is kept.
    """

    who: Identity
    state: PairingState
    code: str = ""
    at: int = 0
    until: int = 0
    name: str = ""
    conversation: str = ""


@frozen
class SendCode(Commit[bool]):
    """Send a code to who wrote a message, unless they have one, were let in, or too many of the account hold.

    False where none is sent. `notice` goes to the conversation of the message; the code holds until a time
    (milliseconds UTC).
    """

    who: Identity
    message_id: int
    code: str
    notice: ReplyDraft
    at: int
    until: int


@frozen
class LetIn(Commit["LetInResult | None"]):
    """Let a person in, who is named or has a code that holds; None where nobody has it.

    `as_owner` says that this identity is the owner's.
    """

    at: int
    code: str = ""
    who: Identity | None = None
    as_owner: bool = False


@frozen
class LetInResult:
    """Who was let in, and the dropped batches with what they said before, oldest first."""

    who: Identity
    state: PairingState
    name: str = ""
    dropped: tuple[int, ...] = ()


@frozen
class ShutOut(Commit[bool]):
    """Let a person in no longer; False for one who was neither let in nor sent a code."""

    who: Identity
