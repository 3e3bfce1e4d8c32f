"""A channel whose replies are sent as parts, as those of media with limits are: every life of a play has one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from keepsaid.domain.reply import Sending, SendResult, StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.ports.channel import Channel

PARTED = "http"
"""The channel that is one in plays."""


class PartedByOne:
    """Sends each reply by another channel, as one part that is kept before it is sent and confirmed after it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    @property
    def name(self) -> str:
        """That of the other channel."""
        return self._channel.name

    @property
    def sending(self) -> Sending:
        """As the other channel."""
        return self._channel.sending

    async def split(self, reply: StoredReply) -> Sequence[str]:
        """The whole text as the only part."""
        return (reply.draft.text,)

    async def send_part(self, reply: StoredReply, part: ReplyPart) -> SendResult:
        """Send the part as a reply, marked if the part may have arrived."""
        sent = replace(reply, draft=replace(reply.draft, text=part.body), possible_duplicate=part.possible_duplicate)
        return await self._channel.send(sent)

    async def send(self, reply: StoredReply) -> SendResult:
        """Send it whole."""
        return await self._channel.send(reply)

    async def close(self) -> None:
        """Close the other channel."""
        await self._channel.close()


def in_parts(channels: dict[str, Any]) -> dict[str, Any]:
    """The channels, with the parted one in its place."""
    return {name: PartedByOne(one) if name == PARTED else one for name, one in channels.items()}
