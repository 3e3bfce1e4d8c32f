"""What makes an extension a channel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from keepsaid.domain.reply import Reply, SendResult
from keepsaid.ports.channel import Channel, Hook
from keepsaid.ports.inbox import Inbox


@runtime_checkable
class ChannelProvider(Protocol):
    """Carries replies out on a channel that is named after the extension."""

    async def send(self, reply: Reply) -> SendResult | None:
        """Try once to deliver. None says it arrived; what raises may have arrived, and is sent again, marked."""
        ...


@runtime_checkable
class ListeningProvider(Protocol):
    """Hears what is said on its channel; without it, messages come in by `context.inbox`."""

    async def listen(self, inbox: Inbox) -> None:
        """Hand over what comes, for as long as the runtime goes; when it ends or raises it is called again, later."""
        ...


@runtime_checkable
class ChannelsProvider(Protocol):
    """Brings whole channels, under names of their own: for media of several accounts, and for built-in ones."""

    def channels(self) -> Mapping[str, Channel]:
        """The channels by name."""
        ...


@runtime_checkable
class HookProvider(Protocol):
    """Brings hooks: what others call under `/hooks/NAME`."""

    def hooks(self) -> Mapping[str, Hook]:
        """The hooks by name."""
        ...
