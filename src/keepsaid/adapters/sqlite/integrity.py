"""Database files: their schema and its migrations, whether they are whole, and copies made beside writers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import apsw

from keepsaid.adapters.sql.marks import check_move_mark
from keepsaid.adapters.sql.operations import routing, rows
from keepsaid.adapters.sql.query import every, every_replaced, load, one, only
from keepsaid.adapters.sql.scripts import check_number, due
from keepsaid.adapters.sql.search import piece_index
from keepsaid.adapters.sqlite import connection, sealing, writer
from keepsaid.config.home import put_in_place
from keepsaid.domain.states import STATES
from keepsaid.errors import ForeignStore, KeepsaidError, StoreError
from keepsaid.ports.runtime import point
from keepsaid.text.normal import digest, without_logins
from keepsaid.values import frozen

SCHEMA = load("schema")


def version(db: connection.SqliteSession, part: str) -> int:
    """The number of a part of the schema; 0 when the file does not have it."""
    if not db.table_exists("main", "keepsaid_schema"):
        return 0
    row = one(db, SCHEMA["version"], (part,))
    return int(row[0]) if row else 0


def check(db: connection.SqliteSession, path: Path, part: str) -> int:
    """The version of the file; raises SchemaTooNew when a newer program wrote it."""
    return check_number(str(path), part, version(db, part))


def look(path: Path, parts: Sequence[str]) -> None:
    """Refuse a file of another program, of a newer one, or whose log is lost, before it could be changed.

    A connection that may write moves a log into its file when it is closed, and makes a file without a log one with.
    """
    if not path.exists():
        return
    if not path.stat().st_size:
        writer.check_log(None, path)
        return
    try:
        db = connection.open_reader(path)
    except StoreError as error:
        if type(error) is not StoreError:
            raise
        return  # it needs repair first (a journal left by a crash), which reading cannot do
    with closing(db), connection.translated(path):
        found = [check(db, path, part) for part in parts]
        if any(found):
            check_move_mark(db, str(path))
        writer.check_log(db, path)


def migrate(db: connection.SqliteSession, path: Path, part: str) -> None:
    """Bring a part of the schema to its newest number, each script in a transaction of its own."""
    with connection.translated(path):
        found = check(db, path, part)
        scripts = due(part, found)
        if scripts and found:
            back_up(db, path.with_name(f"{path.name}.schema-{part}-{found}.bak"))
        db.create_scalar_function("without_logins", lambda *parts: without_logins(str(parts[0])), 1, deterministic=True)
        db.create_scalar_function("digest", lambda *parts: digest(*map(str, parts)), -1, deterministic=True)
        for number, script in scripts:
            point(f"migrate.{part}.{number}.before")
            with db.transaction():
                db.pragma("application_id", connection.APPLICATION_ID)
                db.execute(SCHEMA["create"])
                db.execute(script).fetchall()  # a statement that returns rows must not be the last that runs
                db.execute(SCHEMA["set_version"], (part, number))
            point(f"migrate.{part}.{number}.after")
        if found or scripts:
            sealing.keep_sealed(db)
        if part == "memory":
            with db.transaction():
                db.reindex()  # what a migration changed, also one after which the process died


def back_up(db: connection.SqliteSession, target: Path) -> None:
    """Copy the open database to `target`, page by page, while others may read and write it."""
    point("backup.before")
    partial = target.with_name(target.name + ".partial")
    partial.unlink(missing_ok=True)
    with ExitStack() as undoing:
        undoing.callback(partial.unlink, missing_ok=True)
        copy = connection.SqliteSession(str(partial))
        undoing.callback(copy.close, True)
        backup = copy.backup("main", db, "main")
        undoing.callback(backup.close, True)  # its own `with` would hide the error of a disk behind a SystemError
        while not backup.done:
            backup.step(2_000)
        backup.finish()
        copy.pragma("journal_mode", "delete")
        copy.close()
        undoing.pop_all()
    partial.chmod(0o600)
    put_in_place(partial, target)
    point("backup.after")


CARE = load("care")
_PROBLEMS_MAX = 5
_WHOLE = [("ok",)]


@frozen
class Checkup:
    """Check of a file: versions and counts by part, bytes of its log (`wal_bytes`), and problems."""

    path: Path
    schemas: dict[str, int]
    counts: dict[str, int]
    problems: tuple[str, ...]
    wal_bytes: int = 0


def library_version() -> str:
    """The version of SQLite in use; raises StoreError for one that can corrupt a database."""
    connection.check_library()
    return apsw.sqlite_lib_version()


def examine(path: Path, parts: Sequence[str]) -> Checkup:
    """Open a file for reading and check every page of it; raises a StoreError when it cannot be opened."""
    with closing(connection.open_reader(path)) as db, connection.translated(path):
        schemas = {part: check(db, path, part) for part in parts}
        found = db.execute(f"PRAGMA quick_check({_PROBLEMS_MAX})").fetchall()
        counts = {part: int(only(db, CARE[part])[0]) for part in parts if schemas[part]}
    wal = path.with_name(f"{path.name}-wal")
    problems = () if found == _WHOLE else tuple(str(row[0]) for row in found)
    return Checkup(path, schemas, counts, problems, wal.stat().st_size if wal.exists() else 0)


def copy(path: Path, target: Path, parts: Sequence[str]) -> Checkup:
    """Copy a file as it stands at one moment, whoever writes it meanwhile, then open and check the copy.

    Raises a StoreError with nothing left at `target`, ForeignStore when the copy is not whole.
    """
    try:
        with closing(connection.open_reader(path)) as db, connection.translated(target):
            # The open snapshot is what is copied: without it, every commit of a writer would start the copy again.
            db.execute("BEGIN")
            db.pragma("schema_version")
            back_up(db, target)
            db.execute("ROLLBACK")
        found = examine(target, parts)
        if found.problems:
            raise ForeignStore(f"{path} is damaged ({found.problems[0]})", hint="keepsaid doctor")
    except KeepsaidError:
        target.unlink(missing_ok=True)
        raise
    return found


DEEP = load("deep")
_MESSAGES_EACH = 1_000
_SHOWN_MAX = 5


@frozen
class IntegrityReport:
    """What a check of one file found; `mended` is derived and was rebuilt, `damage` needs a person.

    `damaged` are the ids of messages that are not what was stored; they are quarantined when next read. `altered` are
    rows of other tables that are not what was written, each named.
    """

    path: Path
    messages: int
    damaged: tuple[int, ...]
    altered: tuple[str, ...]
    damage: tuple[str, ...]
    astray: tuple[str, ...]
    mended: bool


def check_integrity(path: Path, parts: Sequence[str], *, mend: bool) -> IntegrityReport:
    """Check a whole file; with `mend`, which needs the lock of the home, rebuild what is derived. Raises StoreError."""
    with (
        closing(connection.open_writer(path) if mend else connection.open_reader(path)) as db,
        connection.translated(path),
    ):
        for part in parts:
            check(db, path, part)
        if mend:
            sealing.keep_sealed(db)
        found = every(db, f"PRAGMA integrity_check({_SHOWN_MAX})")
        astray = [f"the rows of {table} have no checksums yet" for table in sealing.unsealed(db)]
        if mend:
            sealing.seal_all(db)
        damage = () if found == _WHOLE else tuple(str(row[0]) for row in found)
        messages = 0
        damaged: list[int] = []
        if "buffer" in parts:
            for message_id, is_damaged in _messages(db):
                messages += 1
                if is_damaged:
                    damaged.append(message_id)
            astray += _lanes(db, mend=mend)
            astray += _counts(db, mend=mend)
        if "memory" in parts:
            astray += _text(db, mend=mend)
            astray += _vectors(db, mend=mend)
        altered = [str(row) for row in sealing.every_altered(db)]
        altered += [f"{table} {key}: its state is {state!r}" for table, key, state in _states(db)]
        return IntegrityReport(path, messages, tuple(damaged), tuple(altered), damage, tuple(astray), mend)


def _states(db: connection.SqliteSession) -> Iterator[tuple[str, str, str]]:
    """States that there are not: the checksums of rows leave states out, because they move."""
    known = json.dumps(sorted(STATES))
    for table in sealing.sealed_tables(db).values():
        if table.has_state:
            yield from (
                (table.name, str(key), state) for key, state in every_replaced(db, table.sql("states"), (known,))
            )


def _messages(db: connection.SqliteSession) -> Iterator[tuple[int, bool]]:
    after = 0
    while True:
        found = every_replaced(db, DEEP["messages"], (after, _MESSAGES_EACH))
        yield from ((row[0], rows.message(row).damaged) for row in found)
        if len(found) < _MESSAGES_EACH:
            return
        after = found[-1][0]


def _lanes(db: connection.SqliteSession, *, mend: bool) -> Iterator[str]:
    """Lanes that do not say what their messages and batches say, and batches that are offered wrongly."""
    lanes, offered = every(db, DEEP["lanes_astray"]), every(db, DEEP["ready_astray"])
    if mend and (lanes or offered):
        db.execute("BEGIN IMMEDIATE")
        for lane in lanes:
            db.execute(DEEP["mend_lane"], lane)
        for (lane_id,) in [*offered, *((lane[0],) for lane in lanes)]:
            routing.refresh_ready(db, lane_id)
        db.execute("COMMIT")
    if lanes:
        yield f"{len(lanes)} lanes do not say how far their messages go"
    if offered:
        yield f"{len(offered)} lanes do not offer their first open batch"


def _counts(db: connection.SqliteSession, *, mend: bool) -> Iterator[str]:
    """Counts that were not kept as things moved."""
    wrong = every(db, DEEP["tally_astray"])
    if mend:
        for row in wrong:
            db.execute(DEEP["mend_tally"], row)
    if wrong:
        yield f"{len(wrong)} counts are not what is there"


def _text(db: connection.SqliteSession, *, mend: bool) -> Iterator[str]:
    """A full-text index that is not that of its memories; only a writer can compare it word by word. And blocks."""
    if not _parity(db, word_by_word=mend):
        if mend:
            with db:
                db.execute(DEEP["rebuild_text"])
                db.execute(DEEP["mark_stale"])
                piece_index.reindex(db)
        yield "the full text does not match the memories"
    if stretches := every(db, DEEP["stretches_astray"]):
        if mend:
            db.executemany(DEEP["drop_stretch"], stretches)
        yield f"{len(stretches)} stretches have blocks of other words than those that are there"


def _vectors(db: connection.SqliteSession, *, mend: bool) -> Iterator[str]:
    """Pieces without the vector their space says they have, and blocks of other vectors than those that are there."""
    spaces, blocks = every(db, DEEP["spaces_astray"]), every(db, DEEP["blocks_astray"])
    if mend:
        db.executemany(DEEP["fill_again"], spaces)
        db.executemany(DEEP["drop_block"], blocks)
    if spaces:
        yield f"{len(spaces)} spaces lack vectors of what they reached; they are filled in the background"
    if blocks:
        yield f"{len(blocks)} blocks are not of the vectors that are there"


def _parity(db: connection.SqliteSession, *, word_by_word: bool) -> bool:
    if only(db, DEEP["text_missing"])[0]:
        return False
    if word_by_word:
        try:
            db.execute(DEEP["check_text"])
        except apsw.CorruptError:
            return False
    return True
