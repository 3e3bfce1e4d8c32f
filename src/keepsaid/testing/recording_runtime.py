"""A stand-in for the runtime where extensions are tried; what they do is written down and changes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keepsaid.adapters.system.machine import SystemClock
from keepsaid.app.builtin.parts import NAMES, BuiltInContext, Parts
from keepsaid.config import Config
from keepsaid.domain.event import Event
from keepsaid.domain.line import Cursor
from keepsaid.domain.message import Trust, Trusted
from keepsaid.domain.prompt import Json
from keepsaid.errors import ExtensionError
from keepsaid.extensions.discovery import FoundExtension
from keepsaid.extensions.lifecycle import Lifecycle, LifecycleDeps, PhaseLimits
from keepsaid.extensions.loaded import LoadedExtension, described_agent
from keepsaid.extensions.manifest import Manifest
from keepsaid.extensions.provided import RuntimeExtensionContext, settings_of
from keepsaid.ports.channel import Incoming
from keepsaid.ports.extension import DescribedAgent, ReadScope, RecalledText
from keepsaid.ports.runtime import Clock

Settings = Mapping[str, Mapping[str, Any]]


@dataclass
class RecordingInbox:
    """What channels brought, each message once, and how far they were read."""

    received: list[tuple[str, Incoming]] = field(default_factory=list)
    read_to: dict[tuple[str, str, str], str] = field(default_factory=dict)

    async def receive(self, channel: str, incoming: Incoming) -> bool:
        """Write down a message; False for one whose id came before."""
        ids = [one.external_id for name, one in self.received if name == channel]
        known = incoming.external_id is not None and incoming.external_id in ids
        if not known:
            self.received.append((channel, incoming))
        return not known

    async def receive_all(self, channel: str, incoming: Sequence[Incoming]) -> None:
        """Take in messages one after the other."""
        for one in incoming:
            await self.receive(channel, one)

    async def move_cursors(self, channel: str, cursors: Sequence[Cursor]) -> None:
        """Keep how far a channel has been read."""
        for one in cursors:
            self.read_to[channel, one.account, one.name] = one.value

    async def cursors(self, channel: str, account: str) -> Mapping[str, str]:
        """How far an account has been read."""
        return {name: value for (of, by, name), value in self.read_to.items() if (of, by) == (channel, account)}


@dataclass
class RecordingRuntime(RecordingInbox):
    """An extension runtime for tests: records every call and changes nothing.

    It records events, subscriptions by name, notices, messages, tasks of agents, queries, and the state changes of
    each extension; `texts` are the messages that can be read, by id. Built-in extensions bring nothing here.
    """

    clock: Clock = field(default_factory=SystemClock)
    emitted: list[tuple[str, str, Mapping[str, Json], str]] = field(default_factory=list)
    told_of: dict[str, tuple[str, Callable[[Event], Awaitable[object]]]] = field(default_factory=dict)
    notices: list[tuple[str, str, str]] = field(default_factory=list)
    changes: list[tuple[str, str]] = field(default_factory=list)
    tasks: list[tuple[str, str, str, bool]] = field(default_factory=list)
    texts: dict[int | str, str] = field(default_factory=dict)
    recalled: list[tuple[str, str, int, int | str | None]] = field(default_factory=list)

    async def emit(self, extension: str, topic: str, payload: Mapping[str, Json], correlation_id: str) -> None:
        """Write down an event."""
        self.emitted.append((extension, topic, payload, correlation_id))

    async def subscribe(self, name: str, topic: str, tell: Callable[[Event], Awaitable[object]]) -> None:
        """Write down a subscription."""
        self.told_of[name] = topic, tell

    async def notify(self, extension: str, text: str, about: str) -> None:
        """Write down a notice."""
        self.notices.append((extension, text, about))

    async def invoke_agent(self, extension: str, task: str, key: str, *, notify_user: bool) -> int:
        """Write down a task for the agent of an extension."""
        self.tasks.append((extension, task, key, notify_user))
        return len(self.tasks)

    async def read(self, scope: ReadScope, thing: int | str) -> Trusted:
        """A text of `texts`; raises ExtensionError for any other."""
        if (text := self.texts.get(thing)) is None:
            raise ExtensionError(f"there is no message {thing} that {scope.extension} may read")
        return Trusted(text, Trust.EXTERNAL)

    async def recall(self, scope: ReadScope, query: str, limit: int, about: int | str | None) -> Sequence[RecalledText]:
        """Write down a query; nothing is remembered here."""
        self.recalled.append((scope.extension, query, limit, about))
        return ()

    async def emit_lifecycle_event(self, topic: str, payload: Mapping[str, Json], about: str) -> None:
        """Ignore an event about the state of an extension."""

    async def changed(self, extension: LoadedExtension) -> None:
        """Write down where an extension stands."""
        self.changes.append((extension.id, extension.state.value))

    def lifecycle(
        self,
        found: Iterable[FoundExtension],
        data: Path,
        settings: Settings | None = None,
        limits: PhaseLimits | None = None,
    ) -> Lifecycle:
        """What lets extensions in here; `data` is where their folders are made."""

        def context(manifest: Manifest, peer: Callable[[str], Any]) -> RuntimeExtensionContext:
            given = settings_of(manifest, (settings or {}).get(manifest.id, {}))
            if manifest.id in NAMES:
                inside = BuiltInContext(manifest, given, self, peer, data / manifest.id)
                inside.parts = Parts(Config(), lambda _: (), lambda: ())
                return inside
            return RuntimeExtensionContext(manifest, given, self, peer, data / manifest.id)

        def agent(one: LoadedExtension) -> DescribedAgent | None:
            return described_agent(one, life.guests)

        around = LifecycleDeps(context, agent, self.clock, str, self.changed, limits or PhaseLimits())
        life = Lifecycle(found, around)
        return life
