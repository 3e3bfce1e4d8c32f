"""Extensions of one instance, joined: found, loaded, given the runtime, scheduled, and reloaded with their settings."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from keepsaid.app.builtin.parts import NAMES, BuiltInContext, Parts, built_in
from keepsaid.app.events import EventService
from keepsaid.app.serving import IN_FORCE, ConfigReloader, Prepared, ReloadableIdentity, ReloadableRoutes
from keepsaid.app.work import ScheduleService
from keepsaid.config import Config, Home
from keepsaid.config.services import ExtensionConfig
from keepsaid.config.settings import ChannelConfig
from keepsaid.domain.commits import IntakeResult, Received
from keepsaid.domain.commits import Tell as Told
from keepsaid.domain.event import Event
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks
from keepsaid.domain.process import NotifyOwner
from keepsaid.domain.prompt import Json
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.schedule import NewSchedule, Schedule, ScheduleRun, What
from keepsaid.engine.scheduler import JobHandler
from keepsaid.engine.supervisor import ServiceLoop
from keepsaid.errors import ConfigError, ExtensionError, InputError
from keepsaid.events.catalog import USER_MESSAGE
from keepsaid.extensions import loaded
from keepsaid.extensions.agent import DeclaredAgent
from keepsaid.extensions.contributions import ExtensionContributions, Listeners
from keepsaid.extensions.discovery import ExtensionSource, FoundExtension, in_folder, in_packages, unique
from keepsaid.extensions.lifecycle import Lifecycle, LifecycleDeps, Wanted
from keepsaid.extensions.loaded import LoadedExtension, State
from keepsaid.extensions.manifest import Manifest, ScheduleEntry
from keepsaid.extensions.services import RuntimeExtensionContext, settings_of
from keepsaid.pipeline.runner import MessagePipeline
from keepsaid.ports.channel import Channel, Hook, Incoming
from keepsaid.ports.extension import AgentProvider
from keepsaid.ports.model import Model, Tool
from keepsaid.ports.runtime import Clock, Ids, Redactor, Wakeups
from keepsaid.ports.store_views import Operations
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

_KNOWN_MS = 30 * 86_400_000
"""So long it is known what the owner was told."""

_SAID = ("text", "user_id", "channel_id", "conversation_id")


@frozen
class ExtensionHost:
    """The runtime as its extensions may use it; `ours` are the channels that belong to extensions."""

    config: Config
    store: Operations
    telling: EventService
    receiving: Callable[[Inbound], Awaitable[Received]]
    clock: Clock
    ids: Ids
    hints: Wakeups
    ours: frozenset[str] = frozenset()

    async def emit(self, extension: str, topic: str, payload: Mapping[str, Json], correlation_id: str) -> None:
        """Tell of a fact; what somebody said goes into the buffer like any other message."""
        if topic == USER_MESSAGE:
            await self._said(extension, payload, correlation_id)
        else:
            await self.telling.emit(topic, payload, correlation_id)

    async def subscribe(self, name: str, topic: str, tell: Callable[[Event], Awaitable[object]]) -> None:
        """Tell somebody of a topic."""
        await self.telling.subscribe(name, (topic,), tell)

    async def notify(self, extension: str, text: str, about: str) -> None:
        """Put a notice to the owner in the outbox."""
        now = self.clock.now_ms()
        draft = ReplyDraft(self.ids.next(), normalise(text), notice=True)
        name = f"notice:{extension}:{about}" if about else f"notice:{extension}:{draft.id:x}"
        if not await self.store.apply(NotifyOwner(draft, normalise(name), now + _KNOWN_MS, now)):
            raise ExtensionError(f"{extension} has something to tell, and the owner has not written here yet")
        self.hints.deliver.set()

    async def receive(self, channel: str, incoming: Incoming) -> bool:
        """Take in a message that an extension's channel brought."""
        settings = self.config.channels.get(channel)
        if settings is None or channel not in self.ours:
            raise InputError(f"{channel} is no channel of an extension", hint="keepsaid ext ls")
        origin = Origin(channel, "default", incoming.conversation, incoming.sender, incoming.name, incoming.direct)
        origin = replace(origin, trust=self.config.trust_of(origin))
        marks = ProviderMarks(incoming.external_id, incoming.provider_id, incoming.reply_to)
        payload = incoming.text.encode("utf-8", "surrogatepass") if incoming.payload is None else incoming.payload
        content = Content(payload, incoming.text)
        received = await self.receiving(Inbound(origin, content, marks, settings.priority, incoming.topic))
        return received.intake is IntakeResult.STORED

    async def emit_lifecycle_event(self, topic: str, payload: Mapping[str, Json], about: str) -> None:
        """Publish an event about the state of an extension, such as `extension.started`."""
        await self.store.apply(Told(topic, json.dumps(dict(payload)), self.clock.now_ms(), about))

    async def _said(self, extension: str, payload: Mapping[str, Json], correlation_id: str) -> None:
        """A `user.message` {text, user_id, channel_id}: told twice under one correlation id, it is kept once."""
        text, user, channel, conversation = (payload.get(name) for name in _SAID)
        if not isinstance(text, str) or not isinstance(user, str) or not user:
            raise InputError(f"{USER_MESSAGE} needs text and user_id, both texts")
        external = f"{extension}:{correlation_id}" if correlation_id else None
        where = str(conversation or user)
        incoming = Incoming(text, user, where, external, direct=conversation is None)
        await self.receive(str(channel or extension), incoming)


