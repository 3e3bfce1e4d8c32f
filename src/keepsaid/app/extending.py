"""Extensions of one instance, joined: found, loaded, given the runtime, scheduled, and reloaded with their settings."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from keepsaid.app import services, serving, work
from keepsaid.app.builtin.parts import NAMES, BuiltInContext, Parts, built_in
from keepsaid.app.receiving import ChannelReceiver
from keepsaid.config import Config, Home
from keepsaid.config.channels import ChannelConfig
from keepsaid.config.services import ExtensionConfig
from keepsaid.domain import commits, event, message, process, reply
from keepsaid.domain.line import Cursor, MoveCursors
from keepsaid.domain.prompt import Json
from keepsaid.domain.route import Notify, TaskKind, WorkTerms
from keepsaid.domain.schedule import NewSchedule, Schedule, ScheduleRun, What
from keepsaid.domain.task import CreateTasks, NewTask, TaskFilter
from keepsaid.engine.scheduler import JobHandler
from keepsaid.engine.supervisor import ServiceLoop
from keepsaid.errors import ConfigError, ExtensionError, InputError
from keepsaid.events.catalog import USER_MESSAGE
from keepsaid.extensions import contributions, loaded, provided
from keepsaid.extensions.discovery import ExtensionSource, FoundExtension, in_folder, in_packages, unique
from keepsaid.extensions.lifecycle import Lifecycle, LifecycleDeps, Wanted
from keepsaid.extensions.loaded import LoadedExtension, State
from keepsaid.extensions.manifest import Manifest
from keepsaid.pipeline.runner import MessagePipeline
from keepsaid.ports.channel import Channel, Hook, Incoming
from keepsaid.ports.extension import Agent, ReadScope, RecalledText
from keepsaid.ports.runtime import Clock, Ids, Redactor, Wakeups
from keepsaid.ports.store import Store
from keepsaid.ports.store_views import Operations
from keepsaid.services.reading import ReadingService
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

_KNOWN_MS = 30 * 86_400_000
"""How long notices to the owner are deduplicated."""

_SAID = ("text", "user_id", "channel_id", "conversation_id")


@frozen
class ExtensionHost:
    """The runtime as its extensions may use it; `ours` are the channels that belong to extensions."""

    config: Config
    store: Store
    telling: services.EventService
    receiving: Callable[[message.Inbound], Awaitable[commits.Received]]
    clock: Clock
    ids: Ids
    hints: Wakeups
    reading: ReadingService
    ours: frozenset[str] = frozenset()

    async def emit(self, extension: str, topic: str, payload: Mapping[str, Json], correlation_id: str) -> None:
        """Publish an event; a message of a user goes into the buffer like any other message."""
        if topic == USER_MESSAGE:
            await self._said(extension, payload, correlation_id)
        else:
            await self.telling.emit(topic, payload, correlation_id)

    async def subscribe(self, name: str, topic: str, tell: Callable[[event.Event], Awaitable[object]]) -> None:
        await self.telling.subscribe_leader(name, (topic,), tell)

    async def notify(self, extension: str, text: str, about: str) -> None:
        """Put a notice to the owner in the outbox."""
        now = self.clock.now_ms()
        draft = reply.ReplyDraft(self.ids.next(), normalise(text), notice=True)
        name = f"notice:{extension}:{about}" if about else f"notice:{extension}:{draft.id:x}"
        if not await self.store.apply(process.NotifyOwner(draft, normalise(name), now + _KNOWN_MS, now)):
            raise ExtensionError(f"{extension} has something to tell, and the owner has not written here yet")
        self.hints.deliver.set()

    async def invoke_agent(self, extension: str, task: str, key: str, *, notify_user: bool) -> int:
        """Make a task for the agent of an extension; an event that is delivered again finds the task of before."""
        number = self.ids.next()
        known_as = normalise(f"ext:{extension}:{key}" if key else f"ext:{extension}:{number:x}")
        if found := await self.store.tasks.find(TaskFilter(key=known_as, limit=1)):
            return found[0].id
        terms = WorkTerms(notify=Notify.ALWAYS if notify_user else Notify.ON_FAILURE, agent=extension)
        new = NewTask(number, normalise(task), known_as, TaskKind.AGENT, terms=terms)
        if refusal := await self.store.apply(CreateTasks((new,), self.clock.now_ms())):
            raise ExtensionError(f"the task of {extension} cannot be made: {refusal}")
        self.hints.agent.set()
        return number

    async def read(self, scope: ReadScope, thing: int | str) -> message.Trusted:
        """Return the text of a message or a task within a scope."""
        return await self.reading.read(scope, thing)

    async def recall(self, scope: ReadScope, query: str, limit: int, about: int | str | None) -> Sequence[RecalledText]:
        return await self.reading.recall(scope, query, limit, about)

    @property
    def receiver(self) -> ChannelReceiver:
        """Takes in what the channels of extensions bring."""
        return ChannelReceiver(self.config, self.store, self.receiving, self.ours)

    async def receive(self, channel: str, incoming: Incoming) -> bool:
        """Take in a message that an extension's channel brought; one of a bot only where its channel takes those."""
        received = await self.receiver.take(channel, incoming)
        return received is not None and received.intake is commits.IntakeResult.STORED

    async def receive_all(self, channel: str, incoming: Sequence[Incoming]) -> None:
        """Take in messages, those of one conversation in order; what cannot be taken is logged and left out."""
        await self.receiver.take_all(channel, incoming)

    async def move_cursors(self, channel: str, cursors: Sequence[Cursor]) -> None:
        """Keep how far a channel has been read."""
        await self.store.apply(MoveCursors(channel, tuple(cursors), self.clock.now_ms()))

    async def cursors(self, channel: str, account: str) -> Mapping[str, str]:
        return await self.store.cursors(channel, account)

    async def emit_lifecycle_event(self, topic: str, payload: Mapping[str, Json], about: str) -> None:
        """Publish an event about the state of an extension, such as `extension.started`."""
        await self.store.apply(commits.Tell(topic, json.dumps(dict(payload)), self.clock.now_ms(), about))

    async def _said(self, extension: str, payload: Mapping[str, Json], correlation_id: str) -> None:
        """A `user.message` {text, user_id, channel_id}: told twice under one correlation id, it is kept once."""
        text, user, channel, conversation = (payload.get(name) for name in _SAID)
        if not isinstance(text, str) or not isinstance(user, str) or not user:
            raise InputError(f"{USER_MESSAGE} needs text and user_id, both texts")
        external = f"{extension}:{correlation_id}" if correlation_id else None
        incoming = Incoming(text, user, str(conversation or user), external, direct=conversation is None)
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
            given = one.manifest.channel or {}
            fits = {key: given[key] for key in ChannelConfig.model_fields if key in given}
            brought[one.id] = ChannelConfig.model_validate(fits)
    brought |= {name: ChannelConfig() for name in config.listening if name not in config.channels}
    return config.model_copy(update={"channels": {**config.channels, **brought}}) if brought else config


