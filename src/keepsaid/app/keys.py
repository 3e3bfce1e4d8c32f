"""Keys of a running instance: they follow the config file without a restart and without a command.

The file is looked at when a call carries a token, at most once a second and in a thread: a key that is removed from it
is refused from the next look on, and one that is added is let in. Keys of processes on other machines follow the file
of each. A file that cannot be used changes nothing, and is named once in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from keepsaid.app.serving import Prepared
from keepsaid.config import Config, Home, load
from keepsaid.config.keys import KeyConfig
from keepsaid.domain.principal import Principal
from keepsaid.errors import ConfigError
from keepsaid.ports.runtime import Clock
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.config")

LOOK_MS = 1_000
"""The least time between two looks at the file, milliseconds."""


class FileMark(NamedTuple):
    """By what a changed file is recognised: the time of its change (nanoseconds), its size (bytes), its inode."""

    changed_ns: int
    size: int
    inode: int


class KeyRing:
    """The keys that are let in now: `by_name` has their settings, `by_token` who calls. Both are live views."""

    def __init__(self, home: Home, config: Config, clock: Clock, learn: Callable[[str], None]) -> None:
        self._file, self._clock, self._learn = home.config_file, clock, learn
        self._named, self._tokens = dict(config.keys), config.principals()
        self.by_name: Mapping[str, KeyConfig] = self._named
        self.by_token: Mapping[str, Principal] = self._tokens
        self.version = 0
        """How often the keys were replaced."""
        self._channels = frozenset(config.channels)
        self._seen, self._looks_at = _look(self._file), 0.0
        self._looking: asyncio.Task[None] | None = None

    @property
    def is_due(self) -> bool:
        """Whether the file is to be looked at, or is being looked at."""
        return self._looking is not None or self._clock.monotonic_ms() >= self._looks_at

    async def look(self) -> None:
        """Follow the file, if it is another than before and a second has passed. Raises nothing."""
        if not self.is_due:
            return
        if self._looking is None:
            self._looks_at = self._clock.monotonic_ms() + LOOK_MS
            self._looking = asyncio.create_task(self._follow(), name="keys")
        # a client that leaves does not end the look, for which others may wait
        await asyncio.shield(self._looking)

    def put(self, keys: Mapping[str, KeyConfig]) -> None:
        """Let these keys in, and no others; one of a channel that does not run yet waits for the restart."""
        ready = {name: one for name, one in keys.items() if one.channel in self._channels}
        tokens = {one.token.get_secret_value(): one.principal(name) for name, one in ready.items()}
        for token in tokens.keys() - self._tokens.keys():
            self._learn(token)
        added, removed = sorted(ready.keys() - self._named.keys()), sorted(self._named.keys() - ready.keys())
        changed = sorted(name for name, one in ready.items() if name in self._named and self._named[name] != one)
        # all change in one step of the event loop
        self.version += 1
        self._named.clear()
        self._named.update(ready)
        self._tokens.clear()
        self._tokens.update(tokens)
        for what, names in (("added", added), ("removed", removed), ("changed", changed)):
            if names:
                _log.info("keys %s: %s", what, ", ".join(names))
        if waiting := sorted(keys.keys() - ready.keys()):
            _log.warning("keys of a channel that needs a restart: %s", ", ".join(waiting))

    async def _follow(self) -> None:
        try:
            if (seen := await asyncio.to_thread(_look, self._file)) == self._seen:
                return
            self._seen = seen
            if seen is None:
                raise ConfigError(f"{self._file} is not there any more")
            if not seen.size:
                raise ConfigError(f"{self._file} is empty")
            config, _ = await asyncio.to_thread(load, self._file)
            self.put(config.keys)
        except ConfigError as error:
            _log.error("the keys from before stay in force: %s", error.what, extra={"code": error.code})
        finally:
            self._looking = None


def _look(file: Path) -> FileMark | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return FileMark(found.st_mtime_ns, found.st_size, found.st_ino)


@frozen
class ReloadableKeys:
    """Keys, as a reload of all settings puts them in force."""

    ring: KeyRing
    keys: tuple[str, ...] = ("keys",)

    async def prepare(self, config: Config) -> Prepared:
        """Take the keys of settings that were checked."""

        async def apply() -> None:
            self.ring.put(config.keys)

        return Prepared(apply)
