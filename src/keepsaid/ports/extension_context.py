"""What an extension is given of the runtime, and nothing beside it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from keepsaid.domain.event import Event
from keepsaid.domain.prompt import Json
from keepsaid.ports.clock import Clock
from keepsaid.ports.inbox import Inbox


class ExtensionContext(Protocol):
    """One extension's view of the runtime."""

    @property
    def id(self) -> str:
        """Its id."""
        ...

    @property
    def config(self) -> Mapping[str, Any]:
        """Its settings, checked against its manifest."""
        ...

    @property
    def clock(self) -> Clock:
        """The time, and waiting."""
        ...

    @property
    def log(self) -> logging.Logger:
        """Its own logger: what it writes stands in the log of the runtime, without secrets."""
        ...

    @property
    def data(self) -> Path:
        """A folder of its own, made when first asked for."""
        ...

    @property
    def inbox(self) -> Inbox:
        """Where its channel hands over what was said."""
        ...

    def secret(self, name: str) -> str:
        """A secret that its manifest names, from the environment. Raises ExtensionError for another, or one not set."""
        ...

    def get_extension(self, id: str) -> Any:  # noqa: A002 - the seed's word
        """An extension that its manifest depends on. Raises ExtensionError for any other, and one that is not up."""
        ...

    async def emit(self, topic: str, payload: Mapping[str, Json], correlation_id: str = "") -> None:
        """Tell of a fact; returns once it is on disk. Raises InputError with nothing told.

        `user.message` with text, user_id and channel_id is a message: it goes into the buffer like any other.
        """
        ...

    async def subscribe(self, topic: str, tell: Callable[[Event], Awaitable[object]], name: str = "") -> None:
        """Be told of a topic or pattern at least once, over restarts; `name` tells two on the same topic apart."""
        ...

    async def notify_user(self, text: str, about: str = "") -> None:
        """Tell the owner something, once for each `about`: it stands in the outbox when this returns."""
        ...