def ours_of(config: Config, found: Iterable[FoundExtension]) -> frozenset[str]:
    """The channels that belong to extensions: nobody else's messages can be handed over there."""
    brought = (one.id for one in found if one.enabled and one.manifest and "channel" in one.manifest.provides)
    return frozenset((*brought, *config.listening))


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
        redactor: Redactor,
        parts: Parts,
    ) -> None:
        self._home = home
        self.host = host
        self._parts = parts
        around = LifecycleDeps(self._context, self._agent, host.clock, redactor.redacted, self._changed)
        self.lifecycle = Lifecycle(unique((*built_in(host.config), *found)), around)
        self.listeners = contributions.Listeners(host.clock, self.note)
        self.offers = contributions.ExtensionContributions(lambda: self.lifecycle.active, host.clock, self.note)
        self._begun = False

    async def begin(self, channels: dict[str, Channel], hooks: dict[str, Hook]) -> None:
        """Let them in; what they bring takes its place among the channels and hooks, beside what stands there."""
        await self.lifecycle.begin()
        self._begun = True
        for guest in self.lifecycle.active:
            for name, channel in guest.provided.channels.items():
                channels.setdefault(name, channel)
            hooks.update(guest.provided.hooks)
        self._write()

    def lead(self) -> Iterator[ServiceLoop]:
        """Listen on their channels; yields what runs in one process of those that share a store: loops of built-in
        extensions, and what looks after the health of all.
        """
        for guest in self.lifecycle.active:
            if guest.provided.listen is not None:
                self.listeners.begin(guest)
        yield from self._stages()

    def _stages(self) -> Iterator[ServiceLoop]:
        for guest in self.lifecycle.active:
            if guest.found.source is ExtensionSource.BUILT_IN and hasattr(guest.made, "loops"):
                yield from guest.made.loops()
        if any(hasattr(guest.made, "health") for guest in self.lifecycle.active):
            yield ServiceLoop("extensions", self.lifecycle.look, asyncio.Event(), poll_ms=_HEALTH_MS, vital=False)

    async def end(self) -> None:
        """Let them out, the other way round."""
        if self._begun:
            self._begun = False
            await self.lifecycle.end()

    def _context(self, manifest: Manifest, peer: Callable[[str], Any]) -> provided.RuntimeExtensionContext:
        given = self.host.config.extensions.get(manifest.id)
        settings = provided.settings_of(manifest, given.config if given else {})
        data = self._home.data / "extensions" / manifest.id
        if manifest.id not in NAMES:
            return provided.RuntimeExtensionContext(manifest, settings, self.host, peer, data)
        context = BuiltInContext(manifest, settings, self.host, peer, data)
        context.parts = self._parts
        return context

    def _agent(self, guest: LoadedExtension) -> Agent | None:
        return loaded.described_agent(guest, self.lifecycle.guests)

    def agents(self) -> Mapping[str, Agent]:
        """The agents of the extensions that are active, by the id of the extension."""
        return {one.id: agent for one in self.lifecycle.active if (agent := one.provided.agent) is not None}

    async def _changed(self, guest: LoadedExtension) -> None:
        if guest.fault is not None:
            told = {"extension": guest.id, "phase": guest.fault.phase.value}
            await self.host.emit_lifecycle_event("extension.quarantined", told, guest.id)
            await self.listeners.end(guest.id)
        elif guest.state is State.ACTIVE and guest.found.source is not ExtensionSource.BUILT_IN:
            await self.host.emit_lifecycle_event("extension.started", {"extension": guest.id}, guest.id)
        self.note()

    def note(self) -> None:
        """Write down the state and the notes of all extensions, once they have begun."""
        if self._begun:
            self._write()

    def _write(self) -> None:
        guests = self.lifecycle.guests.values()
        if not any(one.fault or one.found.source is not ExtensionSource.BUILT_IN for one in guests):
            return
        try:
            loaded.write(self._home.extensions_file, os.getpid(), guests)
        except OSError as error:
            _log.warning("the status of extensions cannot be written (%s)", error.strerror)


