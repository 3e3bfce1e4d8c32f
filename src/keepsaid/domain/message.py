"""Messages, as they arrive and as they are stored; and lanes, the ordered strands of a conversation (seed 003)."""

from __future__ import annotations

import json
from dataclasses import field
from enum import StrEnum
from hashlib import blake2b
from typing import Any, NamedTuple

from keepsaid.text.normal import joined
from keepsaid.values import frozen

FORGOTTEN = "forgotten"


class Lane(NamedTuple):
    """An ordered strand of a conversation; its identity is all four fields, never the key alone."""

    channel: str
    account: str
    conversation: str
    key: str

    def __str__(self) -> str:
        """Name the lane for people: `terminal:me root:me`."""
        return f"{self.conversation} {self.key}"


class LaneRules(NamedTuple):
    """How a lane is found where a message answers another.

    `join`: a reply to something that has a lane joins it; without, it always has the lane of a reply (seed 003).
    `infer`: what a message of a group answers is inferred where nothing says it, and strands get lanes of their own.
    """

    join: bool = True
    infer: bool = False


def lane_key(chat: str, topic: str | None = None, reply_to: str | None = None) -> str:
    """The key of a strand: topic before reply before root (seed 003).

    `chat` is the conversation's id. A reply whose target is known joins the lane of its target instead of
    opening one; that is decided in the commit of `receive`, where the target can be looked up.
    """
    if topic:
        return f"topic:{chat}:{topic}"
    if reply_to:
        return f"reply:{chat}:{reply_to}"
    return f"root:{chat}"


def forgotten_lane(lane: Lane, conversation: int, number: int) -> Lane:
    """The name of a lane whose conversation was forgotten: numbers, in the place of every name but the channel's."""
    return Lane(lane.channel, lane.account, f"{FORGOTTEN}:{conversation}", f"{FORGOTTEN}:{number}")


def conversation_note(lane: Lane) -> str:
    """The name of the note that holds the title of a lane's conversation."""
    return joined("|", "conversation", lane.channel, lane.account, lane.conversation)


def topic_of(lane: Lane) -> str | None:
    """The topic that a lane is named after; None for every other lane."""
    start = f"topic:{lane.conversation}:"
    return lane.key.removeprefix(start) if lane.key.startswith(start) else None


TERMINAL = "terminal"
"""The channel of whoever sits at the machine: the owner."""

SYSTEM = "system"
"""The sender of what the program itself says; nobody outside can be called so."""

RESULT = "task.result"
"""The event of a message in which the program reports a result."""

_COPIED_BYTES_MAX = 65_536
"""A payload that is not longer is hashed together with its head, which is faster."""


class Trust(StrEnum):
    """Where something came from; `external` text is never injected outside its lane."""

    OWNER = "owner"
    KNOWN = "known"
    EXTERNAL = "external"


SERVES = {"owner": Trust.OWNER, "known": Trust.KNOWN, "anyone": Trust.EXTERNAL}
"""Whom a tool serves, by the words of settings and declarations: the least trust of a turn that may call it."""


class Trusted(str):
    """A text with its trust, where that is not what its place in a prompt says already."""

    trust: Trust

    def __new__(cls, text: str, trust: Trust) -> Trusted:
        """The text with its trust."""
        made = super().__new__(cls, text)
        made.trust = trust
        return made


@frozen
class Origin:
    """Who said it and where.

    `direct` says that only this sender and the agent are in the conversation. `name` is what the
    channel calls the sender; it identifies nobody.
    """

    channel: str
    account: str
    conversation: str
    sender: str
    name: str = ""
    direct: bool = False
    trust: Trust = Trust.EXTERNAL


@frozen
class ProviderMarks:
    """The provider's names for a message.

    `external_id` names this delivery and is what de-duplication uses, unique per channel and account.
    `provider_id` is what replies and edits refer to; `reply_to` is the provider id of the target.
    """

    external_id: str | None = None
    provider_id: str | None = None
    reply_to: str | None = None


@frozen
class Content:
    """What was said: raw bytes as received, searchable text, and the kind of event ("" for talk)."""

    payload: bytes
    text: str
    event: str = ""


@frozen
class Attachment:
    """One thing that came with a message: its name, its media type and where the channel has it, each "" when not said.

    `size` is in bytes, 0 when not said. `ref` may hold a key: it is in no repr.
    """

    name: str
    kind: str = ""
    ref: str = field(default="", repr=False)
    size: int = 0