_log = logging.getLogger("keepsaid.extensions")
_HEALTH_MS = 30_000


def found_in(home: Home, config: Config) -> list[FoundExtension]:
    """Every extension there is, and whether it is wanted. Nothing of theirs is run."""
    named = config.extensions
    known = [(one, True) for one in in_folder(home.extensions)] + [(one, False) for one in in_packages()]
    return list(
        unique(replace(one, enabled=named[one.id].enabled if one.id in named else usual) for one, usual in known)
    )


def with_channels(config: Config, found: Iterable[FoundExtension]) -> Config:
    """The config with a section for every channel that an extension brings; what the file says of it wins."""
    brought = {}
    for one in found:
        if one.enabled and one.manifest and "channel" in one.manifest.provides and one.id not in config.channels:
            fits = {
                key: value for key, value in (one.manifest.channel or {}).items() if key in ChannelConfig.model_fields
            }
            brought[one.id] = ChannelConfig.model_validate(fits)
    return config.model_copy(update={"channels": {**config.channels, **brought}}) if brought else config


def ours_of(found: Iterable[FoundExtension]) -> frozenset[str]:
    """The channels that belong to extensions: nobody else's messages can be handed over there."""
    return frozenset(one.id for one in found if one.enabled and one.manifest and "channel" in one.manifest.provides)


def secrets_of(found: Iterable[FoundExtension]) -> tuple[str, ...]:
    """Every secret that the environment holds for an extension."""
    named = {name for one in found if one.manifest for name in one.manifest.secrets.values()}
    return tuple(os.environ[name] for name in sorted(named) if os.environ.get(name))


class ExtensionService:
    """The extensions of one instance."""

    def __init__(
        self,
        home: Home,
        found: Sequence[FoundExtension],
        host: ExtensionHost,
        outer: tuple[Model, Redactor],
        parts: Parts,
    ) -> None:
        self._home = home
        self.host = host
        self._parts = parts
        self._model, redactor = outer
        found = tuple(unique((*built_in(host.config), *found)))
        around = LifecycleDeps(self._context, self._agent, host.clock, redactor.redacted, self._changed)
        self.lifecycle = Lifecycle(found, around)
        self.listeners = Listeners(host.clock)
        self.offers = ExtensionContributions(lambda: self.lifecycle.active)
        self._begun = False

    async def begin(self, channels: dict[str, Channel], hooks: dict[str, Hook]) -> None:
        """Let them in; what they bring takes its place among the channels and hooks, beside what stands there."""
        await self.lifecycle.begin()
        self._begun = True
        for guest in self.lifecycle.active:
            for name, channel in guest.provided.channels.items():
                channels.setdefault(name, channel)
            hooks.update(guest.provided.hooks)
            if guest.provided.listen is not None:
                self.listeners.begin(guest)
        self._write()

    def schedules(self) -> Sequence[tuple[str, ScheduleEntry, Callable[[], Awaitable[str | None]]]]:
        """The schedules of those that are active: whose, when, and what is done then; a result is for the owner."""
        return [
            (guest.id, entry, guest.provided.schedules[entry.name])
            for guest in self.lifecycle.active
            for entry in guest.manifest.schedules
        ]

    def stages(self) -> Sequence[ServiceLoop]:
        """What looks after their health."""
        loops = [stage for guest in self.lifecycle.active for stage in _loops(guest)]
        if not any(hasattr(guest.made, "health") for guest in self.lifecycle.active):
            return loops
        return (*loops, ServiceLoop("extensions", self._look, asyncio.Event(), poll_ms=_HEALTH_MS, vital=False))

    async def quiet(self) -> None:
        """Take nothing in any more."""
        await self.listeners.end()

    async def end(self) -> None:
        """Let them out, the other way round."""
        if self._begun:
            self._begun = False
            await self.lifecycle.end()

    async def _look(self) -> int | None:
        return await self.lifecycle.look()

    def _context(self, manifest: Manifest, peer: Callable[[str], Any]) -> RuntimeExtensionContext:
        given = self.host.config.extensions.get(manifest.id)
        settings = settings_of(manifest, given.config if given else {})
        data = self._home.data / "extensions" / manifest.id
        if manifest.id not in NAMES:
            return RuntimeExtensionContext(manifest, settings, self.host, peer, data)
        context = BuiltInContext(manifest, settings, self.host, peer, data)
        context.parts = self._parts
        return context

    def _agent(self, guest: LoadedExtension) -> AgentProvider | None:
        described = guest.manifest.agent
        return DeclaredAgent(described, self._named, lambda: self._tools_of(guest)) if described else None

    def _named(self, name: str) -> Model:
        if name not in ("", self._model.name):
            raise ExtensionError(f"no model {name} is at hand; this instance answers with {self._model.name}")
        return self._model

    def _tools_of(self, guest: LoadedExtension) -> Sequence[Tool]:
        """The tools of an extension, and of those it depends on."""
        near = [self.lifecycle.guests[one] for one in guest.manifest.depends_on]
        return [tool for one in (guest, *near) for tool in one.provided.tools]

    async def _changed(self, guest: LoadedExtension) -> None:
        if guest.fault is not None:
            told = {"extension": guest.id, "phase": guest.fault.phase.value}
            await self.host.emit_lifecycle_event("extension.quarantined", told, guest.id)
            await self.listeners.end(guest.id)
        elif guest.state is State.ACTIVE and guest.found.source is not ExtensionSource.BUILT_IN:
            await self.host.emit_lifecycle_event("extension.started", {"extension": guest.id}, guest.id)
        if self._begun:
            self._write()

    def _write(self) -> None:
        guests = self.lifecycle.guests.values()
        if not any(one.fault or one.found.source is not ExtensionSource.BUILT_IN for one in guests):
            return
        try:
            loaded.write(self._home.extensions_file, os.getpid(), guests)
        except OSError as error:
            _log.warning("what became of extensions cannot be written (%s)", error.strerror)


