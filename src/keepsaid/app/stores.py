"""The stores of a home: where they are, read-only access beside a runtime, checks and backups."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from keepsaid.adapters.sql.operations.chronicle import SqlChronicles
from keepsaid.adapters.sqlite.hermes import read_hermes_sessions
from keepsaid.adapters.sqlite.integrity import Checkup, IntegrityReport, check_integrity, copy, examine, library_version
from keepsaid.adapters.sqlite.stores import accept_loss
from keepsaid.adapters.system.files import HistoryFile
from keepsaid.adapters.system.lock import FileLock, holder
from keepsaid.adapters.system.machine import DiskSpace, SystemClock, SystemIds
from keepsaid.app import embedders
from keepsaid.app.store_place import StorePlace, place_of
from keepsaid.config import Config, Home
from keepsaid.config.home import write_file
from keepsaid.domain.line import Line, line_of
from keepsaid.errors import HomeError, KeepsaidError, LogLost, StoreError, StoreUnpaired
from keepsaid.memory.fact_questions import FactLeg
from keepsaid.memory.indexing import Embedding
from keepsaid.memory.recall.ranking import FACT, TEXT, VECTOR, GraphLeg, Leg, coverage, spread
from keepsaid.memory.recall.recollection import NO_EMBEDDER, Recollection
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import MemoryStore
from keepsaid.services import status
from keepsaid.services.imports.files import ReadSessions
from keepsaid.services.memories import SearchService
from keepsaid.values import frozen

T = TypeVar("T")


def stores_of(home: Home, config: Config) -> tuple[Path, ...]:
    """The database files, the buffer first; both may be one file. There are none where a server holds the stores."""
    return place_of(home, config).files


def folders_of(home: Home, config: Config) -> Sequence[Path]:
    """The directories that hold the stores, or what a home keeps beside them."""
    return [store.parent for store in stores_of(home, config)] or [home.data]


def in_use(home: Home, config: Config) -> Sequence[Path]:
    """Files and directories that must stay where they are while a runtime works."""
    return [home.run, *folders_of(home, config), *stores_of(home, config)]


def session_reader() -> ReadSessions:
    """The reader of the sessions in a database of another program."""
    return read_hermes_sessions


def system_clock() -> Clock:
    """The clock of this machine."""
    return SystemClock()


PATIENT_MS = 10_000
"""Milliseconds a search may take that a person or a model asked for."""

TEXT_WEIGHT, VECTOR_WEIGHT = 0.75, 0.25
"""What the legs of recall weigh; measured, see docs/develop/benchmarks-archive.md."""

FACT_WEIGHT = 0.75
"""What the leg of facts weighs: one that fills the slot asked for is worth as much as the best match by words."""

GRAPH_WEIGHT, GRAPH_SHARE = 0.25, 0.25
"""What the graph leg weighs, and how much of another leg's time it has: it begins when they have answered."""


@frozen
class ReadOnlyStores:
    """Both stores, for reading."""

    views: SqlChronicles
    memories: MemoryStore
    recall: Recollection
    archive: Recollection
    clock: Clock
    embedding: Embedding | None
    status: status.StatusService

    @property
    def search(self) -> SearchService:
        return SearchService(self.memories, self.recall, self.archive, self.clock)


@asynccontextmanager
async def reading(home: Home, config: Config) -> AsyncIterator[ReadOnlyStores]:
    """The stores of a home, read only, whether or not a runtime is working on them.

    If an older copy of a store was put in place, `reapply_forgetting` is called first.
    """
    async with AsyncExitStack() as closing:
        await reapply_forgetting(home, config)
        views, memories = await place_of(home, config).read(SystemIds(), closing)
        clock, embedder = SystemClock(), embedders.embedder_of(home, config, closing)
        embedding = (
            Embedding(embedder, memories, clock, embedders.former_of(home, config, closing)) if embedder else None
        )
        recall, archive = recollection(memories, clock, PATIENT_MS, embedding), archive_of(memories, clock)
        counting = status.StatusService(views, memories, clock, config.buffer, partial(host_status, home, config))
        yield ReadOnlyStores(views, memories, recall, archive, clock, embedding, counting)


async def reapply_forgetting(home: Home, config: Config) -> None:
    """Forget again what an older copy of the stores brought back, before anybody reads it.

    Raises StoreError when that is needed and another process works in this home for five seconds, or the home cannot be
    written.
    """
    place, clock, refusals = place_of(home, config), SystemClock(), 0
    until = clock.monotonic_ms() + _BUSY_MS
    while await asyncio.to_thread(place.lacks_tombstones):
        with suppress(HomeError):
            home.make()
        with try_lock_home(home, config) as is_alone:
            if is_alone:
                await _repeat_forgetting(home, place)
                return
        refusals = refusals + 1 if held_by(home) is None else 0  # once: whoever held it may just have ended
        if refusals > 1 or clock.monotonic_ms() > until:
            raise _behind(home)
        # A process that is forgetting now writes one store after the other.
        await clock.wait(asyncio.Event(), _BUSY_LOOK_MS)


