"""The runtime, as the door needs it to give extensions their part of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from keepsaid.domain.event import Event
from keepsaid.domain.prompt import Json
from keepsaid.ports.clock import Clock
from keepsaid.ports.inbox import Incoming


class ExtensionRuntime(Protocol):
    """What can be done in an extension's name."""

    @property
    def clock(self) -> Clock:
        """The time."""
        ...

    async def emit(self, extension: str, topic: str, payload: Mapping[str, Json], correlation_id: str) -> None:
        """Tell of a fact, or take in a `user.message`. Raises InputError."""
        ...

    async def subscribe(self, name: str, topic: str, tell: Callable[[Event], Awaitable[object]]) -> None:
        """Tell `name` of a topic from now on, and of what it was not told of before."""
        ...

    async def notify(self, extension: str, text: str, about: str) -> None:
        """Put a notice to the owner in the outbox, once for each `about`."""
        ...

    async def receive(self, channel: str, incoming: Incoming) -> bool:
        """Take in a message; False when it was there before."""
        ...

    async def told(self, topic: str, payload: Mapping[str, Json], about: str) -> None:
        """Tell of what became of an extension."""
        ...
