"""The session: the options every command shares, and what follows from them."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from keepsaid.errors import HomeError
from keepsaid.interfaces.cli.escapes import visible

if TYPE_CHECKING:
    from keepsaid.app.stores import ReadOnlyStores
    from keepsaid.config import Config, Home


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CliSession:
    """How one command was called."""

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    colour: bool = True
    root: Path | None = None

    @property
    def home(self) -> Home:
        """The home; raises HomeError when a file stands where a directory belongs."""
        from keepsaid.config import Home  # noqa: PLC0415 - the tree of settings costs 0.1 s, which `--help` saves

        home = Home.at(self.root)
        standing = next((place for place in (home.data, *home.data.parents) if place.exists()), None)
        if standing is not None and not standing.is_dir():
            raise HomeError(f"{standing} is a file; a home is a directory", hint="keepsaid --home DIR status")
        if not is_text(home.data):
            raise HomeError("the path of the home is not UTF-8", hint="keepsaid --home DIR status")
        return home

    def config(self) -> Config:
        """The settings as they stand; keys nobody reads are named on stderr. Raises ConfigError."""
        return _settings(self)

    def stored(self) -> bool:
        """Whether anything was ever stored in this home."""
        home, config = self.home, self.config()
        return any(home.store(path).exists() for path in (config.buffer.path, config.memory.path))

    def read(self, work: Callable[[ReadOnlyStores], Awaitable[T]]) -> T | None:
        """What `work` reads of both stores, beside a runtime that may be writing them; None if nothing was stored."""
        import asyncio  # noqa: PLC0415

        from keepsaid.app.stores import reading  # noqa: PLC0415

        home, config = self.home, self.config()
        if not self.stored():
            return None

        async def opened() -> T:
            async with reading(home, config) as stores:
                return await work(stores)

        return asyncio.run(opened())


def is_text(path: Path) -> bool:
    """Whether a path is UTF-8; SQLite opens no other."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def _settings(current: CliSession) -> Config:
    from keepsaid.config import load  # noqa: PLC0415

    config, warnings = load(current.home.config_file)
    for warning in warnings:
        say(f"warning: {warning}")
    return config


_current: ContextVar[CliSession] = ContextVar("session", default=CliSession())  # noqa: B039 - frozen


def session() -> CliSession:
    """The session of the command that runs."""
    return _current.get()


def begin(current: CliSession) -> None:
    """Let `current` be the session from here on."""
    _current.set(current)


def say(text: str) -> None:
    """Talk to the person, on stderr, unless --quiet."""
    if not session().quiet:
        print(visible(text), file=sys.stderr, flush=True)
