"""The database that holds both stores of a home: how they are opened, read, checked and moved."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from contextlib import closing as closing_of
from dataclasses import field
from pathlib import Path

from keepsaid.adapters.postgres.connection import PostgresPlace, connect, in_our_words
from keepsaid.adapters.postgres.moving import MovableSchema
from keepsaid.adapters.postgres.peers import PostgresPeers
from keepsaid.adapters.postgres.schema import check_may_make, find_numbers
from keepsaid.adapters.postgres.stores import are_there, check_stores, lacks_tombstones, open_stores, read_stores
from keepsaid.adapters.sql.operations.chronicle import SqlChronicles
from keepsaid.adapters.sql.operations.store import SqlOperations
from keepsaid.adapters.sql.search.memories import SearchedMemories
from keepsaid.adapters.sql.tombstones import TombstoneKeyring, open_keyring
from keepsaid.ports import runtime
from keepsaid.values import frozen


@frozen
class PostgresStores:
    """Both stores in a database; the key of the tombstones is beside `buffer`, where a file would hold the buffer.

    `relay` makes what carries wake-ups between the processes that share them; it raises ConfigError.
    """

    place: PostgresPlace
    buffer: Path
    relay: Callable[[], runtime.Relay] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return str(self.place)

    @property
    def files(self) -> tuple[Path, ...]:
        return ()

    @property
    def keyring(self) -> TombstoneKeyring:
        """The key and the tombstones of this home."""
        return open_keyring(self.buffer)

    def exists(self) -> bool:
        return are_there(self.place)

    def check(self) -> None:
        check_stores(self.place, self.keyring)

    def describe(self) -> str:
        with in_our_words(self.place), closing_of(connect(self.place)) as connection:
            version = connection.info.parameter_status("server_version")
        numbers = ", ".join(f"{part} schema {number}" for part, number in find_numbers(self.place).items() if number)
        if not numbers:
            check_may_make(self.place)
        told = f"{self.place} answers: PostgreSQL {version}, {numbers or 'no stores yet'}"
        if self.relay is None:
            return told
        with closing_of(self.relay()) as relay:
            return f"{told}; {relay.describe()}"

    @property
    def movable(self) -> MovableSchema:
        return MovableSchema(self.place, self.keyring)

    def lacks_tombstones(self) -> bool:
        return lacks_tombstones(self.place, self.keyring)

    async def open(
        self, ids: runtime.Ids, closing: AsyncExitStack, redactor: runtime.Redactor | None = None
    ) -> tuple[SqlOperations, SearchedMemories]:
        return await open_stores(self.place, ids, self.keyring, closing, redactor)

    async def meet(self, closing: AsyncExitStack) -> PostgresPeers:
        peers = await asyncio.to_thread(PostgresPeers, self.place, self.relay() if self.relay is not None else None)
        closing.push_async_callback(peers.close)
        return peers

    async def read(self, ids: runtime.Ids, closing: AsyncExitStack) -> tuple[SqlChronicles, SearchedMemories]:
        return await read_stores(self.place, ids, self.keyring, closing)
