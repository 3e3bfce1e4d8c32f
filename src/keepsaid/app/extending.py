"""Extending: the extensions of one instance, from what is found of them to what they bring to its turns."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from keepsaid.app.builtin.parts import NAMES, BuiltInContext, Parts, built_in
from keepsaid.app.hosting import Host
from keepsaid.config import Config, Home
from keepsaid.config.settings import ChannelConfig
from keepsaid.engine.supervisor import Stage
from keepsaid.errors import ExtensionError
from keepsaid.extensions import loaded
from keepsaid.extensions.agent import DeclaredAgent
from keepsaid.extensions.context import GuestContext, settings_of
from keepsaid.extensions.contributions import Listeners, TurnOffers
from keepsaid.extensions.discovery import Found, Source, in_folder, in_packages, unique
from keepsaid.extensions.lifecycle import Lifecycle, Surroundings
from keepsaid.extensions.loaded import Guest, State
from keepsaid.extensions.manifest import Manifest, ScheduleEntry
from keepsaid.ports.channel import Channel, Hook
from keepsaid.ports.extension import AgentProvider
from keepsaid.ports.model import Model, Tool
from keepsaid.ports.redactor import Redactor

_log = logging.getLogger("keepsaid.extensions")
_HEALTH_MS = 30_000


def found_in(home: Home, config: Config) -> list[Found]:
    """Every extension there is, and whether it is wanted. Nothing of theirs is run."""
    named = config.extensions
    folder = [_wanted(one, named[one.id].enabled if one.id in named else True) for one in in_folder(home.extensions)]
    packages = [_wanted(one, one.id in named and named[one.id].enabled) for one in in_packages()]
    return list(unique((*folder, *packages)))


def _wanted(found: Found, enabled: bool) -> Found:
    return replace(found, enabled=enabled)


def with_channels(config: Config, found: Iterable[Found]) -> Config:
    """The config with a section for every channel that an extension brings; what the file says of it wins."""
    brought = {}
    for one in found:
        if one.enabled and one.manifest and "channel" in one.manifest.provides and one.id not in config.channels:
            fits = {
                key: value for key, value in (one.manifest.channel or {}).items() if key in ChannelConfig.model_fields
            }
            brought[one.id] = ChannelConfig.model_validate(fits)
    return config.model_copy(update={"channels": {**config.channels, **brought}}) if brought else config


def ours_of(found: Iterable[Found]) -> frozenset[str]:
    """The channels that belong to extensions: nobody else's messages can be handed over there."""
    return frozenset(one.id for one in found if one.enabled and one.manifest and "channel" in one.manifest.provides)


def secrets_of(found: Iterable[Found]) -> tuple[str, ...]:
    """Every secret that the environment holds for an extension."""
    named = {name for one in found if one.manifest for name in one.manifest.secrets.values()}
    return tuple(os.environ[name] for name in sorted(named) if os.environ.get(name))


class Extending:
    """The extensions of one instance."""

    def __init__(
        self, home: Home, found: Sequence[Found], host: Host, outer: tuple[Model, Redactor], parts: Parts
    ) -> None:
        self._home = home
        self.host = host
        self._parts = parts
        self._model, redactor = outer
        found = tuple(unique((*built_in(host.config), *found)))
        around = Surroundings(self._context, self._agent, host.clock, redactor.redacted, self._changed)
        self.lifecycle = Lifecycle(found, around)
        self.listeners = Listeners(host.clock)
        self.offers = TurnOffers(lambda: self.lifecycle.active)
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

    def stages(self) -> Sequence[Stage]:
        """What looks after their health."""
        loops = [stage for guest in self.lifecycle.active for stage in _loops(guest)]
        if not any(hasattr(guest.made, "health") for guest in self.lifecycle.active):
            return loops
        return (*loops, Stage("extensions", self._look, asyncio.Event(), poll_ms=_HEALTH_MS, vital=False))

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

    def _context(self, manifest: Manifest, peer: Callable[[str], Any]) -> GuestContext:
        given = self.host.config.extensions.get(manifest.id)
        settings = settings_of(manifest, given.config if given else {})
        data = self._home.data / "extensions" / manifest.id
        if manifest.id not in NAMES:
            return GuestContext(manifest, settings, self.host, peer, data)
        context = BuiltInContext(manifest, settings, self.host, peer, data)
        context.parts = self._parts
        return context

    def _agent(self, guest: Guest) -> AgentProvider | None:
        described = guest.manifest.agent
        return DeclaredAgent(described, self._named, lambda: self._tools_of(guest)) if described else None

    def _named(self, name: str) -> Model:
        if name not in ("", self._model.name):
            raise ExtensionError(f"no model {name} is at hand; this instance answers with {self._model.name}")
        return self._model

    def _tools_of(self, guest: Guest) -> Sequence[Tool]:
        """The tools of an extension, and of those it depends on."""
        near = [self.lifecycle.guests[one] for one in guest.manifest.depends_on]
        return [tool for one in (guest, *near) for tool in one.provided.tools]

    async def _changed(self, guest: Guest) -> None:
        if guest.fault is not None:
            told = {"extension": guest.id, "phase": guest.fault.phase.value}
            await self.host.told("extension.quarantined", told, guest.id)
            await self.listeners.end(guest.id)
        elif guest.state is State.ACTIVE and guest.found.source is not Source.BUILT_IN:
            await self.host.told("extension.started", {"extension": guest.id}, guest.id)
        if self._begun:
            self._write()

    def _write(self) -> None:
        guests = self.lifecycle.guests.values()
        if not any(one.fault or one.found.source is not Source.BUILT_IN for one in guests):
            return
        try:
            loaded.write(self._home.extensions_file, os.getpid(), guests)
        except OSError as error:
            _log.warning("what became of extensions cannot be written (%s)", error.strerror)


def _loops(guest: Guest) -> Sequence[Stage]:
    """The loops of a built-in extension."""
    if guest.found.source is not Source.BUILT_IN or not hasattr(guest.made, "loops"):
        return ()
    return tuple(guest.made.loops())
