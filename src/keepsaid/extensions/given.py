"""What one extension is given of the runtime."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from keepsaid.domain.event import Event
from keepsaid.domain.prompt import Json
from keepsaid.errors import ExtensionError
from keepsaid.extensions.manifest import Manifest
from keepsaid.ports.channel import Inbox, Incoming
from keepsaid.ports.extension import ExtensionRuntime
from keepsaid.ports.runtime import Clock

Tell = Callable[[Event], Awaitable[object]]


class ChannelInbox:
    """Where one channel hands over what was said."""

    def __init__(self, runtime: ExtensionRuntime, channel: str) -> None:
        self._runtime = runtime
        self._channel = channel

    async def put(self, incoming: Incoming) -> bool:
        """Keep a message; False when it was there before."""
        return await self._runtime.receive(self._channel, incoming)


@dataclass(frozen=True, slots=True)
class Wish:
    """A subscription, from the moment its extension is active."""

    name: str
    topic: str
    tell: Tell


class GuestContext:
    """The context of one extension; `peer` finds another by id."""

    def __init__(
        self,
        manifest: Manifest,
        config: Mapping[str, Any],
        runtime: ExtensionRuntime,
        peer: Callable[[str], Any],
        data: Path,
    ) -> None:
        self.id = manifest.id
        self.config = MappingProxyType(dict(config))
        self.log = logging.getLogger(f"keepsaid.extension.{manifest.id}")
        self.inbox: Inbox = ChannelInbox(runtime, manifest.id)
        self._manifest = manifest
        self._runtime = runtime
        self._peer = peer
        self._data = data
        self._wishes: dict[str, Wish] = {}
        self._open = False

    @property
    def clock(self) -> Clock:
        """The time, and waiting."""
        return self._runtime.clock

    @property
    def data(self) -> Path:
        """A folder of its own."""
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._data

    def secret(self, name: str) -> str:
        """A secret that its manifest names, from the environment."""
        variable = self._manifest.secrets.get(name)
        if variable is None:
            raise ExtensionError(f"{self.id} asked for the secret {name}, which its manifest does not name")
        value = os.environ.get(variable, "")
        if not value:
            raise ExtensionError(f"the variable {variable} is not set", hint=f"export {variable}=...")
        return value

    def get_extension(self, id: str) -> Any:  # noqa: A002 - the seed's word
        """An extension that its manifest depends on."""
        if id not in self._manifest.depends_on:
            raise ExtensionError(f"{self.id} asked for {id}, which its manifest does not depend on")
        return self._peer(id)

    def refit(self, config: Mapping[str, Any]) -> None:
        """Hold other settings from now on."""
        self.config = MappingProxyType(dict(config))

    async def emit(self, topic: str, payload: Mapping[str, Json], correlation_id: str = "") -> None:
        """Tell of a fact, or hand over a `user.message`."""
        await self._runtime.emit(self.id, topic, payload, correlation_id)

    async def subscribe(self, topic: str, tell: Tell, name: str = "") -> None:
        """Be told of a topic or pattern, from the moment this extension is active."""
        wish = Wish(":".join(filter(None, ("extension", self.id, topic, name))), topic, tell)
        self._wishes[wish.name] = wish
        if self._open:
            await self._runtime.subscribe(wish.name, wish.topic, wish.tell)

    async def open(self) -> None:
        """Be told, from now on, of what was wished for."""
        self._open = True
        for wish in self._wishes.values():
            await self._runtime.subscribe(wish.name, wish.topic, wish.tell)

    async def notify_user(self, text: str, about: str = "") -> None:
        """Tell the owner something."""
        await self._runtime.notify(self.id, text, about)
