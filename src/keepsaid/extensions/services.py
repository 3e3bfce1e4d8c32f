"""The context of an extension: its settings, and what it may use of the runtime."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from keepsaid.domain import event, prompt
from keepsaid.errors import ExtensionError
from keepsaid.extensions.manifest import Manifest, Setting
from keepsaid.ports.channel import InboundSink, Incoming
from keepsaid.ports.extension import ExtensionRuntime
from keepsaid.ports.runtime import Clock

_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
}


def settings_of(manifest: Manifest, given: Mapping[str, Any]) -> dict[str, Any]:
    """Every setting with its value. Raises ExtensionError naming what is wrong, but no value: it may be secret."""
    faults = list(_faults(manifest, given))
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        key = f"extensions.{manifest.id}.config"
        raise ExtensionError(f"its settings are wrong: {key}.{faults[0]}{more}", hint="keepsaid config show extensions")
    return {name: given.get(name, one.default) for name, one in manifest.config.items()}


def _faults(manifest: Manifest, given: Mapping[str, Any]) -> Iterator[str]:
    for name in given:
        if name not in manifest.config:
            near = get_close_matches(str(name), manifest.config, 1)
            yield f"{name}: there is no such setting" + (f"; did you mean {near[0]}?" if near else "")
    for name, one in manifest.config.items():
        if given.get(name) is not None:
            fault = _fault(one, given[name])
            if fault:
                yield f"{name}: {fault}"
        elif one.required:
            yield f"{name}: it has to be set"


def _fault(one: Setting, value: Any) -> str:
    if not isinstance(value, _TYPES[one.type]) or (isinstance(value, bool) and one.type != "boolean"):
        return f"it must be of the type {one.type}"
    if one.enum and value not in one.enum:
        return f"it must be one of: {', '.join(map(str, one.enum))}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        if one.minimum is not None and value < one.minimum:
            return f"it must be at least {one.minimum:g}"
        if one.maximum is not None and value > one.maximum:
            return f"it must be at most {one.maximum:g}"
    return ""


Tell = Callable[[event.Event], Awaitable[object]]


class ChannelInbox:
    """Where one channel hands over what was said."""

    def __init__(self, runtime: ExtensionRuntime, channel: str) -> None:
        self._runtime = runtime
        self._channel = channel

    async def put(self, incoming: Incoming) -> bool:
        return await self._runtime.receive(self._channel, incoming)


class RuntimeExtensionContext:
    """Context of one extension on top of the runtime; `peer` finds another extension by id."""

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
        self.inbox: InboundSink = ChannelInbox(runtime, manifest.id)
        self._manifest = manifest
        self._runtime = runtime
        self._peer = peer
        self._data = data
        self._wishes: dict[str, tuple[str, Tell]] = {}
        self._open = False

    @property
    def clock(self) -> Clock:
        return self._runtime.clock

    @property
    def data(self) -> Path:
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._data

    def secret(self, name: str) -> str:
        variable = self._manifest.secrets.get(name)
        if variable is None:
            raise ExtensionError(f"{self.id} asked for the secret {name}, which its manifest does not name")
        value = os.environ.get(variable, "")
        if not value:
            raise ExtensionError(f"the variable {variable} is not set", hint=f"export {variable}=...")
        return value

    def get_extension(self, id: str) -> Any:  # noqa: A002 - the seed's word
        if id not in self._manifest.depends_on:
            raise ExtensionError(f"{self.id} asked for {id}, which its manifest does not depend on")
        return self._peer(id)

    def refit(self, config: Mapping[str, Any]) -> None:
        """Hold other settings from now on."""
        self.config = MappingProxyType(dict(config))

    async def emit(self, topic: str, payload: Mapping[str, prompt.Json], correlation_id: str = "") -> None:
        await self._runtime.emit(self.id, topic, payload, correlation_id)

    async def subscribe(self, topic: str, tell: Tell, name: str = "") -> None:
        full = ":".join(filter(None, ("extension", self.id, topic, name)))
        self._wishes[full] = topic, tell
        if self._open:
            await self._runtime.subscribe(full, topic, tell)

    async def open(self) -> None:
        """Be told, from now on, of what was wished for."""
        self._open = True
        for full, (topic, tell) in self._wishes.items():
            await self._runtime.subscribe(full, topic, tell)

    async def notify_user(self, text: str, about: str = "") -> None:
        await self._runtime.notify(self.id, text, about)
