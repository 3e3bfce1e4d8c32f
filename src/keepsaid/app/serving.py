"""A server at work: what can change of its settings is reloaded, all of it or nothing; its event loop is watched.

It runs for months, so its threads share one arena, and no search for garbage looks at what the start made.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple, Protocol

from keepsaid.adapters.system import files, machine
from keepsaid.config import Config, Home, load
from keepsaid.config.document import Key
from keepsaid.config.file import changed, taken, within
from keepsaid.domain import commits
from keepsaid.domain.prompt import Json
from keepsaid.errors import ConfigError, KeepsaidError
from keepsaid.pipeline.runner import MessagePipeline
from keepsaid.ports import runtime, store_views
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.config")
IN_FORCE = "Nothing was changed: the settings from before stay in force."
"""What is said of data when a reload is refused."""

Apply = Callable[[], Awaitable[object]]
"""Puts in force what was prepared."""


class Prepared(NamedTuple):
    """A part that is ready: `apply` puts it in force, `warnings` say what of it will not work."""

    apply: Apply
    warnings: Sequence[str] = ()


class Reloadable(Protocol):
    """Something that follows changed settings while it works."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The settings it answers for: `routes`, `channels.*.unmatched`."""
        ...

    async def prepare(self, config: Config) -> Prepared:
        """Check settings and make ready for them; raises a KeepsaidError, and nothing of any part is changed."""
        ...


class Reloaded(NamedTuple):
    """The result of a reload: keys that are in force now, keys that need a restart, and warnings."""

    changed: tuple[str, ...]
    restart: tuple[str, ...]
    warnings: tuple[str, ...]


@frozen
class ReloadableRoutes:
    """Routing table: messages routed after a reload use the new rules, and record their version."""

    flow: MessagePipeline
    keys: tuple[str, ...] = ("routes", "channels.*.unmatched")

    async def prepare(self, config: Config) -> Prepared:
        # a token of a channel needs a restart, and with it what can be answered there
        answerable = self.flow.settings.routes.answerable
        course = replace(self.flow.settings, routes=replace(config.table(), answerable=answerable))

        async def apply() -> None:
            self.flow.update_settings(course)

        return Prepared(apply)


@frozen
class ReloadableIdentity:
    """Identity files and skills of the agent, from the folder that the config names."""

    home: Home
    flow: MessagePipeline
    keys: tuple[str, ...] = ("agent",)

    async def prepare(self, config: Config) -> Prepared:
        """Read the files; a skill that is broken is left out of prompts, and named."""
        folder = self.home.agent(config.agent)
        identity, skills = files.IdentityFiles(folder), files.SkillFolder(folder)
        await identity.read()
        broken = (await skills.read()).broken

        async def apply() -> None:
            self.flow.set_identity(identity, skills)

        return Prepared(apply, tuple(f"skill {name} is left out: {why}" for name, why in broken))


class ConfigReloader:
    """Reads the settings of a running instance again. `adjusted` is what its start made of those of the file.

    `given` are keys that were set at the start and that the file does not decide.
    """

    def __init__(
        self,
        home: Home,
        config: Config,
        parts: Sequence[Reloadable],
        told: tuple[store_views.Operations, runtime.Clock],
        adjusted: Callable[[Config], Config],
    ) -> None:
        self.config = config
        self.given: tuple[str, ...] = ()
        self._adjusted = adjusted
        self._home = home
        self._parts = list(parts)
        self._operations, self._clock = told
        self._one = asyncio.Lock()
        self._had_file = home.config_file.exists()

    def add(self, part: Reloadable) -> None:
        """Another part that follows; it is put in force before those that are there."""
        self._parts.insert(0, part)

    async def reload(self) -> Reloaded:
        """Read the file again. Raises a KeepsaidError that says what is wrong; then nothing was changed."""
        async with self._one:
            try:
                done = await self._reloaded()
            except KeepsaidError as error:
                _log.error("the config was not reloaded: %s", error.what, extra={"code": error.code})
                raise
            _log.info("the config was reloaded: %s", ", ".join(done.changed) or "nothing changed")
            if done.restart:
                _log.warning("needs a restart: %s", ", ".join(done.restart))
            return done

    async def _reloaded(self) -> Reloaded:
        try:
            self._look()
            file, warnings = await asyncio.to_thread(load, self._home.config_file)
            wanted = self._adjusted(file)
            ours = tuple(key for part in self._parts for key in part.keys)
            config: Config = taken(self.config, wanted, lambda key: within(key, ours))
            ready = [await part.prepare(config) for part in self._parts]
        except ConfigError as error:
            error.safe = IN_FORCE
            raise
        differs = [key for key in changed(self.config, wanted) if not within(key, self.given)]
        followed = _names(key for key in differs if within(key, ours))
        for one in ready:
            await one.apply()
        self.config = config
        left = _names(key for key in differs if not within(key, ours))
        if followed or left:
            payload: dict[str, Json] = {"changed": list(followed), "restart": list(left)}
            await self._operations.apply(commits.Tell("config.reloaded", json.dumps(payload), self._clock.now_ms()))
        return Reloaded(followed, left, (*warnings, *(line for one in ready for line in one.warnings)))

    def _look(self) -> None:
        """Without a file all would be as usual again: whoever replaces it may be just at it."""
        there = self._home.config_file.exists()
        if self._had_file and not there:
            raise ConfigError(f"{self._home.config_file} is not there any more")
        self._had_file = there


def _names(keys: Iterable[Key]) -> tuple[str, ...]:
    return tuple(".".join(key) for key in keys)


@contextmanager
def watched(config: Config) -> Iterator[machine.Systemd]:
    """Let threads share one arena, and watch the running event loop while the block runs; yields the way to systemd."""
    machine.share_one_arena()
    systemd = machine.Systemd(os.environ)
    # Half of the time: one notification may come late.
    feed_s = systemd.watchdog_s / 2 if systemd.watchdog_s is not None else None
    watchdog = machine.Watchdog(config.runtime.watchdog_s, systemd.alive, feed_s)
    try:
        yield systemd
    finally:
        watchdog.end()
        systemd.close()


def started(systemd: machine.Systemd) -> None:
    """Say that the start is over, and spare what it made from searches for garbage."""
    machine.spare_what_stays()
    systemd.ready()
