"""Built-in extensions: channels, memory, and what they share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from importlib.resources import files
from pathlib import Path

from keepsaid.adapters.system.machine import SystemClock
from keepsaid.app.channels import channels_of, github_sweep_of
from keepsaid.app.messengers import MESSENGERS, MessengerDeps
from keepsaid.config import Config
from keepsaid.config.channels import LISTENING
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.engine.lines import LineBoard
from keepsaid.engine.supervisor import ServiceLoop
from keepsaid.extensions.discovery import ExtensionSource, FoundExtension
from keepsaid.extensions.manifest import Manifest, manifest_of, read_manifest
from keepsaid.extensions.provided import RuntimeExtensionContext
from keepsaid.pipeline.tools.attaching import attach_file
from keepsaid.pipeline.tools.files import read_file
from keepsaid.ports import channel, model
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import FileView
from keepsaid.values import frozen

_SWEEP_MS = 86_400_000
NAMES = ("terminal", "http", "github", *LISTENING, "memory", "memory_consolidator")
"""Those there are."""


@frozen
class Parts:
    """What an instance has made of its config that built-in extensions bring in.

    `elsewhere` names the channels that other extensions bring, `state` is the state directory of the home, `lines`
    shows how the channels that listen are connected, and `files` reads what came with messages.
    """

    config: Config
    memory_tools: Callable[[ClaimedBatch], Sequence[model.Tool]]
    collecting: Callable[[], Sequence[ServiceLoop]]
    elsewhere: frozenset[str] = frozenset()
    clock: Clock = field(default_factory=SystemClock)
    state: Path = Path()
    lines: LineBoard | None = None
    files: FileView | None = None


class BuiltInContext(RuntimeExtensionContext):
    """The context of a built-in extension."""

    parts: Parts


@cache
def _manifest(name: str) -> Manifest:
    return manifest_of(read_manifest((files(__package__) / f"{name}.yaml").read_text("utf-8")))


def built_in(config: Config) -> Iterator[FoundExtension]:
    """The built-in extensions, and whether each is wanted."""
    for name in NAMES:
        manifest = _manifest(name)
        enabled = config.extensions[name].enabled if name in config.extensions else True
        enabled = enabled and (name not in LISTENING or name in config.listening)
        yield FoundExtension(name, ExtensionSource.BUILT_IN, Path(str(manifest.entrypoint)), manifest, enabled=enabled)


_OWN = frozenset({"terminal", "github"})
"""Channels with an extension of their own; `http` brings the others."""


class _FromConfig:
    """Channels that the config names."""

    names: frozenset[str] | None = None
    """Those of this extension; None for all that are of no other."""

    async def initialize(self, context: BuiltInContext) -> None:
        config, clock = context.parts.config, context.parts.clock
        self._files, self._fetches = context.parts.files, config.files.fetch
        names = frozenset(config.channels) - _OWN - {*config.listening} if self.names is None else self.names
        self._channels, self._hooks = channels_of(config, names - context.parts.elsewhere, clock)

    def channels(self) -> Mapping[str, channel.Channel]:
        return self._channels


class Terminal(_FromConfig):
    """The chat in a terminal."""

    names = frozenset({"terminal"})


_PLACES_MAX = 1_000
"""Conversations with files that are remembered; beyond, all are forgotten until their next file."""


class Http(_FromConfig):
    """Messages over HTTP and by the library, and channels of one's own."""

    def __init__(self) -> None:
        self._with_files: set[tuple[str, ...]] = set()

    def tools(self, claimed: ClaimedBatch) -> Sequence[model.Tool]:
        """The tool that attaches files where replies can bring them, and, in conversations with files, `read_file`.

        Few clients send files, and the tool costs every prompt: it is offered from the first file on that this process
        meets in a conversation.
        """
        made, files = self._channels.get(claimed.batch.lane.channel), self._files
        if made is None or files is None:
            return ()
        place = claimed.batch.lane[:3]
        if claimed.files and self._fetches:
            if len(self._with_files) >= _PLACES_MAX:
                self._with_files.clear()
            self._with_files.add(place)
        reading = (read_file(claimed, files),) if place in self._with_files else ()
        uploads = channel.abilities_of(made).uploads
        return (*reading, attach_file(claimed, files, uploads)) if uploads else reading


class GitHub(_FromConfig):
    """GitHub's webhooks, comments, and requests of failed deliveries."""

    names = frozenset({"github"})

    async def initialize(self, context: BuiltInContext) -> None:
        await super().initialize(context)
        parts = context.parts
        self._sweep = github_sweep_of(parts.config, parts.clock, parts.state)

    def loops(self) -> Sequence[ServiceLoop]:
        if self._sweep is None:
            return ()
        return (ServiceLoop("github deliveries", self._sweep.work, asyncio.Event(), poll_ms=_SWEEP_MS, vital=False),)

    def hooks(self) -> Mapping[str, channel.Hook]:
        return self._hooks


class _Messenger:
    """A channel that listens by a token."""

    name: str

    async def initialize(self, context: BuiltInContext) -> None:
        self._files, self._fetches = context.parts.files, context.parts.config.files.fetch
        deps = MessengerDeps(context.parts.clock, context.parts.lines, context.inbox, context.parts.files)
        self._made = MESSENGERS[self.name](context.parts.config, deps)

    def channels(self) -> Mapping[str, channel.Channel]:
        return {self.name: self._made.channel}

    def hooks(self) -> Mapping[str, channel.Hook]:
        return {} if self._made.hook is None else {self.name: self._made.hook}

    def tools(self, claimed: ClaimedBatch) -> Sequence[model.Tool]:
        """What the agent can do with what came on this channel: the same in all its turns there."""
        made, files = self._made.channel, self._files
        if files is None or claimed.batch.lane.channel != self.name:
            return ()
        reading = (read_file(claimed, files),) if self._fetches and isinstance(made, channel.FileChannel) else ()
        uploads = channel.abilities_of(made).uploads
        return (*reading, attach_file(claimed, files, uploads)) if uploads else reading

    async def listen(self, inbox: channel.InboundSink) -> None:
        await self._made.listener.listen(inbox)


class Telegram(_Messenger):
    """A bot of Telegram."""

    name = "telegram"


class Discord(_Messenger):
    """A bot of Discord."""

    name = "discord"


class Slack(_Messenger):
    """An app of Slack."""

    name = "slack"


class Nostr(_Messenger):
    """An account of Nostr."""

    name = "nostr"


class Matrix(_Messenger):
    """An account of Matrix."""

    name = "matrix"


class Email(_Messenger):
    """A mailbox."""

    name = "email"


class MemoryExtension:
    """What the agent may ask memory, and have it remember."""

    async def initialize(self, context: BuiltInContext) -> None:
        self._tools = context.parts.memory_tools

    def tools(self, claimed: ClaimedBatch) -> Sequence[model.Tool]:
        return self._tools(claimed)


class Consolidator:
    """Reads marked sessions, half a minute after half a minute and at night."""

    async def initialize(self, context: BuiltInContext) -> None:
        """Keep what makes its loops; it reads what `memory` keeps, and is not there without it."""
        context.get_extension("memory")
        self._stages = context.parts.collecting

    def loops(self) -> Sequence[ServiceLoop]:
        return self._stages()
