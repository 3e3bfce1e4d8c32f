"""Bundles for tests: a store of its own, a bundle as a file, and what an import makes of one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.domain.bundle import BundleEntry, ImportVerdict, Record
from keepsaid.domain.bundle_lines import line_of
from keepsaid.interfaces.transfer_shapes import import_shape
from keepsaid.ports.memory_store import BundleContents
from keepsaid.services.bundles import FORMAT, KIND, write_lines
from keepsaid.services.importing import ImportRequest, LocalMemory, import_memories, learn, preview_import
from keepsaid_testkit.contracts.memories import AUDIT

NOW = 1_000


class Numbers:
    """Ids that count up."""

    def __init__(self) -> None:
        self._numbers = count(1 << 60)

    def next(self) -> int:
        return next(self._numbers)

    def follow(self, number: int) -> None:
        raise AssertionError("nothing was made before")


class Place(LocalMemory):
    """A store as an import meets it, without a runtime around it."""

    def __init__(self, store: SqliteMemories) -> None:
        self._memories = store
        self.writes: list[int] = []
        self.broken_after: int | None = None

    async def take(self, records: Sequence[Record], contested: Sequence[bytes]) -> Sequence[ImportVerdict]:
        """Take over records; after so many batches it is broken off."""
        if self.broken_after == len(self.writes):
            raise InterruptedError
        self.writes.append(len(records))
        return await self._memories.bundles.take(records, contested, NOW)

    async def learn(self, records: Sequence[BundleEntry]) -> Sequence[ImportVerdict]:
        """Learn memories at a time that tests know."""
        return await learn(self._memories, [one.memory.new for one in records], NOW)


@asynccontextmanager
async def home(folder: Path, name: str) -> AsyncIterator[SqliteMemories]:
    """A store of memories in a folder of its own."""
    place = folder / name
    place.mkdir(exist_ok=True)
    store = await open_memories(place / "memory.db", Numbers())
    try:
        yield store
    finally:
        await store.close()


async def bundle(store: SqliteMemories, file: Path) -> list[dict[str, Any]]:
    """Export a store; the records of the bundle."""

    def write(told: BundleContents) -> list[dict[str, Any]]:
        with file.open("wb") as out:
            write_lines(out, told, {"made_at": "then", "persons": []})
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()[1:-1]]

    return await store.bundles.export([AUDIT], write)


async def records_of(store: SqliteMemories) -> list[dict[str, Any]]:
    """What a bundle of the store would hold."""

    def read(told: BundleContents) -> list[dict[str, Any]]:
        return [line_of(one) for one in told.records]

    return await store.bundles.export([AUDIT], read)


def written(file: Path, records: Sequence[object], **header: object) -> Path:
    """A bundle of these records, whole by its checksum; text stands in its line as it is."""
    first = {"type": KIND, "format": FORMAT, "forgotten_key": "", **header}
    lines = [line if isinstance(line, str) else json.dumps(line) for line in (first, *records)]
    body = "".join(f"{line}\n" for line in lines).encode()
    end = {"type": "end", "records": len(records), "sha256": hashlib.sha256(body).hexdigest()}
    file.write_bytes(body + json.dumps(end).encode() + b"\n")
    return file


async def take_in(store: SqliteMemories | Place, file: Path, *, dry_run: bool = False, **how: Any) -> dict[str, Any]:
    """Import a file; what became of it."""
    place = store if isinstance(store, Place) else Place(store)
    work, asked = preview_import if dry_run else import_memories, ImportRequest(file, **how)
    return import_shape(await work(asked, place, PatternRedactor(), NOW), asked, dry_run=dry_run)


def outcomes(told: dict[str, Any], what: str = "memories") -> tuple[int, ...]:
    """How many were new, the same, in conflict and rejected."""
    return tuple(told["counts"][what].values())


def reasons(told: dict[str, Any]) -> dict[int, str]:
    """Why lines were not taken over, by their number."""
    return {one["line"]: one["why"] for one in told["told"]}
