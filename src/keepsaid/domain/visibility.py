"""Visibility: who may read a memory made from several others, and which identities are one person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from keepsaid.domain import commits, prompt
from keepsaid.domain.memory import GLOBAL, NewMemory, conversation_scope, person_scope
from keepsaid.domain.message import Lane, Trust, Trusted, is_forwarded
from keepsaid.domain.revision import RevisionRefusal
from keepsaid.text.normal import joined, parted
from keepsaid.values import frozen

OWN_TOOLS = frozenset(
    [
        "memory_search", "memory_open", "memory_save", "memory_correct", "memory_confirm", "memory_forget", "ask_for",
        "skill", "set_personality", "branch", "task_create", "task_cancel", "schedule_add", "schedule_list",
        "schedule_cancel", "stay_silent", "react", "attach_file",
    ]
)  # fmt: skip
"""Tools whose output is our own, or was trusted where it came from; that of all others comes from outside."""

_TRUSTED = (Trust.EXTERNAL, Trust.KNOWN, Trust.OWNER)
_NO_CHATS: Mapping[str, str] = MappingProxyType({})


class Parent(NamedTuple):
    """What a memory is made from, as far as its child takes after it."""

    scope: str
    trust: Trust


class ShareCandidate(NamedTuple):
    """One memory that may be made: for whom, how far trusted, and the places of the parents it may be made from."""

    scope: str
    trust: Trust
    parents: tuple[int, ...]


def least(trusts: Iterable[Trust]) -> Trust:
    """The least of several trusts; what comes from nowhere is external."""
    return min(trusts, key=_TRUSTED.index, default=Trust.EXTERNAL)


def trust_in(text: str) -> Trust:
    """The trust of a text that states one (`Trusted`); any other comes from outside."""
    return text.trust if isinstance(text, Trusted) else Trust.EXTERNAL


def trust_of_words(trust: Trust, text: str) -> Trust:
    """The trust of what somebody wrote: a text that he forwards is not his own, and comes from outside."""
    return Trust.EXTERNAL if is_forwarded(text) else trust


def trust_of(record: prompt.Record) -> Trust:
    """The trust of a record. Of one without a stored trust only the output of our own tools is trusted."""
    if record.trust is not None:
        return trust_of_words(record.trust, record.text) if record.role is prompt.Role.USER else record.trust
    return Trust.OWNER if record.role is prompt.Role.TOOL and record.speaker in OWN_TOOLS else Trust.EXTERNAL


def least_of(records: Iterable[prompt.Record]) -> Trust:
    """The least trust of records; answers stored without one have that of everything else, and none are the owner's."""
    known = (one for one in records if one.role is not prompt.Role.ASSISTANT or one.trust is not None)
    return least([Trust.OWNER, *map(trust_of, known)])


def within(narrow: str, wide: str, chats: Mapping[str, str] = _NO_CHATS) -> bool:
    """Whether everybody who reads the narrow scope reads the wide one too: global > person > conversation > lane.

    A conversation lies within a person only where it is known to be that person's direct chat: `chats` says so, from
    the scope of the conversation to the scope of the person. In a room others listen.
    """
    if wide in (narrow, GLOBAL):
        return True
    conversation = _conversation_of(narrow)
    return bool(conversation) and wide in (conversation, chats.get(conversation))


def joined_scope(scopes: Iterable[str], chats: Mapping[str, str] = _NO_CHATS) -> tuple[str, ...]:
    """The narrowest of several scopes; of those that do not lie in one another each, in order, and none for none.

    With more than one, no single memory may be made of all: see `shares`.
    """
    distinct = sorted(set(scopes))
    wider = {GLOBAL} if len(distinct) > 1 else set()
    for one in distinct:
        conversation = _conversation_of(one)
        wider |= {conversation, chats.get(conversation, "")} - {one}
    return tuple(one for one in distinct if one not in wider)


def shares(parents: Sequence[Parent], chats: Mapping[str, str] = _NO_CHATS) -> tuple[ShareCandidate, ...]:
    """The memories that may be made of these parents, one for each narrowest scope.

    Each may say only what its own parents say: a parent is in a share when all its readers can read the parent.
    """
    return tuple(
        ShareCandidate(scope, least(parents[n].trust for n in places), places)
        for scope in joined_scope((one.scope for one in parents), chats)
        for places in [tuple(n for n, one in enumerate(parents) if within(scope, one.scope, chats))]
    )


