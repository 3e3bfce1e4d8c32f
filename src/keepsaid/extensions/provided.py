"""What an extension provides, read off its object; its embedder and extractor are wrapped for memory."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from keepsaid.domain.collection import Passage
from keepsaid.domain.message import Trust, Trusted
from keepsaid.domain.reply import Delivered, Reply, Sending, SendResult
from keepsaid.domain.space import VectorSpace
from keepsaid.domain.text import normalise
from keepsaid.domain.turn import Claimed
from keepsaid.errors import EmbedderError, ExtensionError, ModelError, ModelMalformed, ModelUnavailable
from keepsaid.extensions.declare import MARK, ContextMark, ToolMark, tool_of
from keepsaid.extensions.loaded import Guest
from keepsaid.extensions.manifest import Manifest, ScheduleEntry
from keepsaid.ports.channel import Channel, Hook, Inbox
from keepsaid.ports.extension import (
    AgentProvider,
    ChannelProvider,
    ChannelsProvider,
    Contributor,
    EmbedderProvider,
    ExtractorProvider,
    HookProvider,
    ListeningProvider,
    ScheduleProvider,
    SetupProvider,
    StreamingProvider,
    ToolProvider,
)
from keepsaid.ports.model import Extracted, Extractor, Tool
from keepsaid.ports.recall import Embedder

Say = Callable[[Claimed], Awaitable[str | None]]
"""Makes a text for a prompt, or nothing."""

_ASYNC = (
    *("initialize", "start", "stop", "health", "reconfigure"),
    *("send", "listen", "stream", "execute", "invoke", "contribute"),
)
_PROTOCOLS: Mapping[str, tuple[type, ...]] = {
    "channel": (ChannelProvider, ChannelsProvider),
    "streaming": (StreamingProvider,),
    "hook": (HookProvider,),
    "tool": (ToolProvider,),
    "context": (Contributor,),
    "schedule": (ScheduleProvider,),
    "agent": (AgentProvider,),
    "embedder": (EmbedderProvider,),
    "extractor": (ExtractorProvider,),
    "setup": (SetupProvider,),
}


class OutwardChannel:
    """The channel that a `ChannelProvider` is: named after its extension, pushing."""

    sending = Sending.PUSH

    def __init__(self, name: str, provider: ChannelProvider) -> None:
        self.name = name
        self._provider = provider

    async def send(self, reply: Reply) -> SendResult:
        """Try once to deliver."""
        result = await self._provider.send(reply)
        return SendResult(Delivered.CONFIRMED) if result is None else result

    async def close(self) -> None:
        """Do nothing: the extension closes what it holds when it is stopped."""


@dataclass(frozen=True, slots=True)
class Provided:
    """What one extension provides: `turn_tools` makes tools for a turn, `says` are texts for prompts, with marks."""

    channels: Mapping[str, Channel] = field(default_factory=dict)
    hooks: Mapping[str, Hook] = field(default_factory=dict)
    listen: Callable[[Inbox], Awaitable[None]] | None = None
    streaming: StreamingProvider | None = None
    tools: tuple[Tool, ...] = ()
    turn_tools: ToolProvider | None = None
    says: tuple[tuple[ContextMark, Say], ...] = ()
    contributor: Contributor | None = None
    schedules: Mapping[str, Callable[[], Awaitable[str | None]]] = field(default_factory=dict)
    agent: AgentProvider | None = None
    embedder: EmbedderProvider | None = None
    extractor: ExtractorProvider | None = None


def provided_by(made: Any, manifest: Manifest, agent: AgentProvider | None) -> Provided:
    """What an extension provides; `agent` is the one its manifest describes. Raises ExtensionError."""
    _check_async(made)
    marked = list(_marked(made))
    tools = tuple(tool_of(method, mark) for method, mark in marked if isinstance(mark, ToolMark))
    says = tuple((mark, method) for method, mark in marked if isinstance(mark, ContextMark))
    agent = made if isinstance(made, AgentProvider) else agent
    _check_kinds(made, manifest, {"tool": bool(tools), "context": bool(says), "agent": agent is not None})
    channels: dict[str, Channel] = dict(made.channels()) if isinstance(made, ChannelsProvider) else {}
    if isinstance(made, ChannelProvider):
        channels[manifest.id] = OutwardChannel(manifest.id, made)
    return Provided(
        channels,
        made.hooks() if isinstance(made, HookProvider) else {},
        made.listen if isinstance(made, ListeningProvider) else None,
        _if_is(made, StreamingProvider),
        tools,
        _if_is(made, ToolProvider),
        says,
        _if_is(made, Contributor),
        {one.name: _executing(made, one, agent) for one in manifest.schedules},
        agent,
        _if_is(made, EmbedderProvider),
        _if_is(made, ExtractorProvider),
    )


def _if_is(made: Any, protocol: type) -> Any:
    return made if isinstance(made, protocol) else None


def _marked(made: Any) -> Iterator[tuple[Any, object]]:
    for name, function in inspect.getmembers(type(made), inspect.isfunction):
        mark = getattr(function, MARK, None)
        if mark is not None:
            yield getattr(made, name), mark


def _check_async(made: Any) -> None:
    wrong = [name for name in _ASYNC if hasattr(made, name) and not inspect.iscoroutinefunction(getattr(made, name))]
    if wrong:
        raise ExtensionError(f"{wrong[0]} must be an async method")


def _check_kinds(made: Any, manifest: Manifest, marked: Mapping[str, bool]) -> None:
    by_method = {one.method for one in manifest.schedules if not one.task}
    missing = [name for name in by_method if not hasattr(made, name)]
    missing += [
        one.method for one in manifest.events.subscribes if one.handler == "custom" and not hasattr(made, one.method)
    ]
    if missing:
        raise ExtensionError(f"its manifest names the method {missing[0]}, which it does not have")
    for kind in manifest.provides:
        there = any(isinstance(made, one) for one in _PROTOCOLS[kind]) or marked.get(kind, False)
        if not there and not (kind == "schedule" and manifest.schedules):
            names = " or ".join(one.__name__ for one in _PROTOCOLS[kind])
            raise ExtensionError(f"its manifest says that it provides {kind}, but it is no {names}")


def _executing(made: Any, entry: ScheduleEntry, agent: AgentProvider | None) -> Callable[[], Awaitable[str | None]]:
    """What is done when a schedule is due."""
    if entry.task:
        if agent is None:
            raise ExtensionError(f"nobody can do the task of the schedule {entry.name}: there is no agent")
        return lambda: agent.invoke(Trusted(entry.task, Trust.OWNER))
    method = getattr(made, entry.method)
    return (lambda: method(entry.name)) if entry.method == "execute" else method


T = TypeVar("T")

LENT = "ext/"
"""How a setting begins that names an extension."""

_EMBED_S = 60.0
_NUMBER_BYTES = 4
_LEAST, _MOST = 0.98, 1.02
"""A vector of length 1, as far as numbers of 32 bits can be."""

Active = Callable[[], Sequence[Guest]]


def lent_by(setting: str) -> str:
    """The extension that a setting names; "" for none."""
    return setting.removeprefix(LENT) if setting.startswith(LENT) else ""


class LentEmbedder:
    """The embedder of an extension. Its vectors are of a space of its own, whatever it calls that."""

    def __init__(self, id_: str, active: Active) -> None:
        self._id = id_
        self._active = active
        self._space: VectorSpace | None = None

    async def space(self) -> VectorSpace:
        """The space its vectors are of. Raises EmbedderError while the extension is not up."""
        if self._space is None:
            theirs = await self._asked(lambda one: one.space())
            if not isinstance(theirs, VectorSpace) or theirs.dimension < 1:
                raise EmbedderError(f"the extension {self._id} does not say what vectors it makes")
            self._space = replace(theirs, model=normalise(f"{LENT}{self._id}/{theirs.model}"))
        return self._space

    async def query(self, text: str) -> bytes:
        """The vector of a query. Raises EmbedderError."""
        return self._checked([await self._asked(lambda one: one.query(text))], 1, await self.space())[0]

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        """The vectors of texts, in order. Raises EmbedderError."""
        return self._checked(await self._asked(lambda one: one.texts(texts)), len(texts), await self.space())

    async def _asked(self, work: Callable[[Embedder], Awaitable[T]]) -> T:
        provider = next((one.provided.embedder for one in self._active() if one.id == self._id), None)
        if provider is None:
            raise EmbedderError(f"the extension {self._id} is not up, or has no embedder", hint="keepsaid ext ls")
        try:
            async with asyncio.timeout(_EMBED_S):
                return await work(provider.embedder())
        except EmbedderError:
            raise
        except Exception as error:  # guard: extension - memory is searched by its words meanwhile
            raise EmbedderError(f"the embedder of {self._id} failed ({type(error).__name__})") from error

    def _checked(self, vectors: Sequence[bytes], many: int, space: VectorSpace) -> Sequence[bytes]:
        if len(vectors) == many and all(_fits(one, space.dimension) for one in vectors):
            return vectors
        raise EmbedderError(f"the embedder of {self._id} made no vectors of {space.dimension} numbers and length 1")


def _fits(vector: bytes, dimension: int) -> bool:
    if not isinstance(vector, bytes) or len(vector) != dimension * _NUMBER_BYTES:
        return False
    return _LEAST < sum(number * number for number in memoryview(vector).cast("f")) < _MOST


class LentExtractor:
    """The extractor of an extension; while it is not up, nothing is read and nobody is charged for it."""

    thorough = True

    def __init__(self, id_: str, active: Active) -> None:
        self._id = id_
        self._active = active
        self.name = f"{LENT}{id_}"

    async def extract(self, passage: Passage) -> Extracted:
        """The statements in a passage; those that name no record of a person are left out. Raises a ModelError."""
        provider = next((one.provided.extractor for one in self._active() if one.id == self._id), None)
        if provider is None:
            raise ModelUnavailable(f"the extension {self._id} is not up, or has no extractor")
        found = await self._asked(provider.extractor(), passage)
        told = {one.position for one in passage.told}
        kept = tuple(one for one in found.statements if one.records and told.issuperset(one.records))
        return replace(found, statements=kept)

    async def _asked(self, extractor: Extractor, passage: Passage) -> Extracted:
        try:
            return await extractor.extract(passage)
        except ModelError:
            raise
        except Exception as error:  # guard: extension - the session is read again, and parked in the end
            raise ModelMalformed(f"the extractor of {self._id} failed ({type(error).__name__})") from error
