"""Graves: tombstones of one home, carried into a store that is restored from a backup of it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from keepsaid.adapters.sqlite.connection import open_reader, open_writer, translated
from keepsaid.adapters.sqlite.forgetting import SQL
from keepsaid.adapters.sqlite.query import every
from keepsaid.adapters.sqlite.tombs import KEY_NAME
from keepsaid.config.durable import write_file


def carry(present: Path, restored: Path) -> int:
    """Let a restored operational store know what the present one forgot; returns how many tombstones there are.

    Its next start forgets all of that again. Nothing is carried from a home that has no store or no key.
    """
    key = present.with_name(KEY_NAME)
    if not present.exists() or not key.exists():
        return 0
    with closing(open_reader(present)) as db, translated(present):
        hashes = every(db, SQL["tombstones"])
    write_file(restored.with_name(KEY_NAME), key.read_bytes())
    with closing(open_writer(restored)) as db, translated(restored):
        db.executemany(SQL["bury"], [(hash_, 0) for (hash_,) in hashes])
    return len(hashes)
