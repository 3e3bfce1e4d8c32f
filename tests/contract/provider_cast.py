"""What the casts of all channels share: a channel beside a scripted provider, which can be away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from types import TracebackType
from typing import Protocol, Self

from keepsaid.adapters.channels.pace import Rate
from keepsaid.domain.message import Lane
from keepsaid.domain.reply import ReplyDraft, StoredReply
from keepsaid.domain.turn_files import TurnFile
from keepsaid.ports.channel import Channel
from keepsaid.testing.providers.mischief import Mischief

FAILS = tuple(act for act in Mischief if act is not Mischief.ACCEPT)
QUICK = Rate(0.0)
SPEED = 60.0
"""Seconds of the channel's clock in one."""


class ListeningProviderServer(Protocol):
    """A scripted provider, which can be left and entered again."""

    async def __aenter__(self) -> object: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def reply_in(lane: Lane, text: str, number: int, at: int, url: str | None = None) -> StoredReply:
    """A reply that was tried first at a time."""
    draft = ReplyDraft(number, text, url=url)
    return StoredReply(number, lane, 1, "sending", draft, created_at=at, tried_from=at)


class SendsFiles:
    """The files that go with replies, as a channel reads them and as its provider has them."""

    upload_acts: Collection[Mischief] = ()

    @cached_property
    def uploads(self) -> dict[int, bytes]:
        """The bytes of the files that go with replies, by number."""
        return {}

    async def upload(self, file: TurnFile) -> bytes | None:
        """The bytes of a file that goes with a reply, as the channel reads them."""
        return self.uploads.get(file.number)

    def sent_files(self) -> Sequence[tuple[str, bytes]]:
        """The files that arrived."""
        return []

    def script_upload(self, *acts: Mischief) -> None:
        """What happens to the next uploads, which are messages like others."""
        self.script(*acts)

    def script(self, *acts: Mischief) -> None:
        """What happens to the next messages."""
        raise NotImplementedError


class ProviderCast(SendsFiles):
    """A channel, and its provider, which can be away."""

    channel: Channel
    server: ListeningProviderServer
    ahead_ms = 0

    def typed(self) -> int:
        """How often typing was shown; never, on media without it."""
        return 0

    def typing_lane(self) -> Lane:
        """A lane in which typing is shown."""
        return self.reply("").lane

    def reply_in_topic(self, text: str) -> StoredReply | None:
        """A reply to a topic that exists."""
        return None

    def topics(self) -> Sequence[str]:
        """The topic of each message that arrived."""
        return []

    def reply(self, text: str, number: int = 1) -> StoredReply:
        """A reply to a conversation that exists."""
        raise NotImplementedError

    def edit(self, text: str) -> None:
        """A person changes their last message."""
        raise NotImplementedError("the medium has no edits")

    def answer_unknown(self, text: str) -> None:
        """A person answers a message that nobody has."""
        raise NotImplementedError

    def edit_unknown(self, text: str) -> None:
        """A person changes a message that never came."""
        raise NotImplementedError("the medium has no edits")

    def like(self, emoji: str) -> None:
        """A person gives their last message an emoji."""
        raise NotImplementedError("the medium has no reactions")

    def agent_reactions(self) -> Sequence[str]:
        """The reactions of the agent."""
        return []

    @asynccontextmanager
    async def cut_off(self) -> AsyncIterator[Channel]:
        await self.channel.close()
        await self.server.__aexit__(None, None, None)
        try:
            yield self.channel
        finally:
            await self.channel.close()
            await self.server.__aenter__()

    async def __aenter__(self) -> Self:
        await self.server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.channel.close()
        await self.server.__aexit__(kind, error, trace)