def _conversation_of(scope: str) -> str:
    """The scope of the conversation that a lane or a conversation lies in; "" for any other scope."""
    if scope.startswith("conversation:"):
        return scope
    if not scope.startswith("lane:"):
        return ""
    _, channel, account, conversation, key = parted(":", scope, 5)
    return conversation_scope(Lane(channel, account, conversation, key))


class ShareReach(StrEnum):
    """How far a memory is shared: in its whole conversation, in all direct chats of its person, or everywhere."""

    CONVERSATION = "conversation"
    PERSON = "person"
    GLOBAL = "global"


class ShareRefusal(StrEnum):
    """Why a memory is not shared more widely."""

    GONE = "there is no such memory"
    NOT_THEIRS = "only its speaker or the owner may share it"
    OUTSIDE = "it came from outside, and is readable in its own lane only"
    NOWHERE = "it does not belong to a conversation"
    BEFORE_OTHERS = "others were present, so it does not belong to one person"
    NOT_WIDER = "some who can read it now could not read it then"


@frozen
class MemoryShared:
    """From which scope to which a memory was let, by whom and why; both are the same where it was so already."""

    before: str
    after: str
    by: str
    reason: str
    at: int


ShareResult = MemoryShared | ShareRefusal | RevisionRefusal
"""The outcome of a request to share: it was shared, may not be, or is not a current memory."""


@frozen
class ShareMemory(commits.Commit[ShareResult]):
    """Share a memory as far as `to`, if `by` may: its speaker, an identity linked with the speaker, or the owner."""

    memory_id: int
    to: ShareReach
    by: str
    reason: str
    at: int


def wider(new: NewMemory, to: ShareReach) -> str | ShareRefusal:
    """The scope a memory would have, or why it may not have it: all who can read it must keep that."""
    if new.trust is Trust.EXTERNAL:
        return ShareRefusal.OUTSIDE
    scope = _scope(new, to)
    if isinstance(scope, ShareRefusal):
        return scope
    chats = {conversation_scope(new.lane): person_scope(new.chat_of)} if new.lane and new.chat_of else {}
    return scope if within(new.scope, scope, chats) else ShareRefusal.NOT_WIDER


def _scope(new: NewMemory, to: ShareReach) -> str | ShareRefusal:
    if to is ShareReach.GLOBAL:
        return GLOBAL
    if to is ShareReach.PERSON:
        return person_scope(new.chat_of) if new.chat_of else ShareRefusal.BEFORE_OTHERS
    return conversation_scope(new.lane) if new.lane else ShareRefusal.NOWHERE


_PARTS = 3


class Identity(NamedTuple):
    """Who somebody is in one medium: an id there that never changes, unlike a name."""

    channel: str
    account: str
    sender: str

    @property
    def person(self) -> str:
        """The person it is until it is joined with others, as `person_of` names it."""
        return joined(":", *self)


def identity_in(person: str) -> Identity | None:
    """The identity that a person's name says; None for the owner, and for what names no identity."""
    parts = parted(":", person, _PARTS)
    return Identity(*parts) if len(parts) == _PARTS and all(parts) else None


@frozen
class Joined:
    """One identity of a person: by its name, when it was joined and by whom."""

    name: str
    at: int
    by: str


@frozen
class Person:
    """Identities that are one person. The owner's own, which the configuration names, stand as `owner`."""

    id: str
    identities: tuple[Joined, ...]


@frozen
class SeenIdentity:
    """An identity that something is remembered from: what it was last called, how much, and when the last was said."""

    name: str
    called: str
    memories: int
    last_at: int


@frozen
class JoinPeople(commits.Commit[Person | None]):
    """Make one person of these, and of all whom they were joined with before; `id` is for one that is new.

    Whoever is joined with the owner hears what is for the owner: where one of them is, and it is not the owner who
    commands it, nothing is changed and the result is None.
    """

    id: str
    names: tuple[str, ...]
    by: str
    at: int

    def __post_init__(self) -> None:
        if len(set(self.names)) < len(self.names) or len(self.names) < 2:
            raise ValueError("a person is made of two or more, each named once")


@frozen
class SplitPerson(commits.Commit[bool]):
    """Separate one identity from its person; whether it was joined. Of two, the other is alone then too."""

    name: str
