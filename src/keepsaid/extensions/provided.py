"""What an extension is given of the runtime, and what it provides once it is ready."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any

from keepsaid.domain import event, ids, message, turn
from keepsaid.domain.line import Cursor
from keepsaid.domain.prompt import Json
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.errors import ExtensionError
from keepsaid.extensions.manifest import MARK, ContextMark, Manifest, ScheduleEntry, Setting, ToolMark, tool_of
from keepsaid.ports import channel, extension, model
from keepsaid.ports.runtime import Clock
from keepsaid.values import frozen

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
    if faults := list(_faults(manifest, given)):
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
            if fault := _fault(one, given[name]):
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

    def __init__(self, runtime: extension.ExtensionRuntime, channel: str) -> None:
        self._runtime = runtime
        self._channel = channel

    async def put(self, incoming: channel.Incoming) -> bool:
        return await self._runtime.receive(self._channel, incoming)

    async def put_all(self, incoming: Sequence[channel.Incoming], cursors: Sequence[Cursor] = ()) -> None:
        await self._runtime.receive_all(self._channel, incoming)
        if cursors:
            await self._runtime.move_cursors(self._channel, cursors)

    async def cursors(self, account: str) -> Mapping[str, str]:
        return await self._runtime.cursors(self._channel, account)


class RuntimeExtensionContext:
    """Context of one extension on top of the runtime; `peer` finds another extension by id."""

    def __init__(
        self,
        manifest: Manifest,
        config: Mapping[str, Any],
        runtime: extension.ExtensionRuntime,
        peer: Callable[[str], Any],
        data: Path,
    ) -> None:
        self.id = manifest.id
        self.config = MappingProxyType(dict(config))
        self.log = logging.getLogger(f"keepsaid.extension.{manifest.id}")
        self.inbox: channel.InboundSink = ChannelInbox(runtime, manifest.id)
        self._manifest = manifest
        self._scope = extension.ReadScope(manifest.id, manifest.reads)
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
        if (variable := self._manifest.secrets.get(name)) is None:
            raise ExtensionError(f"{self.id} asked for the secret {name}, which its manifest does not name")
        if not (value := os.environ.get(variable, "")):
            raise ExtensionError(f"the variable {variable} is not set", hint=f"export {variable}=...")
        return value

    def get_extension(self, id: str) -> Any:  # noqa: A002 - the seed's word
        if id not in self._manifest.depends_on:
            raise ExtensionError(f"{self.id} asked for {id}, which its manifest does not depend on")
        return self._peer(id)

    def refit(self, config: Mapping[str, Any]) -> None:
        """Hold other settings from now on."""
        self.config = MappingProxyType(dict(config))

    async def emit(self, topic: str, payload: Mapping[str, Json], correlation_id: str = "") -> None:
        await self._runtime.emit(self.id, topic, payload, correlation_id)

    async def subscribe(self, topic: str, tell: Tell, name: str = "") -> None:
        full = ":".join(filter(None, ("extension", self.id, topic, name)))
        self._wishes[full] = topic, tell
        if self._open:
            await self._runtime.subscribe(full, topic, tell)

    async def open(self) -> None:
        """Subscribe to the topics of the manifest."""
        self._open = True
        for full, (topic, tell) in self._wishes.items():
            await self._runtime.subscribe(full, topic, tell)

    async def notify_user(self, text: str, about: str = "") -> None:
        await self._runtime.notify(self.id, text, about)

    async def invoke_agent(self, task: str, key: str = "", *, notify_user: bool = False) -> str:
        return ids.show("task", await self._runtime.invoke_agent(self.id, task, key, notify_user=notify_user))

    async def read(self, thing: int | str) -> message.Trusted:
        return await self._runtime.read(self._scope, thing)

    async def recall(
        self, query: str, *, limit: int = 10, about: int | str | None = None
    ) -> Sequence[extension.RecalledText]:
        return await self._runtime.recall(self._scope, query, limit, about)


Say = Callable[[turn.ClaimedBatch], Awaitable[str | None]]
"""Makes a text for a prompt, or nothing."""

Job = Callable[[], Awaitable[str | None]]
"""What is done when a schedule is due; a text that it returns is for the owner."""

_ASYNC = (
    *("initialize", "start", "stop", "health", "reconfigure"),
    *("send", "listen", "stream", "execute", "invoke", "contribute"),
)
_PROTOCOLS: Mapping[str, tuple[type, ...]] = {
    "channel": (extension.ChannelProvider, extension.ChannelsProvider),
    "streaming": (extension.StreamingProvider,),
    "hook": (extension.HookProvider,),
    "tool": (extension.ToolProvider,),
    "context": (extension.Contributor,),
    "schedule": (extension.ScheduleProvider,),
    "agent": (extension.AgentProvider,),
    "embedder": (extension.EmbedderProvider,),
    "extractor": (extension.ExtractorProvider,),
    "transcriber": (extension.TranscriberProvider,),
    "setup": (extension.SetupProvider,),
}


class OutwardChannel:
    """The channel that a `ChannelProvider` is: named after its extension, pushing."""

    sending = Sending.PUSH

    def __init__(self, name: str, provider: extension.ChannelProvider) -> None:
        self.name = name
        self._provider = provider

    async def send(self, reply: StoredReply) -> SendResult:
        result = await self._provider.send(reply)
        return SendResult(Delivered.CONFIRMED) if result is None else result

    async def close(self) -> None:
        """Do nothing: the extension closes what it holds when it is stopped."""


class OutwardFileChannel(OutwardChannel):
    """The channel of a provider that fetches what is attached to messages, too."""

    def __init__(self, name: str, provider: extension.ChannelProvider, files: channel.FileChannel) -> None:
        super().__init__(name, provider)
        self.fetch = files.fetch


def _outward_channel(name: str, provider: extension.ChannelProvider) -> OutwardChannel:
    """The channel of an extension, with what it can do beside sending."""
    made: object = provider
    if isinstance(made, channel.FileChannel):
        return OutwardFileChannel(name, provider, made)
    return OutwardChannel(name, provider)


@frozen
class Provided:
    """What one extension provides: `turn_tools` makes tools for a turn, `says` are texts for prompts, with marks."""

    channels: Mapping[str, channel.Channel] = field(default_factory=dict)
    hooks: Mapping[str, channel.Hook] = field(default_factory=dict)
    listen: Callable[[channel.InboundSink], Awaitable[None]] | None = None
    streaming: extension.StreamingProvider | None = None
    tools: tuple[model.Tool, ...] = ()
    turn_tools: extension.ToolProvider | None = None
    says: tuple[tuple[ContextMark, Say], ...] = ()
    contributor: extension.Contributor | None = None
    schedules: Mapping[str, Job] = field(default_factory=dict)
    agent: extension.Agent | None = None
    embedder: extension.EmbedderProvider | None = None
    extractor: extension.ExtractorProvider | None = None
    transcriber: extension.TranscriberProvider | None = None


def provided_by(made: Any, manifest: Manifest, agent: extension.Agent | None) -> Provided:
    """What an extension provides; `agent` is the one its manifest describes. Raises ExtensionError."""
    wrong = [name for name in _ASYNC if hasattr(made, name) and not inspect.iscoroutinefunction(getattr(made, name))]
    if wrong:
        raise ExtensionError(f"{wrong[0]} must be an async method")
    functions = inspect.getmembers(type(made), inspect.isfunction)
    marked = [(getattr(made, name), mark) for name, one in functions if (mark := getattr(one, MARK, None)) is not None]
    tools = tuple(tool_of(method, mark) for method, mark in marked if isinstance(mark, ToolMark))
    says = tuple((mark, method) for method, mark in marked if isinstance(mark, ContextMark))
    agent = made if isinstance(made, extension.AgentProvider) else agent
    _check_kinds(made, manifest, {"tool": bool(tools), "context": bool(says), "agent": agent is not None})
    channels: dict[str, channel.Channel] = dict(made.channels()) if isinstance(made, extension.ChannelsProvider) else {}
    if isinstance(made, extension.ChannelProvider):
        channels[manifest.id] = _outward_channel(manifest.id, made)
    return Provided(
        channels,
        made.hooks() if isinstance(made, extension.HookProvider) else {},
        made.listen if isinstance(made, extension.ListeningProvider) else None,
        _if_is(made, extension.StreamingProvider),
        tools,
        _if_is(made, extension.ToolProvider),
        says,
        _if_is(made, extension.Contributor),
        {one.name: _executing(made, one) for one in manifest.schedules if not one.task},
        agent,
        _if_is(made, extension.EmbedderProvider),
        _if_is(made, extension.ExtractorProvider),
        _if_is(made, extension.TranscriberProvider),
    )


def _if_is(made: Any, protocol: type) -> Any:
    return made if isinstance(made, protocol) else None


def _check_kinds(made: Any, manifest: Manifest, marked: Mapping[str, bool]) -> None:
    named = {one.method for one in manifest.schedules if not one.task}
    named |= {one.method for one in manifest.events.subscribes if one.handler == "custom"}
    if tasks := [one.name for one in manifest.schedules if one.task and not marked["agent"]]:
        raise ExtensionError(f"nobody can do the task of the schedule {tasks[0]}: there is no agent")
    if missing := [name for name in sorted(named) if not hasattr(made, name)]:
        raise ExtensionError(f"its manifest names the method {missing[0]}, which it does not have")
    for kind in manifest.provides:
        there = any(isinstance(made, one) for one in _PROTOCOLS[kind]) or marked.get(kind, False)
        if not there and not (kind == "schedule" and manifest.schedules):
            names = " or ".join(one.__name__ for one in _PROTOCOLS[kind])
            raise ExtensionError(f"its manifest says that it provides {kind}, but it is no {names}")


def _executing(made: Any, entry: ScheduleEntry) -> Job:
    method = getattr(made, entry.method)
    return (lambda: method(entry.name)) if entry.method == "execute" else method
