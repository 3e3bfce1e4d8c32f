"""Backups of a home: where they are, which of them may still hold what was forgotten, and their tombstones."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from keepsaid.adapters.sqlite.stores import carry
from keepsaid.config import Config, Home
from keepsaid.config.home import append_line
from keepsaid.errors import HomeError

_BACKUPS = "backups.jsonl"
_MS_NS = 1_000_000


def note_backup(home: Home, made: Path, at: int) -> None:
    """Store where a backup is, and when it was made or rewritten (milliseconds UTC). Raises HomeError."""
    file = home.state / _BACKUPS
    try:
        home.state.mkdir(mode=0o700, parents=True, exist_ok=True)
        append_line(file, json.dumps({"path": str(made), "at": at}))
    except OSError as error:
        what = f"no backup was made, because its place cannot be written to {file} ({error.strerror})"
        hint = f"make {home.state} writable, or free some space"
        raise HomeError(what, safe="Nothing was changed.", hint=hint) from error


def backups_of(home: Home, config: Config, before: int) -> Sequence[str]:
    """Copies of the stores that were begun by a time (milliseconds UTC) and are still there: they hold what went since.

    They are backups and exports that were made from this home, copies that migrations made, and files whose rows were
    moved elsewhere.
    """
    return sorted(str(path) for path, at in _copies(home, config) if at <= before and path.exists())


def is_bare_copy(path: Path) -> bool:
    """Whether it is the file of a store, which a migration copied, or which was moved elsewhere."""
    return path.suffix == ".bak" and (".schema-" in path.name or ".moved-" in path.name)


def _copies(home: Home, config: Config) -> Iterator[tuple[Path, int]]:
    noted = home.state / _BACKUPS
    lines = noted.read_text("utf-8").splitlines() if noted.exists() else ()
    made = (json.loads(line) for line in lines)
    yield from {Path(str(one["path"])): int(one.get("at", 0)) for one in made}.items()
    for store in {home.store(config.buffer.path), home.store(config.memory.path)}:
        for copy in filter(is_bare_copy, store.parent.glob(f"{store.name}.*.bak")):
            yield copy, copy.stat().st_mtime_ns // _MS_NS


def copy_tombstones(home: Home, config: Config, restored: Path) -> int:
    """Copy the tombstones of this home to a restored buffer and beside it; returns how many there are."""
    return carry(home.store(config.buffer.path), restored)
