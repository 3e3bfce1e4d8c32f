"""A process that writes until it is stopped: `STORE LEDGER MODE FIRST`, one line for each acknowledged message."""

from __future__ import annotations

import asyncio
import sys
from itertools import count
from pathlib import Path

from keepsaid.adapters.sql.operations.queries import buffer_commits
from keepsaid.adapters.sql.query import CommitTable
from keepsaid.adapters.sql.tombstones import open_keyring
from keepsaid.adapters.sqlite.connection import SqliteSession
from keepsaid.adapters.sqlite.stores import start
from keepsaid.domain.commits import Receive
from keepsaid.domain.message import Inbound, ProviderMarks
from keepsaid.testing.builders import AT_ONCE, arrival, said

PEOPLE = 16


def message(number: int) -> Inbound:
    """What is sent under a number."""
    return said(f"message {number}", f"room {number % 9}", marks=ProviderMarks(external_id=str(number)))


async def write(store: Path, ledger: Path, mode: str, first: int) -> None:
    """Send messages from number `first` on, for ever; `mode` is that of `synchronous`."""

    def table(db: SqliteSession) -> CommitTable:
        db.pragma("synchronous", mode)
        return buffer_commits(db, open_keyring(store))

    writer = await start(store, ("buffer",), table)
    numbers = count(first)
    with await asyncio.to_thread(ledger.open, "a") as lines:

        async def talk() -> None:
            for number in numbers:
                await writer.apply(Receive(arrival(number, message(number)), AT_ONCE))
                lines.write(f"{number}\n")
                lines.flush()

        await asyncio.gather(*(talk() for _ in range(PEOPLE)))


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))
