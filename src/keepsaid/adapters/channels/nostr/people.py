"""The participants of each conversation: a reply is encrypted for each of them, and the conversation id is a hash.

They are kept as a cursor of the account, in the commit of the first message.
"""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.channels.nostr.keys import HEX, LEGACY, NostrRumor
from keepsaid.domain.line import Cursor
from keepsaid.ports.channel import InboundSink
from keepsaid.values import frozen

CONVERSATION = "nostr:direct:"
"""The beginning of a conversation id; after it comes the hash of the participants."""

PEOPLE_MAX = 10
"""NIP-17 is not meant for larger rooms."""

_PREFIX = "people:"
_LEGACY_MARK, _CROWD_MARK = "4", "#"


@frozen
class Participants:
    """Those in a conversation beside the account, as public keys; none if there are too many.

    `count` includes the account. `is_legacy` says that the newest message was of kind 4.
    """

    others: Sequence[str]
    count: int
    is_legacy: bool = False


class NostrPeople:
    """The participants of an account's conversations, as they are stored in `inbox`."""

    def __init__(self, account: str, inbox: InboundSink) -> None:
        self._account = account
        self._inbox = inbox
        self._stored: dict[str, str] = {}

    async def find(self, conversation: str) -> Participants | None:
        """The participants of a conversation; None if nobody wrote in it. Raises StoreError."""
        name = _name_of(conversation)
        if name not in self._stored:
            stored = await self._inbox.cursors(self._account)
            self._stored = {key: value for key, value in stored.items() if key.startswith(_PREFIX)} | self._stored
        value = self._stored.get(name)
        return None if value is None else _read(value)

    def cursors_for(self, conversation: str, rumor: NostrRumor) -> list[Cursor]:
        """The cursor to store with a message; none if the same is stored already."""
        name, value = _name_of(conversation), _write(rumor, self._account)
        return [] if self._stored.get(name) == value else [Cursor(self._account, name, value)]

    def commit(self, cursors: Sequence[Cursor]) -> None:
        """Remember cursors that are stored now."""
        self._stored |= {cursor.name: cursor.value for cursor in cursors if cursor.name.startswith(_PREFIX)}


def participants_of(rumor: NostrRumor) -> set[str]:
    """The author of a message and those it is addressed to, as public keys."""
    tags = rumor.source.get("tags")
    named = (tag[1] for tag in tags if len(tag) > 1 and tag[0] == "p") if isinstance(tags, list) else ()
    return {rumor.author, *(one for one in named if isinstance(one, str) and HEX.fullmatch(one))}


def _name_of(conversation: str) -> str:
    return f"{_PREFIX}{conversation.removeprefix(CONVERSATION)}"


def _write(rumor: NostrRumor, account: str) -> str:
    people = participants_of(rumor) | {account}
    if len(people) > PEOPLE_MAX:
        return f"{_CROWD_MARK}{len(people)}"
    others = " ".join(sorted(people - {account}))
    return f"{_LEGACY_MARK} {others}" if rumor.source.get("kind") == LEGACY else others


def _read(value: str) -> Participants | None:
    if value.startswith(_CROWD_MARK):
        count = value.removeprefix(_CROWD_MARK)
        return Participants((), int(count)) if count.isdecimal() else None
    words = value.split()
    others = [one for one in words if HEX.fullmatch(one)]
    return Participants(others, len(others) + 1, words[:1] == [_LEGACY_MARK]) if others else None
