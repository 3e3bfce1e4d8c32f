"""What an extension provides, read off its object once it is ready."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field
from typing import Any

from keepsaid.domain import message, turn
from keepsaid.domain.reply import Delivered, Sending, SendResult, StoredReply
from keepsaid.errors import ExtensionError
from keepsaid.extensions.declare import MARK, ContextMark, ToolMark, tool_of
from keepsaid.extensions.manifest import Manifest, ScheduleEntry
from keepsaid.ports import channel, extension, model
from keepsaid.values import frozen

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
    agent: extension.AgentProvider | None = None
    embedder: extension.EmbedderProvider | None = None
    extractor: extension.ExtractorProvider | None = None


def provided_by(made: Any, manifest: Manifest, agent: extension.AgentProvider | None) -> Provided:
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
        channels[manifest.id] = OutwardChannel(manifest.id, made)
    return Provided(
        channels,
        made.hooks() if isinstance(made, extension.HookProvider) else {},
        made.listen if isinstance(made, extension.ListeningProvider) else None,
        _if_is(made, extension.StreamingProvider),
        tools,
        _if_is(made, extension.ToolProvider),
        says,
        _if_is(made, extension.Contributor),
        {one.name: _executing(made, one, agent) for one in manifest.schedules},
        agent,
        _if_is(made, extension.EmbedderProvider),
        _if_is(made, extension.ExtractorProvider),
    )


def _if_is(made: Any, protocol: type) -> Any:
    return made if isinstance(made, protocol) else None


def _check_kinds(made: Any, manifest: Manifest, marked: Mapping[str, bool]) -> None:
    named = {one.method for one in manifest.schedules if not one.task}
    named |= {one.method for one in manifest.events.subscribes if one.handler == "custom"}
    missing = [name for name in sorted(named) if not hasattr(made, name)]
    if missing:
        raise ExtensionError(f"its manifest names the method {missing[0]}, which it does not have")
    for kind in manifest.provides:
        there = any(isinstance(made, one) for one in _PROTOCOLS[kind]) or marked.get(kind, False)
        if not there and not (kind == "schedule" and manifest.schedules):
            names = " or ".join(one.__name__ for one in _PROTOCOLS[kind])
            raise ExtensionError(f"its manifest says that it provides {kind}, but it is no {names}")


def _executing(made: Any, entry: ScheduleEntry, agent: extension.AgentProvider | None) -> Job:
    if entry.task:
        if agent is None:
            raise ExtensionError(f"nobody can do the task of the schedule {entry.name}: there is no agent")
        return lambda: agent.invoke(message.Trusted(entry.task, message.Trust.OWNER))
    method = getattr(made, entry.method)
    return (lambda: method(entry.name)) if entry.method == "execute" else method
