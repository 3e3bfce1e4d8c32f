"""The services of an instance, joined to its stores; forgetting reaches the copies that nobody reads."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from keepsaid.adapters.sqlite.stores import carry
from keepsaid.adapters.system.files import HistoryFile
from keepsaid.app.stores import stores_of
from keepsaid.config import Config, Home
from keepsaid.config.home import append_line
from keepsaid.engine.forgetter import Forgetter
from keepsaid.ports.runtime import Clock, Ids, StopToken
from keepsaid.ports.store import MemoryStore, Store
from keepsaid.services.forgetting import ForgettingService
from keepsaid.services.inbox import AskService, InboxService
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
    noted = home.state / _BACKUPS
    lines = noted.read_text("utf-8").splitlines() if noted.exists() else ()
    found = {path for line in lines if (path := Path(str(json.loads(line)["path"]))).exists()}
    for store in stores_of(home, config):
        found.update(store.parent.glob(f"{store.name}.schema-*.bak"))
    return sorted(map(str, found))


@frozen
class Services:
    """What people and programs may ask of an instance beside talking to it."""

    asking: AskService
    inbox: InboxService
    memories: MemoryService
    search: SearchService
    people: PeopleService
    forgetting: ForgettingService
