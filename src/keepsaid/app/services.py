"""The services of an instance, joined to its stores; forgetting reaches the copies that nobody reads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from keepsaid.adapters.sqlite.stores import carry
from keepsaid.adapters.system.files import HistoryFile
from keepsaid.app.stores import archive_of
from keepsaid.config import Config, Home
from keepsaid.config.home import append_line
from keepsaid.engine.forgetter import Forgetter
from keepsaid.ports.memory_store import Recall
from keepsaid.ports.runtime import Clock, Ids, Redactor, StopToken, Wakeups
from keepsaid.ports.store import MemoryStore, Store
from keepsaid.services.forgetting import ForgettingService
from keepsaid.services.inbox import AskService, InboxService, ProgressHub, Receive
from keepsaid.services.memories import MemoryService, SearchService
from keepsaid.services.people import PeopleService
from keepsaid.values import frozen

_BACKUPS = "backups.jsonl"


def forgetter_of(
    operations: Store, memories: MemoryStore, time: tuple[Clock, Ids], halt: StopToken, home: Home
) -> Forgetter:
    """What forgets in these stores and in the lines that were typed in the chat, until the halt is asked."""
    return Forgetter((operations, memories), *time, halt, HistoryFile(home.typed_file))


def note_backup(home: Home, made: Path) -> None:
    """Remember where a backup was put, so that a receipt can say what it still holds."""
    file = home.state / _BACKUPS
    home.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    append_line(file, json.dumps({"path": str(made)}))


def copy_tombstones(home: Home, config: Config, restored: Path) -> int:
    """Copy the tombstones of this home into a restored buffer; returns how many there are."""
    return carry(home.store(config.buffer.path), restored)


def backups_of(home: Home, config: Config) -> Sequence[str]:
    """Copies of the stores that are still there: backups that were made from this home, and copies of migrations."""
    return sorted({*_noted(home), *_schema_backups(home, config)})


def _noted(home: Home) -> Iterator[str]:
    file = home.state / _BACKUPS
    for line in file.read_text("utf-8").splitlines() if file.exists() else ():
        path = Path(str(json.loads(line)["path"]))
        if path.exists():
            yield str(path)


def _schema_backups(home: Home, config: Config) -> Iterator[str]:
    for store in {home.store(config.buffer.path), home.store(config.memory.path)}:
        yield from (str(copy) for copy in store.parent.glob(f"{store.name}.schema-*.bak"))


@frozen
class Services:
    """What people and programs may ask of an instance beside talking to it."""

    asking: AskService
    inbox: InboxService
    memories: MemoryService
    search: SearchService
    people: PeopleService
    forgetting: ForgettingService


@frozen
class RuntimeHooks:
    """The runtime that services ask: whether it is up, what wakes the one that forgets, the door, and who waits."""

    is_running: Callable[[], bool]
    forgetting: asyncio.Event
    receive: Receive
    hub: ProgressHub


def services_of(
    place: tuple[Home, Config],
    stores: tuple[Store, MemoryStore],
    system: tuple[Clock, Wakeups, Redactor],
    work: tuple[Forgetter, Recall],
    runtime: RuntimeHooks,
) -> Services:
    """The services over these stores."""
    (home, config), (operations, memories), (clock, hints, redactor) = place, stores, system
    inbox, (forgetter, recall) = InboxService(operations, clock, hints), work
    forgets = runtime.is_running, runtime.forgetting
    return Services(
        AskService(operations, runtime.hub, runtime.receive, inbox),
        inbox,
        MemoryService(memories, operations, clock, redactor),
        SearchService(memories, recall, archive_of(memories, clock)),
        PeopleService(memories, config, clock),
        ForgettingService(forgetter, memories, partial(backups_of, home, config), forgets),
    )
