"""The schema: whole in a new file; an older file is copied, then migrated by number; a newer one is refused."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from functools import cache
from importlib.resources import files
from pathlib import Path

from keepsaid.adapters.sql.query import load, one
from keepsaid.adapters.sqlite import progress, sealing
from keepsaid.adapters.sqlite.connection import APPLICATION_ID, SqliteSession, open_reader, translated
from keepsaid.config.home import put_in_place
from keepsaid.errors import SchemaTooNew, StoreError
from keepsaid.ports.failpoints import point
from keepsaid.text.normal import digest, without_logins

SCHEMA = load("schema")


Script = tuple[int, str]
"""The number that a file has when a script was run, and the script."""


@cache
def migrations(part: str) -> tuple[Script, ...]:
    """The migrations of a part of the schema ("buffer" or "memory") from the number before, in order."""
    return _scripts("migrations", part)


@cache
def due(part: str, found: int) -> tuple[Script, ...]:
    """What brings a file from a number to the newest; a file without the part begins with the whole schema."""
    whole = () if found else _scripts("schema", part)
    begun = whole[0][0] if whole else found
    return whole + tuple(script for script in migrations(part) if script[0] > begun)


def _scripts(folder: str, part: str) -> tuple[Script, ...]:
    found = []
    for entry in files("keepsaid.adapters.sqlite").joinpath(folder).iterdir():
        name, _, number = entry.name.removesuffix(".sql").rpartition("_")
        if name == part and entry.name.endswith(".sql"):
            found.append((int(number), entry.read_text("utf-8")))
    return tuple(sorted(found))


def version(db: SqliteSession, part: str) -> int:
    """The number of a part of the schema; 0 when the file does not have it."""
    if not db.table_exists("main", "keepsaid_schema"):
        return 0
    row = one(db, SCHEMA["version"], (part,))
    return int(row[0]) if row else 0


def check(db: SqliteSession, path: Path, part: str) -> int:
    """The version of the file; raises SchemaTooNew when a newer program wrote it."""
    found, known = version(db, part), migrations(part)[-1][0]
    if found > known:
        raise SchemaTooNew(f"{path} has {part} schema {found}; this keepsaid knows {known}")
    return found


def look(path: Path, parts: Sequence[str]) -> None:
    """Refuse a file of another program, of a newer one, or whose log is lost, before it could be changed.

    A connection that may write moves a log into its file when it is closed, and makes a file without a log one with.
    """
    if not path.exists():
        return
    if not path.stat().st_size:
        progress.check_log(None, path)
        return
    try:
        db = open_reader(path)
    except StoreError as error:
        if type(error) is not StoreError:
            raise
        return  # it needs repair first (a journal left by a crash), which reading cannot do
    with closing(db), translated(path):
        for part in parts:
            check(db, path, part)
        progress.check_log(db, path)


def migrate(db: SqliteSession, path: Path, part: str) -> None:
    """Bring a part of the schema to its newest number, each script in a transaction of its own."""
    with translated(path):
        found = check(db, path, part)
        scripts = due(part, found)
        if scripts and found:
            back_up(db, path.with_name(f"{path.name}.schema-{part}-{found}.bak"))
        _register(db)
        for number, script in scripts:
            point(f"migrate.{part}.{number}.before")
            _step(db, part, number, script)
            point(f"migrate.{part}.{number}.after")
        if found or scripts:
            sealing.keep_sealed(db)


def _register(db: SqliteSession) -> None:
    """Register the functions that migrations call."""
    db.create_scalar_function("without_logins", lambda *parts: without_logins(str(parts[0])), 1, deterministic=True)
    db.create_scalar_function("digest", lambda *parts: digest(*map(str, parts)), 2, deterministic=True)


def _step(db: SqliteSession, part: str, number: int, script: str) -> None:
    with db.transaction():
        db.pragma("application_id", APPLICATION_ID)
        db.execute(SCHEMA["create"])
        db.execute(script).fetchall()  # a statement that returns rows must not be the last that runs
        db.execute(SCHEMA["set_version"], (part, number))


def back_up(db: SqliteSession, target: Path) -> None:
    """Copy the open database to `target`, page by page, while others may read and write it."""
    point("backup.before")
    partial = target.with_name(target.name + ".partial")
    partial.unlink(missing_ok=True)
    with ExitStack() as undoing:
        undoing.callback(partial.unlink, missing_ok=True)
        copy = SqliteSession(str(partial))
        undoing.callback(copy.close, True)
        with copy.backup("main", db, "main") as backup:
            while not backup.done:
                backup.step(2_000)
        copy.pragma("journal_mode", "delete")
        copy.close()
        undoing.pop_all()
    partial.chmod(0o600)
    put_in_place(partial, target)
    point("backup.after")