def _loops(guest: LoadedExtension) -> Sequence[ServiceLoop]:
    """The loops of a built-in extension."""
    if guest.found.source is not ExtensionSource.BUILT_IN or not hasattr(guest.made, "loops"):
        return ()
    return tuple(guest.made.loops())


Work = Callable[[], Awaitable[str | None]]


async def join_calendars(extending: ExtensionService, scheduling: ScheduleService, zone: str) -> None:
    """Let the schedules of extensions come; those of one that is off come no more. Before the scheduler starts."""
    wanted: dict[str, list[NewSchedule]] = {
        id_: []
        for id_, guest in extending.lifecycle.guests.items()
        if guest.state in (State.ACTIVE, State.OFF) and guest.found.source is not ExtensionSource.BUILT_IN
    }
    for id_, entry, work in extending.schedules():
        name = f"ext:{id_}:{entry.name}"
        scheduling.register_job(name, JobHandler(_make_job(extending, id_, work)))
        timing = entry.timing(zone)
        wanted[id_].append(NewSchedule(extending.host.ids.next(), f"ext:{id_}", entry.name, timing, What.RUN, name))
    for id_, schedules in wanted.items():
        await scheduling.replace(f"ext:{id_}", schedules)


def _make_job(extending: ExtensionService, id_: str, work: Work) -> Callable[[Schedule, ScheduleRun], Awaitable[bool]]:
    async def do(schedule: Schedule, run: ScheduleRun) -> bool:
        said = await work()
        if said:
            await extending.host.notify(id_, said, f"{schedule.new.name}:{run.due_at}")
        return True

    return do


def with_sections(config: Config, found: Iterable[FoundExtension]) -> Config:
    """The config as it is with these extensions: each has a section, as if the file had named it, and its channels."""
    found = tuple(found)
    unnamed = {one.id: ExtensionConfig(enabled=one.enabled) for one in found if one.id not in config.extensions}
    return with_channels(config.model_copy(update={"extensions": {**config.extensions, **unnamed}}), found)


class ReloadableExtensions:
    """Settings of extensions that have a method `reconfigure`. They are applied first, because one may refuse."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle

    @property
    def keys(self) -> tuple[str, ...]:
        """The settings of those that follow."""
        return tuple(f"extensions.{guest.id}.config" for guest in self._lifecycle.followers)

    async def prepare(self, config: Config) -> Prepared:
        """Check settings against the manifests; raises ConfigError."""
        wanted: Wanted = {}
        for guest in self._lifecycle.followers:
            given = config.extensions.get(guest.id)
            try:
                wanted[guest.id] = settings_of(guest.manifest, given.config if given else {})
            except ExtensionError as error:
                raise ConfigError(error.what, hint=error.hint) from error
        return Prepared(partial(self._apply, wanted))

    async def _apply(self, wanted: Wanted) -> None:
        refused = await self._lifecycle.refit(wanted)
        if refused:
            raise ConfigError(refused, safe=IN_FORCE, hint="keepsaid config show extensions")


def reloading_of(
    home: Home, config: Config, flow: MessagePipeline, told: tuple[Operations, Clock], found: Iterable[FoundExtension]
) -> ConfigReloader:
    """What reads the settings of an instance again: its rules and its character follow them."""
    adjusted = partial(with_sections, found=tuple(found))
    return ConfigReloader(
        home, adjusted(config), (ReloadableRoutes(flow), ReloadableIdentity(home, flow)), told, adjusted
    )
