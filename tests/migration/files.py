"""Database files of this program, of a newer one and of others, and what is in them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
from tests.waits import HANG_S

import keepsaid
from keepsaid.adapters.sql.scripts import migrations
from keepsaid.adapters.sqlite.connection import APPLICATION_ID, SqliteSession, open_writer
from keepsaid.adapters.sqlite.integrity import SCHEMA, migrate
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.domain.commits import Receive
from keepsaid.testing.builders import AT_ONCE, arrival, said

PARTS = ("buffer", "memory")
SOURCE = Path(keepsaid.__file__).parent
FORMER = Path(__file__).parent / "former"
NEXT = {part: migrations(part)[-1][0] + 1 for part in PARTS}

GROWN = "CREATE TABLE later_PART (id INTEGER PRIMARY KEY) STRICT;\nCREATE INDEX later_PART_id ON later_PART (id);\n"
"""What the migration of a newer program does."""


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a statement reads."""
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def schema(path: Path) -> set[tuple[Any, ...]]:
    """Everything the file declares."""
    return set(rows(path, "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'"))


def versions(path: Path) -> dict[str, int]:
    """The number of the last migration of each part."""
    return dict(rows(path, "SELECT part, version FROM keepsaid_schema"))


def bytes_of(path: Path) -> dict[str, str]:
    """A hash of the file and of whatever is beside it, but for the index of the log, which every reader rebuilds.

    An empty file beside it holds nothing that could have changed.
    """
    files = {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*") if file.is_file()}
    return {
        name: hashlib.sha256(content).hexdigest()
        for name, content in files.items()
        if content and not name.endswith("-shm")
    }


def first_schema(db: SqliteSession, part: str) -> None:
    """Make a part of the first schema in an open file, as the release that knew no other."""
    with db.transaction():
        db.pragma("application_id", APPLICATION_ID)
        db.execute(SCHEMA["create"])
        db.execute((FORMER / f"{part}_0001.sql").read_text("utf-8")).fetchall()
        db.execute(SCHEMA["set_version"], (part, 1))


def made(path: Path, parts: Sequence[str] = PARTS) -> Path:
    """A file of this program."""
    db = open_writer(path)
    for part in parts:
        migrate(db, path, part)
    db.close()
    return path


async def with_a_message(path: Path, number: int = 1) -> Path:
    """A buffer that this program has put a message into."""
    operations = await open_operations(path)
    await operations.apply(Receive(arrival(number, said("kept")), AT_ONCE))
    await operations.close()
    return path


class Newer:
    """This program with one more migration for each part; without a script, this program as it is."""

    def __init__(self, root: Path, script: str | None = GROWN) -> None:
        self._root = root
        left_out = shutil.ignore_patterns("__pycache__", "interfaces", "testing", "models", "channels")
        shutil.copytree(SOURCE, root / "keepsaid", ignore=left_out)
        if script is None:
            return
        for part, number in NEXT.items():
            file = root / "keepsaid" / "adapters" / "sql" / "migrations" / f"{part}_{number:04}.sql"
            file.write_text(script.replace("PART", part))

    def run(self, path: Path, *parts: str, around: str = "pass", after: str = "db.close()") -> Any:
        """Open and migrate a file; `around` runs before the migration, `after` after it. Returns what went wrong."""
        program = (
            "import json, os, sys\n"
            "from pathlib import Path\n"
            "from keepsaid.adapters.sqlite.connection import open_writer\n"
            "from keepsaid.adapters.sqlite.integrity import migrate\n"
            "from keepsaid.errors import StoreError\n"
            "from keepsaid.ports import runtime\n"
            "path = Path(sys.argv[1])\n"
            "db = open_writer(path)\n"
            f"{around}\n"
            "try:\n"
            "    for part in sys.argv[2:]:\n"
            "        migrate(db, path, part)\n"
            "except StoreError as error:\n"
            "    print(json.dumps(error.as_json()))\n"
            f"{after}\n"
        )
        command = [sys.executable, "-c", program, str(path), *parts]
        environment = {**os.environ, "PYTHONPATH": str(self._root)}
        done = subprocess.run(command, env=environment, capture_output=True, timeout=HANG_S, check=False)
        assert done.stderr == b"", done.stderr.decode()
        return json.loads(done.stdout) if done.stdout else None
