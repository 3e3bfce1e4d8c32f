"""Where the stores of a home are: two files of SQLite, or a database of PostgreSQL."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Protocol

from keepsaid.adapters.sql.moving import MovableStores
from keepsaid.adapters.sql.operations.chronicle import SqlChronicles
from keepsaid.adapters.sql.operations.store import SqlOperations
from keepsaid.adapters.sql.search.memories import SearchedMemories
from keepsaid.adapters.sqlite.files import SqliteStores
from keepsaid.config import Config, Home
from keepsaid.errors import ConfigError, installation
from keepsaid.ports.runtime import Ids, Peers, Redactor, Relay


class StorePlace(Protocol):
    """Where both stores are, and how they are opened; its text names it, without login.

    Every method raises a StoreError that names the place.
    """

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold the stores, the buffer first; none where a server holds them."""

    def exists(self) -> bool:
        """Whether anything was ever stored there."""

    def check(self) -> None:
        """Raise when the stores are not what the last start left."""

    def describe(self) -> str:
        """What a server says of itself and of the stores in it; nothing of files, which are checked page by page."""

    @property
    def movable(self) -> MovableStores:
        """The rows of both stores, to be moved to another place or from it."""

    def lacks_tombstones(self) -> bool:
        """Whether an older copy was put in place, so that what was forgotten since is there again."""

    async def meet(self, closing: AsyncExitStack) -> Peers | None:
        """Meet the processes that share the stores, until `closing` leaves them; None where nobody may."""

    async def open(
        self, ids: Ids, closing: AsyncExitStack, redactor: Redactor | None = None
    ) -> tuple[SqlOperations, SearchedMemories]:
        """Open or create both stores; `closing` closes them. Memory holds no secret of `redactor`."""

    async def read(self, ids: Ids, closing: AsyncExitStack) -> tuple[SqlChronicles, SearchedMemories]:
        """Open both stores for reading."""


def place_of(home: Home, config: Config) -> StorePlace:
    """Where the settings say that the stores of a home are; raises ConfigError if its driver is not installed."""
    buffer = home.store(config.buffer.path)
    if (url := config.store.url) is None:
        return SqliteStores(buffer, home.store(config.memory.path))
    try:
        from keepsaid.adapters.postgres.connection import PostgresPlace  # noqa: PLC0415 - loads the driver
        from keepsaid.adapters.postgres.database import PostgresStores  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"the driver for PostgreSQL is not installed ({error})", hint=installation("postgres")
        ) from error
    relay = config.store.redis
    made = partial(_relay, relay.get_secret_value()) if relay is not None else None
    return PostgresStores(PostgresPlace(url.get_secret_value()), buffer, made)


def _relay(url: str) -> Relay:
    """Redis carries wake-ups; raises ConfigError if its driver is not installed."""
    try:
        from keepsaid.adapters.redis.relay import RedisRelay  # noqa: PLC0415 - loads the driver
    except ImportError as error:
        raise ConfigError(f"the driver for Redis is not installed ({error})", hint=installation("redis")) from error
    return RedisRelay(url)
