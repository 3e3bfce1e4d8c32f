"""Principals: who calls from outside, in whose name, in which conversations, and what they may do (spec: doors)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from enum import StrEnum

from keepsaid.domain.memory import OWNER, Listener, conversation_scope, episode_scope, person_of, person_scope
from keepsaid.domain.message import Lane, Origin, Trust, lane_key
from keepsaid.domain.recorded_talk import recorded_key
from keepsaid.values import frozen


class Scope(StrEnum):
    """What a key opens."""

    TALK = "talk"
    """Messages in, and their answers out."""
    READ = "read"
    """Memory, context and transcripts, within what its sender may read."""
    WRITE = "write"
    """Record talk; save, correct and forget memories of its sender."""
    OPERATE = "operate"
    """Lease batches of all conversations and answer them."""


@frozen
class Principal:
    """A caller: one sender, in conversations that nobody else can name.

    `name` is that of its key, and the account of its conversations: another key's conversation of the same name is
    another conversation. With `direct`, only its sender and an agent are in them, so that what the sender may read is
    read. `everything` is the operator, who reads as the owner does. With `people`, the key is that of a program with
    users of its own, and a call may name who speaks, by an id and as `called` among people. `operates` is who came with
    the operator's token, or has the home open: tasks, schedules and the status are the operator's.
    """

    name: str
    channel: str
    sender: str
    scopes: frozenset[Scope] = frozenset()
    trust: Trust = Trust.KNOWN
    direct: bool = True
    everything: bool = False
    people: bool = False
    operates: bool = False
    called: str = ""

    def speaking_as(self, person: str, called: str = "") -> Principal:
        """The same key in the name of one of its people; itself where it has no people, or nobody is named."""
        return replace(self, sender=person, called=called) if self.people and person else self

    def may(self, scope: Scope) -> bool:
        """Whether it may do what a scope opens."""
        return self.everything or scope in self.scopes

    def origin(self, conversation: str) -> Origin:
        """Where it says something in one of its conversations."""
        where = self.channel, self.name, conversation
        return Origin(*where, self.sender, self.called, direct=self.direct, trust=self.trust)

    def lane(self, conversation: str) -> Lane:
        """The root lane of one of its conversations."""
        return Lane(self.channel, self.name, conversation, lane_key(conversation))

    def recorded_lane(self, conversation: str) -> Lane:
        """The lane of what it recorded of one of its conversations."""
        return self.lane(conversation)._replace(key=recorded_key(conversation))

    def owns(self, lane: Lane) -> bool:
        """Whether a lane is one of its conversations."""
        return self.everything or (lane.channel, lane.account) == (self.channel, self.name)

    @property
    def person(self) -> str:
        """Whom memory knows it as: the owner, or its channel, account and sender."""
        return person_of(self.origin(""))

    def listener(self, conversation: str = "") -> Listener:
        """The listener of its reads, in the recorded talk of a conversation, or in no conversation.

        It asks for what it reads, so that all lanes of its conversations are open to it.
        """
        lane = self.recorded_lane(conversation) if conversation else None
        if self.everything:
            return Listener(lane, everything=True, cross=True)
        return Listener(lane, self.person if self.direct else "", self.direct, asked=True, cross=True)

    def scope(self, conversation: str = "") -> str:
        """The scope of what it saves: its sender's own; where others listen, the conversation's."""
        if self.everything:
            return person_scope(OWNER)
        return episode_scope(self.origin(conversation), self.lane(conversation))

    def commands(self, scope: str, conversations: Collection[str] = ()) -> bool:
        """Whether what has a scope is its own to change: its sender's, or that of named conversations of its own."""
        own = {person_scope(self.person)} if self.direct else set[str]()
        return self.everything or scope in own | {conversation_scope(self.lane(one)) for one in conversations}


def own_agent(account: str) -> Principal:
    """An agent that the owner runs on this machine: it reads and changes what the owner does in direct chats."""
    return Principal(account, "library", OWNER, frozenset(Scope), Trust.OWNER, operates=True)


def operator(channel: str, account: str = "default") -> Principal:
    """The owner's own programs: who may run commands on this machine, or carries the operator's token."""
    return Principal(account, channel, OWNER, frozenset(Scope), Trust.OWNER, everything=True, operates=True)