async def join_calendars(extending: ExtensionService, scheduling: work.ScheduleRunner, zone: str) -> None:
    """Let the schedules of extensions come; those of one that is off come no more. Before the scheduler starts."""
    for id_, guest in extending.lifecycle.guests.items():
        if guest.state not in (State.ACTIVE, State.OFF) or guest.found.source is ExtensionSource.BUILT_IN:
            continue
        source, wanted = f"ext:{id_}", []
        for entry in guest.manifest.schedules if guest.active else ():
            name = f"{source}:{entry.name}"
            new = extending.host.ids.next(), source, entry.name, entry.timing(zone)
            if entry.task:
                wanted.append(NewSchedule(*new, What.TASK, entry.task))
                continue
            scheduling.register_job(name, JobHandler(_make_job(guest, entry.name)))
            wanted.append(NewSchedule(*new, What.RUN, name))
        await scheduling.service.replace(source, wanted)


def _make_job(guest: LoadedExtension, entry: str) -> Callable[[Schedule, ScheduleRun], Awaitable[bool | str]]:
    """What is done when a schedule of an extension is due; a text that it returns is for the owner."""

    async def do(_schedule: Schedule, _run: ScheduleRun) -> bool | str:
        said = await guest.provided.schedules[entry]()
        return str(said) if said else True

    return do


class ReloadableExtensions:
    """Settings of extensions that have a method `reconfigure`. They are applied first, because one may refuse."""

    def __init__(self, lifecycle: Lifecycle) -> None:
        self._lifecycle = lifecycle

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(f"extensions.{guest.id}.config" for guest in self._lifecycle.followers)

    async def prepare(self, config: Config) -> serving.Prepared:
        """Check settings against the manifests; raises ConfigError."""
        wanted: Wanted = {}
        for guest in self._lifecycle.followers:
            given = config.extensions.get(guest.id)
            try:
                wanted[guest.id] = provided.settings_of(guest.manifest, given.config if given else {})
            except ExtensionError as error:
                raise ConfigError(error.what, hint=error.hint) from error
        return serving.Prepared(partial(self._apply, wanted))

    async def _apply(self, wanted: Wanted) -> None:
        if refused := await self._lifecycle.refit(wanted):
            raise ConfigError(refused, safe=serving.IN_FORCE, hint="keepsaid config show extensions")


def reloading_of(
    home: Home, config: Config, flow: MessagePipeline, told: tuple[Operations, Clock], found: Iterable[FoundExtension]
) -> serving.ConfigReloader:
    """What reads the settings of an instance again: its rules and its character follow them."""
    found = tuple(found)

    def adjusted(config: Config) -> Config:
        """The config with these extensions: each has a section, as if the file had named it, and its channels."""
        unnamed = {one.id: ExtensionConfig(enabled=one.enabled) for one in found if one.id not in config.extensions}
        return with_channels(config.model_copy(update={"extensions": {**config.extensions, **unnamed}}), found)

    parts = serving.ReloadableRoutes(flow), serving.ReloadableIdentity(home, flow)
    return serving.ConfigReloader(home, adjusted(config), parts, told, adjusted)
