"""Channels, as a port: how messages come in, replies are sent, and progress of a turn is shown (never stored)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Final, Literal, Protocol, runtime_checkable

from keepsaid.domain.line import Cursor, LineState
from keepsaid.domain.message import Attachment, Inbound, Lane, StoredMessage
from keepsaid.domain.reply import Sending, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.values import frozen

MAY_SEND: Final[ContextVar[Callable[[], bool]]] = ContextVar("may_send", default=lambda: True)
"""Whether the reply that this task sends is still this process's to send; the outbox sets it."""


def check_may_send() -> None:
    """Raise InterruptedError when others may have sent the reply: this process was frozen, and taken for dead.

    A channel calls it when it has connected, right before the first byte leaves.
    """
    if not MAY_SEND.get()():
        raise InterruptedError("this process was stopped for so long that others may have sent it")


class Channel(Protocol):
    """One outside medium. A reply that carries a URL is sent whatever `sending` says."""

    @property
    def name(self) -> str:
        """Its name in messages and config."""

    @property
    def sending(self) -> Sending:
        """How it delivers."""

    async def send(self, reply: StoredReply) -> SendResult:
        """Try once to deliver; never raises. Not called for replies that wait to be pulled."""

    async def close(self) -> None:
        """Give back connections."""


@runtime_checkable
class PartedChannel(Protocol):
    """A channel whose medium limits what one message holds: a reply is sent there in parts, one after the other."""

    async def split(self, reply: StoredReply) -> Sequence[str]:
        """The bodies of its parts, at least one; asked once for each reply, and kept before the first is sent.

        Raises ChannelError where they cannot be made now, and StoreError: nothing was sent, and it is asked again.
        """

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        """Try once to deliver a part; never raises. Those before it have arrived."""


@runtime_checkable
class PreviewChannel(Protocol):
    """A channel that shows that an answer is being written, and what of it is there: for a while, and as no message."""

    @property
    def typing_ms(self) -> int:
        """After how long it has to be shown again that somebody types."""

    async def show_typing(self, lane: Lane) -> bool:
        """Show that somebody types; False where that is not shown. Never raises."""

    async def show_draft(self, lane: Lane, number: int, text: str) -> bool:
        """Show an unfinished answer in the place of the former one with this number; False where none can be shown.

        `number` is above 0 and below 2 to the 31st. Never raises.
        """


@runtime_checkable
class FileChannel(Protocol):
    """A channel whose medium keeps what is attached to messages, and hands it out later."""

    def fetch(self, account: str, file: Attachment) -> AsyncGenerator[bytes, None]:
        """The bytes of a file, in pieces of any size, as they come.

        It connects to its provider's servers alone, and follows no redirect. Raises FileUnavailable where trying again
        can help, FileRefused where it cannot.
        """


@frozen
class ChannelAbilities:
    """What a channel and its medium can do; the contract of channels asks for exactly this.

    `keyed_s` is for how many seconds a message that is sent again under its key stays one message: 0 for not at all,
    infinity for ever. `findable` says that the channel can look whether a message arrived before it sends it again. One
    message holds `chars_max` in `unit`, 0 for any length. Typing has to be shown again after `typing_s` seconds, 0
    where it is not shown. `streams` says that an unfinished answer can be shown, `edits` that people's edits arrive as
    such, `files` that files are fetched, `uploads` how many bytes a file may have that goes with a reply, 0 where none
    does; `reactions` that emoji arrive and can be given.
    """

    keyed_s: float = 0.0
    findable: bool = False
    chars_max: int = 0
    unit: Literal["chars", "utf16", "bytes"] = "chars"
    typing_s: float = 0.0
    streams: bool = False
    edits: bool = False
    files: bool = False
    reactions: bool = False
    uploads: int = 0

    def size_of(self, text: str) -> int:
        """The size of a text in the unit of the medium."""
        if self.unit == "chars":
            return len(text)
        return len(text.encode("utf-16-le", "replace")) // 2 if self.unit == "utf16" else len(text.encode())


@runtime_checkable
class DeclaredChannel(Protocol):
    """A channel that says what it can do."""

    @property
    def abilities(self) -> ChannelAbilities:
        """What it can do; the same for as long as it lives."""


def abilities_of(channel: object) -> ChannelAbilities:
    """What a channel says that it can do; nothing, if it does not say."""
    return channel.abilities if isinstance(channel, DeclaredChannel) else ChannelAbilities()


@frozen
class ReactionTarget:
    """A message that is to get a reaction: its provider id, the medium's id of its sender, and when it was received.

    `at_ms` is milliseconds UTC: with it, the same reaction to the same message is the same event everywhere.
    """

    provider_id: str
    sender: str = ""
    at_ms: int = 0


