"""Refitting: extensions that can follow changed settings while they work do so with a reload, all of them or none."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from keepsaid.app.extending import with_channels
from keepsaid.app.reload import IN_FORCE, Character, Prepared, Reloading, Rules
from keepsaid.config import Config, Home
from keepsaid.config.services import ExtensionConfig
from keepsaid.errors import ConfigError, ExtensionError
from keepsaid.extensions.context import settings_of
from keepsaid.extensions.discovery import Found
from keepsaid.extensions.lifecycle import Lifecycle, Wanted
from keepsaid.pipeline.flow import Flow
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import Operations


def with_sections(config: Config, found: Iterable[Found]) -> Config:
    """The config as it is with these extensions: each has a section, as if the file had named it, and its channels."""
    found = tuple(found)
    unnamed = {one.id: ExtensionConfig(enabled=one.enabled) for one in found if one.id not in config.extensions}
    return with_channels(config.model_copy(update={"extensions": {**config.extensions, **unnamed}}), found)


class Refitting:
    """The settings of extensions that have a method `reconfigure`. They are put in force first: one may refuse."""

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
    home: Home, config: Config, flow: Flow, told: tuple[Operations, Clock], found: Iterable[Found]
) -> Reloading:
    """What reads the settings of an instance again: its rules and its character follow them."""
    adjusted = partial(with_sections, found=tuple(found))
    return Reloading(home, adjusted(config), (Rules(flow), Character(home, flow)), told, adjusted)
