"""The life of extensions: in by their dependencies, subscribed to what they name, out the other way round."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from keepsaid.domain.event import Event
from keepsaid.errors import ExtensionError
from keepsaid.extensions import discovery, loading, manifest, provided
from keepsaid.extensions.loaded import ExtensionFault, LoadedExtension, Phase, State
from keepsaid.ports.extension import Agent
from keepsaid.ports.runtime import Clock
from keepsaid.values import frozen


async def subscribe_all(extension: LoadedExtension) -> None:
    """Subscribe an extension to all that its manifest names. Raises ExtensionError if a handler is missing."""
    assert extension.context is not None, "what is initialized has a context"
    for one in extension.manifest.events.subscribes:
        named = one.method if one.handler == "custom" else one.handler
        await extension.context.subscribe(one.topic, _tell(extension, one), named)


def _tell(extension: LoadedExtension, one: manifest.Subscription) -> provided.Tell:
    context = extension.context
    assert context is not None, "what is initialized has a context"
    if one.handler == "custom":
        method: provided.Tell = getattr(extension.made, one.method)
        return method
    if one.handler == "notify_user":
        return lambda event: context.notify_user(_text(event, "text"), f"{event.id}")
    if extension.provided.agent is None:
        raise ExtensionError(f"nobody can be invoked for {one.topic}: there is no agent")
    tells = one.result == "notify_user"
    return lambda event: context.invoke_agent(_text(event, "prompt"), f"event:{event.id}", notify_user=tells)


def _text(event: Event, field: str) -> str:
    """What an event says in a field, else all it holds."""
    said = event.payload.get(field)
    return said if isinstance(said, str) and said.strip() else f"{event.topic}: {json.dumps(dict(event.payload))}"


_log = logging.getLogger("keepsaid.extensions")
_UNWELL_MAX = 3

Wanted = dict[str, Mapping[str, Any]]
"""Settings by extension."""


@frozen
class PhaseLimits:
    """Seconds each phase of an extension may take."""

    import_s: float = 10.0
    initialize_s: float = 5.0
    start_s: float = 5.0
    stop_s: float = 5.0
    health_s: float = 5.0


@frozen
class LifecycleDeps:
    """What the lifecycle is given: the context of each extension, the agent a manifest describes, the time.

    `context` raises ExtensionError for settings that are wrong; `redacted` takes secrets out of a text; `changed`
    is called with every extension whose status changed.
    """

    context: Callable[[manifest.Manifest, Callable[[str], Any]], provided.RuntimeExtensionContext]
    agent: Callable[[LoadedExtension], Agent | None]
    clock: Clock
    redacted: Callable[[str], str]
    changed: Callable[[LoadedExtension], Awaitable[None]]
    limits: PhaseLimits = PhaseLimits()


class Lifecycle:
    """The extensions of one runtime."""

    def __init__(self, found: Iterable[discovery.FoundExtension], deps: LifecycleDeps) -> None:
        self.guests = {one.id: LoadedExtension(one) for one in found}
        self._deps = deps
        self._waves: tuple[tuple[str, ...], ...] = ()

    @property
    def active(self) -> Sequence[LoadedExtension]:
        """Those whose provisions are to be used, in the order they were let in."""
        order = [self.guests[id_] for wave in self._waves for id_ in wave]
        return [one for one in order if one.active]

    async def begin(self) -> None:
        """Let in all that are wanted. Never raises for what one of them does."""
        await self._sort()
        for step in (self._load, self._initialize, self._start):
            for wave in self._waves:
                await asyncio.gather(*(self._step(self.guests[id_], step) for id_ in wave))
        for extension in self.active:
            assert extension.context is not None, "what is active has a context"
            await extension.context.open()

    async def end(self) -> None:
        """Let all out, those that depend on others first."""
        for wave in reversed(self._waves):
            await asyncio.gather(*(self._stop(self.guests[id_]) for id_ in reversed(wave)))

    async def look(self) -> int | None:
        """Ask each for its health; one that says nothing good three times is quarantined and stopped."""
        await asyncio.gather(*(self._examine(extension) for extension in self.active))
        return None

    @property
    def followers(self) -> Sequence[LoadedExtension]:
        """Those that take over changed settings while they work."""
        return [one for one in self.active if one.call("reconfigure") is not None]

    async def refit(self, wanted: Wanted) -> str:
        """Give extensions these settings where they have others; "" when all took them over, else who refused, and why.

        Then those that had taken theirs have the former ones again; one that will not take these back is quarantined.
        """
        before: list[tuple[LoadedExtension, Mapping[str, Any]]] = []
        for extension in self.followers:
            assert extension.context is not None, "what is active has a context"
            former, settings = extension.context.config, wanted.get(extension.id)
            if settings is None or settings == former:
                continue
            before.append((extension, former))
            if (fault := await self._give(extension, settings)) is not None:
                await self._take_back(before)
                return f"{extension.id} does not take over its settings: {self._deps.redacted(fault.reason)}"
        return ""

    async def _give(self, extension: LoadedExtension, settings: Mapping[str, Any]) -> ExtensionFault | None:
        take_over = extension.call("reconfigure", MappingProxyType(dict(settings))) or _nothing
        fault = await loading.run_phase(Phase.SETTINGS, take_over, self._deps.limits.initialize_s)
        if fault is None and extension.context is not None:
            extension.context.refit(settings)
        return fault

    async def _take_back(self, before: Sequence[tuple[LoadedExtension, Mapping[str, Any]]]) -> None:
        for extension, former in reversed(before):
            fault = await self._give(extension, former)
            if fault is not None and extension.active:
                await self._stop(extension, fault)

    def peer(self, id_: str) -> Any:
        """The object of an extension that is up. Raises ExtensionError saying why it is not."""
        extension = self.guests.get(id_)
        if extension is None or extension.state not in (State.READY, State.ACTIVE):
            raise ExtensionError(f"{id_} is not there: {extension.why if extension else 'nothing with this id is'}")
        return extension.made

    async def _sort(self) -> None:
        for extension in self.guests.values():
            if not extension.found.enabled:
                extension.state = State.OFF
            elif extension.found.manifest is None:
                await self._quarantine(extension, ExtensionFault(Phase.MANIFEST, extension.found.problem))
        wanted = {id_: one.manifest.depends_on for id_, one in self.guests.items() if one.state is State.FOUND}
        order = loading.ordered(wanted, {id_: one.why for id_, one in self.guests.items() if id_ not in wanted})
        self._waves = order.waves
        for id_, reason in order.faults.items():
            await self._quarantine(self.guests[id_], ExtensionFault(Phase.DEPENDENCIES, reason))

    async def _step(self, extension: LoadedExtension, step: Callable[[LoadedExtension], Awaitable[None]]) -> None:
        if extension.state not in (State.FOUND, State.LOADED, State.READY):
            return
        if out := [one for one in extension.manifest.depends_on if not self._reached(self.guests[one])]:
            why = self.guests[out[0]].why
            await self._quarantine(extension, ExtensionFault(Phase.DEPENDENCIES, f"it depends on {out[0]}: {why}"))
        else:
            await step(extension)

    def _reached(self, extension: LoadedExtension) -> bool:
        return extension.state in (State.LOADED, State.READY, State.ACTIVE)

    async def _load(self, extension: LoadedExtension) -> None:
        made: type | None = None

        async def settle() -> None:
            extension.context = self._deps.context(extension.manifest, self.peer)

        async def fetch() -> None:
            nonlocal made
            made = await loading.loaded(extension.found)

        async def make() -> None:
            extension.made = object() if made is None else made()

        limits = self._deps.limits
        steps = ((Phase.SETTINGS, settle), (Phase.IMPORT, fetch), (Phase.CREATE, make))
        if await self._all(extension, steps, limits.import_s):
            extension.state = State.LOADED

    async def _initialize(self, extension: LoadedExtension) -> None:
        async def provide() -> None:
            extension.provided = provided.provided_by(extension.made, extension.manifest, self._deps.agent(extension))
            self._check_names(extension)
            await subscribe_all(extension)

        async def ask() -> None:
            extension.needs = tuple(map(str, extension.made.needs())) if hasattr(extension.made, "needs") else ()

        initialize = extension.call("initialize", extension.context) or _nothing
        steps = ((Phase.INITIALIZE, initialize), (Phase.PROVIDE, provide), (Phase.PROVIDE, ask))
        if await self._all(extension, steps, self._deps.limits.initialize_s):
            extension.state = State.UNREADY if extension.needs else State.READY
            if extension.needs:
                await self._deps.changed(extension)

    async def _start(self, extension: LoadedExtension) -> None:
        start = extension.call("start") or _nothing
        if await self._all(extension, ((Phase.START, start),), self._deps.limits.start_s):
            extension.state = State.ACTIVE
            await self._deps.changed(extension)

    async def _stop(self, extension: LoadedExtension, fault: ExtensionFault | None = None) -> None:
        """Stop one that was initialized; with a `fault`, which is what it is stopped for, also what depends on it."""
        if extension.state not in (State.READY, State.UNREADY, State.ACTIVE):
            return
        extension.state = State.STOPPED
        ended = await loading.run_phase(Phase.STOP, extension.call("stop") or _nothing, self._deps.limits.stop_s)
        if fault or ended:
            await self._quarantine(extension, fault or ended)
        for one in reversed(self.active) if fault else ():
            if extension.id in one.manifest.depends_on:
                why = f"it depends on {extension.id}: {extension.why}"
                await self._stop(one, ExtensionFault(Phase.DEPENDENCIES, why))

    async def _examine(self, extension: LoadedExtension) -> None:
        well = False

        async def ask() -> None:
            nonlocal well
            health = extension.call("health")
            well = health is None or bool(await health())

        fault = await loading.run_phase(Phase.HEALTH, ask, self._deps.limits.health_s)
        if fault is None and well:
            extension.unwell = 0
            return
        extension.unwell += 1
        _log.warning("the extension %s is not well (%d of %d)", extension.id, extension.unwell, _UNWELL_MAX)
        if extension.unwell >= _UNWELL_MAX and extension.active:
            unwell = ExtensionFault(Phase.HEALTH, "it said three times that it is not well")
            await self._stop(extension, fault or unwell)

    async def _all(
        self, extension: LoadedExtension, steps: Sequence[tuple[Phase, Callable[[], Awaitable[Any]]]], limit_s: float
    ) -> bool:
        clock = self._deps.clock
        for phase, work in steps:
            began = clock.monotonic_ms()
            fault = await loading.run_phase(phase, work, limit_s)
            extension.took_ms[phase] = extension.took_ms.get(phase, 0.0) + clock.monotonic_ms() - began
            if fault is not None:
                await self._quarantine(extension, fault)
                return False
        return True

    def _check_names(self, extension: LoadedExtension) -> None:
        """Raise ExtensionError where a name is another's."""
        ours = _names(extension)
        for other in self.guests.values():
            theirs = _names(other) if other is not extension and self._reached(other) else {}
            for what, names in theirs.items():
                if both := sorted(ours[what] & names):
                    raise ExtensionError(f"the {what} {both[0]} is {other.id}'s")

    async def _quarantine(self, extension: LoadedExtension, fault: ExtensionFault | None) -> None:
        assert fault is not None, "nothing is quarantined without a reason"
        redacted = self._deps.redacted
        extension.fault = ExtensionFault(fault.phase, redacted(fault.reason), redacted(fault.trace))
        extension.state = State.QUARANTINED
        _log.warning("the extension %s is quarantined: %s: %s", extension.id, fault.phase, extension.fault.reason)
        await self._deps.changed(extension)


async def _nothing() -> None:
    """What an extension does that has no such method."""


def _names(one: LoadedExtension) -> Mapping[str, set[str]]:
    provided = one.provided
    tools = {tool.name for tool in provided.tools}
    return {"channel": set(provided.channels), "hook": set(provided.hooks), "tool": tools}