@frozen
class Inbound:
    """A message as a channel hands it over, before it is stored.

    `priority`: 10 people, 50 webhooks, 100 schedules; lower is served first (seed 000).
    `topic` is the channel's id of a strand, if it has strands. `reply_url` is where to push the
    reply, for channels that can. `key` is that of the lane it is bound to, for what knows it; not stored.
    `conversation_name` is the chat's title on its medium, kept as a note of the conversation. `addressed` says that the
    medium itself names the agent in it, as by a mention, and `more_ms` for how long a part that follows is waited for.
    `by_bot` says that no person wrote it; not stored. `files` is what came with it and can be fetched from its channel.
    A lane that it opens begins with what was said in the conversation up to the message `forks_after`; not stored.
    With `incognito`, a lane that it opens is in incognito from its first message on; not stored.
    With `whole`, nothing that belongs to it follows: its window closes at once. `placing` says why it is in its lane,
    and of other messages, by their ids, what it changes for them; 0 is the message itself.
    """

    origin: Origin
    content: Content
    marks: ProviderMarks = ProviderMarks()
    priority: int = 10
    topic: str | None = None
    reply_url: str | None = None
    key: str | None = None
    conversation_name: str = ""
    addressed: bool = False
    more_ms: int = 0
    by_bot: bool = False
    files: tuple[Attachment, ...] = ()
    forks_after: int | None = None
    incognito: bool = False
    whole: bool = False
    placing: tuple[tuple[int, str], ...] = ()

    @property
    def lane(self) -> Lane:
        """The lane this message opens or joins when its reply target is unknown."""
        origin = self.origin
        key = lane_key(origin.conversation, self.topic, self.marks.reply_to) if self.key is None else self.key
        return Lane(origin.channel, origin.account, origin.conversation, key)

    @property
    def key_hash(self) -> bytes | None:
        """16 bytes that name this delivery, or None when the provider gave it no id.

        The parts cannot run into one another: what is fit to store holds no NUL.
        """
        if (external_id := self.marks.external_id) is None:
            return None
        return _hash_of(f"{self.origin.channel}\0{self.origin.account}\0{external_id}", b"")

    @property
    def body_hash(self) -> bytes:
        """16 bytes over channel, account and payload: what a signature covers, whatever headers came with it."""
        return _hash_of(f"{self.origin.channel}\0{self.origin.account}\0", self.content.payload)

    @property
    def content_hash(self) -> bytes:
        """16 bytes over what was said, by whom and where: the same key with another hash is a conflict."""
        said = f"{self.origin.sender}\0{self.origin.conversation}\0{self.content.event}\0"
        return _hash_of(said, self.content.payload)


def payload_fields(payload: bytes, bytes_max: int) -> dict[str, Any]:
    """Return the fields of a payload that is a JSON object; nothing of any other, and of one with more bytes."""
    if len(payload) > bytes_max:
        return {}
    try:
        fields = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def _hash_of(head: str, payload: bytes) -> bytes:
    """16 bytes over both; a large payload is not copied."""
    start = head.encode("utf-8", "surrogatepass")
    if len(payload) <= _COPIED_BYTES_MAX:
        return blake2b(start + payload, digest_size=16).digest()
    whole = blake2b(start, digest_size=16)
    whole.update(payload)
    return whole.digest()


class BodyKey(NamedTuple):
    """The hash of a delivery's body; until `until` (milliseconds UTC) the same body is a duplicate."""

    hash: bytes
    until: int


@frozen
class StoredMessage:
    """A stored message: its number is its place in the lane, `received_at` is milliseconds UTC.

    `damaged` says that what is on disk is not what was stored: its words and payload are left out then.
    """

    id: int
    lane: Lane
    number: int
    inbound: Inbound
    received_at: int
    damaged: bool = False

    @property
    def text(self) -> str:
        """The searchable text."""
        return self.inbound.content.text


EDITED = "edited"
"""The event of a message that takes the place of an earlier one with the same provider id."""

UNREADABLE = "unreadable"
"""The event of something that a medium sent and nobody can read: it is kept as it came, and answered by nobody."""

AUTOMATIC = "automatic"
"""The event of what a program sent, to a list or by itself, such as a note of absence: it is kept, and not answered."""

STRANGER = "stranger"
"""The event of what somebody said who is not let in: it is kept, in no prompt and no memory, and not answered."""

LOOP = "loop"
"""The event of what a bot says once it and the agent have answered each other too often: kept, and not answered."""

REACTION = "reaction"
"""The event of an emoji that somebody gave a message: no turn follows, unless a rule asks for one."""

RECORDED = "recorded"
"""The event of what somebody said to another agent, which answers it: it is kept as said, and not answered."""

ANSWERED = "answered"
"""The event of what another agent answered in a conversation of its own: it is kept as the agent's word."""

FORWARDED = "forwarded"
"""The first word of the line above a text that its sender forwards: `[forwarded: from Bob]`."""


@frozen
class MediaMessage:
    """A message as its medium tells it.

    `delivery` names this delivery: the same again is the same message. `topic` and `reply_to` say where it stands;
    what is attached is named in the text, and those of it that are files in `files` too. `conversation_name` is the
    title of the chat. `by_bot` says that a bot said it.
    """

    conversation: str
    sender: str
    text: str
    provider_id: str
    delivery: str
    name: str = ""
    direct: bool = False
    topic: str | None = None
    reply_to: str | None = None
    event: str = ""
    conversation_name: str = ""
    by_bot: bool = False
    files: tuple[Attachment, ...] = ()


def is_forwarded(text: str) -> bool:
    """Whether a message is a text by somebody else, which its sender forwards."""
    return text.startswith((f"[{FORWARDED}:", f"[{FORWARDED}]"))


class IgnoredUpdate(NamedTuple):
    """An update of a medium that is not a message to the agent, and why it is ignored."""

    reason: str