async def _repeat_forgetting(home: Home, place: StorePlace) -> None:
    from keepsaid.engine.forgetter import Forgetter  # noqa: PLC0415 - only a home that was put back needs it

    async with AsyncExitStack() as closing:
        clock, ids = SystemClock(), SystemIds()
        operations, memories = await place.open(ids, closing)
        ids.follow(await operations.last_id())
        forgetter = Forgetter((operations, memories), clock, ids, typed=HistoryFile(home.typed_file))
        await forgetter.recover()
        await forgetter.work()


_BUSY_MS, _BUSY_LOOK_MS = 5_000, 50
"""How long a process that works in a home may take to write both stores, and how often that is looked at."""


def _behind(home: Home) -> StoreError:
    what = "the stores are an older copy: they hold what was forgotten since, and it cannot be forgotten again now"
    if held_by(home) is None:
        return StoreError(
            f"{what}, because {home.data} cannot be written", safe=_UNREAD, hint=f"make {home.data} writable"
        )
    return StoreError(f"{what}, because another process works in this home", safe=_UNREAD, hint=_AFTER_IT)


_UNREAD = "Nothing was read and nothing was changed."
_AFTER_IT = "wait until that process has forgotten it, and run the command again"


def archive_of(memories: MemoryStore, clock: Clock) -> Recollection:
    """Ranked recall over what was archived."""
    return Recollection([Leg("archive", memories.archive.text, 1.0, PATIENT_MS)], memories.archive, clock, (), None)


def recollection(
    memories: MemoryStore, clock: Clock, limit_ms: float, embedding: Embedding | None = None
) -> Recollection:
    """Ranked recall over the legs there are; `limit_ms` is the time each may take."""
    legs = [Leg(TEXT, memories.text, TEXT_WEIGHT, limit_ms, coverage)]
    if embedding is not None:
        legs.append(Leg(VECTOR, embedding.search, VECTOR_WEIGHT, limit_ms, spread))
    legs.append(Leg(FACT, FactLeg(memories.library).search, FACT_WEIGHT, limit_ms))
    graph = GraphLeg(memories.graph.walk, GRAPH_WEIGHT, limit_ms * GRAPH_SHARE)
    return Recollection(legs, memories, clock, () if embedding else (NO_EMBEDDER,), graph)


def store_version() -> str:
    """The version of SQLite in use; raises StoreError for one that can corrupt a database."""
    return library_version()


def held_by(home: Home) -> int | None:
    """The process that works in a home, 0 when it is not known which; None when nobody does."""
    return holder(home.lock_file)


@contextmanager
def try_lock_home(home: Home, config: Config) -> Iterator[bool]:
    """Hold the home's lock if no other process holds it and the home can be written; yields whether it is held."""
    lock = FileLock(home.lock_file, stores_of(home, config))
    try:
        lock.acquire()
    except HomeError:  # HomeBusy is one
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def free_space(home: Home, config: Config) -> int:
    """Bytes that are free where the stores are, or will be."""
    return DiskSpace(*folders_of(home, config)).free_bytes()


def host_status(home: Home, config: Config) -> status.HostStatus:
    """Read what stands beside the stores of a home, from its disk; no server is asked."""
    quarantined, noted = _fared(home, config)
    server = server_name(home, config)
    lines = [line for line in read_lines(home) if line.channel in config.listening] if held_by(home) else []
    if not config.tools.mcp:
        beside = status.HostStatus(free_space(home, config), {}, quarantined, noted=noted, server=server)
        return replace(beside, lines=lines)
    from keepsaid.app import channels  # noqa: PLC0415 - the engine, which a home without MCP servers is spared

    waiting = {server: len(tools) for server, tools in channels.waiting_in(home, config).items()}
    servers = channels.troubled_servers(home, config)
    return status.HostStatus(free_space(home, config), waiting, quarantined, servers, noted, server, lines)


LINES_FILE = "lines.json"
"""In the state directory of a home, how the lines of its channels are."""


def write_lines(home: Home, lines: Sequence[Line]) -> None:
    """Write down how the lines of channels are. Raises OSError."""
    write_file(home.state / LINES_FILE, json.dumps([line.as_json() for line in lines]))


def read_lines(home: Home) -> Sequence[Line]:
    """How the lines of channels were when a runtime last wrote that down; none where it cannot be read."""
    try:
        told = json.loads((home.state / LINES_FILE).read_text("utf-8"))
    except (OSError, ValueError):
        return ()
    return [line for one in (told if isinstance(told, list) else ()) if (line := line_of(one)) is not None]