@runtime_checkable
class ReactingChannel(Protocol):
    """A channel on which a message can get an emoji."""

    async def react(self, lane: Lane, target: ReactionTarget, emoji: str) -> None:
        """Give a message of the lane an emoji; twice has the effect of once.

        Raises ToolError in words for the model, without words of the provider's: an emoji that cannot be used there, a
        message that is gone, a provider that cannot be reached.
        """


class Hook(Protocol):
    """A channel that others call: it proves who called and reads what they sent."""

    @property
    def name(self) -> str:
        """Its name in messages and config."""

    def read(self, headers: Mapping[str, str], body: bytes) -> Inbound | Incoming | HookAnswer | None:
        """The message in a call; None when there is nothing to keep (a ping), or what is to be answered then.

        `headers` are lower-case. Raises HookClosed when nobody has opened the hook, Forged when the
        signature is missing or wrong, InputError when the body cannot be read.
        """


@runtime_checkable
class PreparedHook(Protocol):
    """A hook that has to know something of its provider before it can read."""

    async def prepare(self, headers: Mapping[str, str], body: bytes) -> None:
        """Prove who calls, and look up what is not known yet. Raises as `read`, and ChannelError: call again later."""


@frozen
class Incoming:
    """What somebody said on a medium. `sender` and `conversation` are what the medium calls them.

    `external_id` names this delivery: one that comes twice is kept once. `provider_id` is what replies refer to,
    `reply_to` the one this answers, `topic` the strand it is in. `direct` says that nobody else is in the
    conversation, `payload` is what came, as it came, `conversation_name` the title of the chat. `account` is the login
    or bot that heard it, `event` what kind of event it is, "" for talk. `addressed` says that the medium itself names
    the agent in it, as by a mention; `more_ms` for how long a part that may follow is waited for, milliseconds.
    `by_bot` says that another bot said it: it is taken in only where the settings of the channel say so (`bots`).
    `files` is what came with it and the channel can fetch (`FileChannel`). `undelivered` is the provider id of a
    message of the agent of which it reports that it did not arrive; that is noted on its reply.
    """

    text: str
    sender: str
    conversation: str
    external_id: str | None = None
    provider_id: str | None = None
    reply_to: str | None = None
    topic: str | None = None
    name: str = ""
    direct: bool = False
    payload: bytes | None = None
    conversation_name: str = ""
    account: str = "default"
    event: str = ""
    addressed: bool = False
    more_ms: int = 0
    by_bot: bool = False
    files: tuple[Attachment, ...] = ()
    undelivered: str = ""


@frozen
class HookAnswer:
    """The answer to a call that holds no message, as its provider wants it to prove that the hook is read."""

    body: bytes
    content_type: str


class InboundSink(Protocol):
    """Takes in what was said on one channel."""

    async def put(self, incoming: Incoming) -> bool:
        """Keep a message; returns once it is on disk, False when it was there before.

        Only then tell the medium that it arrived. Raises InputError for what cannot be taken, StoreError when the disk
        refuses: hand it over again later.
        """

    async def put_all(self, incoming: Sequence[Incoming], cursors: Sequence[Cursor] = ()) -> None:
        """Keep messages in their order; returns once all are on disk, and then the cursors: none is ahead of them.

        What cannot be taken is logged and left out: it must not hold up what comes after it. Raises StoreError; then
        hand all of them over again later.
        """

    async def cursors(self, account: str) -> Mapping[str, str]:
        """The cursors of an account by name; whoever reads from them on gets all that was not stored."""


class LineKeeper(Protocol):
    """Remembers the state of one account's line, and tells whoever looks."""

    def show(self, state: LineState, reason: str = "", next_try_ms: int = 0) -> None:
        """The line is so now; `next_try_ms` is in how long it is tried again."""


@frozen
class AccountReport:
    """An account as its provider knows it: its id and its name there, and what its owner should know of it."""

    channel: str
    account: str
    name: str
    notes: tuple[str, ...] = ()


class NoLine:
    """Nobody looks at the line."""

    def show(self, state: LineState, reason: str = "", next_try_ms: int = 0) -> None:
        """Do nothing."""


@frozen
class TurnProgress:
    """Something that happened to a message's turn: it began, a piece of its answer, a tool, a wait, or its end.

    The text of `tool` is the tool's name; it is empty when the tools of a step have returned. `paused` says of a wait
    that it ends with /resume.
    """

    kind: Literal["began", "delta", "tool", "waiting", "settled"]
    text: str = ""
    paused: bool = False


class Progresses(Protocol):
    """Tells those who listen."""

    def tell(self, messages: Sequence[StoredMessage], progress: TurnProgress) -> None:
        """Tell everybody who waits for one of the messages. Never blocks; nobody need listen."""