def _fared(home: Home, config: Config) -> tuple[dict[str, str], dict[str, str]]:
    """By extension, why it was quarantined when a runtime last wrote that down, and what does not work of the others.

    Those that were disabled since are left out.
    """
    if not home.extensions_file.exists():
        return {}, {}
    from keepsaid.extensions import loaded  # noqa: PLC0415 - 50 ms that a home without extensions is spared

    fared, named = loaded.read(home.extensions_file), config.extensions
    wanted = {id_: one for id_, one in fared.items() if id_ not in named or named[id_].enabled}
    out = {id_: str(one.get("reason")) for id_, one in wanted.items() if one.get("state") == loaded.State.QUARANTINED}
    return out, {id_: "; ".join(one["notes"]) for id_, one in wanted.items() if one.get("notes")}


def _files(home: Home, config: Config) -> list[tuple[Path, tuple[str, ...]]]:
    """The database files, buffer first, and the parts of the schema each holds."""
    if not (files := stores_of(home, config)):
        return []
    buffer, memory = files
    if buffer.resolve() == memory.resolve():
        return [(buffer, ("buffer", "memory"))]
    return [(buffer, ("buffer",)), (memory, ("memory",))]


def _needed_files(home: Home, config: Config) -> tuple[Path, ...]:
    """The database files, for what is done with files alone. Raises StoreError where a server holds the stores."""
    if not (files := stores_of(home, config)):
        what = "a database server holds the stores of this home, and keeps them by its own means"
        raise StoreError(what, safe="Nothing was changed.", hint="back up its schema with pg_dump")
    return files


def pair_trouble(home: Home, config: Config) -> StoreError | None:
    """Why a start would refuse the two stores; None when they are a pair. A file that cannot be opened is none."""
    try:
        place_of(home, config).check()
    except (StoreUnpaired, LogLost) as trouble:
        return trouble
    except StoreError:
        return None
    return None


def server_line(home: Home, config: Config) -> str:
    """What the database server of a home says, "" where files hold the stores. Raises StoreError if it is away."""
    return place_of(home, config).describe()


def server_name(home: Home, config: Config) -> str:
    """The database server of a home, without login; "" where files hold the stores. It is not asked."""
    place = place_of(home, config)
    return "" if place.files else str(place)


def accept_stores(home: Home, config: Config) -> None:
    """Accept the stores as they are, whatever was lost. Needs the home's lock."""
    buffer, memory = _needed_files(home, config)
    accept_loss(buffer, memory)


async def integrity(home: Home, config: Config) -> list[Checkup | KeepsaidError]:
    """Check every page of every database that is there; a file that cannot be opened is its error."""
    return await _for_each_file(home, config, examine)


async def deep_looks(home: Home, config: Config, *, mend: bool) -> list[IntegrityReport | KeepsaidError]:
    """Check every row of every database against its hash and its neighbours; mending needs the home's lock."""
    return await _for_each_file(home, config, partial(check_integrity, mend=mend))


async def _for_each_file(
    home: Home, config: Config, check: Callable[[Path, Sequence[str]], T]
) -> list[T | KeepsaidError]:
    found: list[T | KeepsaidError] = []
    for path, parts in _files(home, config):
        if not path.exists():
            continue
        try:
            found.append(await asyncio.to_thread(check, path, parts))
        except KeepsaidError as error:
            found.append(error)
    return found


async def examined(path: Path, parts: Sequence[str]) -> Checkup:
    """One database file, checked; raises a StoreError when it is none of ours or cannot be opened."""
    return await asyncio.to_thread(examine, path, parts)


def extra_backup_files(home: Home) -> list[Path]:
    """Return the files of the data directory that a backup contains in addition to the databases."""
    from keepsaid.adapters.tools.mcp import ACCEPTED_FILE  # noqa: PLC0415 - a backup alone needs them
    from keepsaid.app import channels  # noqa: PLC0415

    return [file for file in (home.data / channels.FENCE_FILE, home.data / ACCEPTED_FILE) if file.exists()]


async def copy_stores(home: Home, config: Config, folder: Path) -> list[Checkup]:
    """Verified copies of the databases in `folder`, the buffer first; memory may be ahead of it, never behind."""
    copied = []
    _needed_files(home, config)
    await asyncio.to_thread(place_of(home, config).check)
    await reapply_forgetting(home, config)
    for path, parts in _files(home, config):
        if not path.exists():
            raise StoreError(f"there is no {path} yet", safe="Nothing was stored here so far.", hint="keepsaid chat")
        copied.append(await asyncio.to_thread(copy, path, folder / f"{parts[0]}.db", parts))
    return copied
