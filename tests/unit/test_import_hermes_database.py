"""The database of Hermes: read where it is, left as it is, and refused where it is damaged."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.unit.bundle_cast import home, outcomes, take_in
from tests.unit.import_cast import KNOWN, drafts, files_in, found, left_out, written, zipped
from tests.unit.test_import_homes import HERMES

from keepsaid.app.stores import session_reader
from keepsaid.errors import InputError
from keepsaid.services.imports.hermes import HermesReader

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "sessions": ("id", "source", "user_id", "started_at", "title"),
    "messages": ("id", "session_id", "role", "content", "timestamp", "active", "tool_calls"),
}


def database(path: Path, *, wal: bool = False) -> Path:
    """A database with the sessions of HERMES."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(apsw.Connection(str(path))) as db:
        if wal:
            db.execute("PRAGMA journal_mode = WAL")
        for table, columns in _COLUMNS.items():
            db.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        for session in HERMES:
            _insert(db, "sessions", session)
            for message in session["messages"]:
                _insert(db, "messages", {"active": 1, **message, "session_id": session["id"]})
    return path


def _insert(db: apsw.Connection, table: str, row: Mapping[str, object]) -> None:
    columns = _COLUMNS[table]
    marks = ", ".join("?" * len(columns))
    db.execute(f"INSERT INTO {table} VALUES ({marks})", [row.get(name) for name in columns])


@pytest.mark.parametrize("wal", [False, True])
def test_sessions_are_read_and_nothing_appears_beside_the_database(tmp_path: Path, *, wal: bool) -> None:
    path = database(tmp_path / "home" / "state.db", wal=wal)
    raw, before = path.read_bytes(), files_in(path.parent)
    for given in (path, path.parent):
        findings = found(HermesReader(), given)
        assert [one.text for one in drafts(findings)] == ["I bake rye bread on Sundays", "A loaf", "Is it raining?"]
        assert len(left_out(findings)) == 3
    assert (path.read_bytes(), files_in(path.parent)) == (raw, before)


def test_messages_that_are_still_in_the_log_are_read(tmp_path: Path) -> None:
    path = database(tmp_path / "home" / "state.db", wal=True)
    with closing(apsw.Connection(str(path))) as db:
        message = {"id": 9, "session_id": "h1", "role": "user", "content": "Just written", "active": 1}
        _insert(db, "messages", message)
        assert "Just written" in [one.text for one in drafts(found(HermesReader(), path))]


async def test_database_is_imported_once(tmp_path: Path) -> None:
    path = await asyncio.to_thread(database, tmp_path / "home" / "state.db")
    async with home(tmp_path, "one") as store:
        how = {"source": "hermes", "sessions": session_reader(), **KNOWN}
        assert outcomes(await take_in(store, path.parent, **how)) == (2, 0, 0, 0)
        assert outcomes(await take_in(store, path.parent, **how)) == (0, 2, 0, 0)


@pytest.mark.parametrize("damage", ["text", "half", "empty", "other tables", "a view", "not UTF-8"])
def test_what_is_not_a_whole_database_is_refused(tmp_path: Path, damage: str) -> None:
    path = database(tmp_path / "state.db")
    if damage in ("text", "half", "empty"):
        raw = path.read_bytes()
        written(path, {"text": b"not a database " * 300, "half": raw[: len(raw) // 2], "empty": b""}[damage])
    else:
        with closing(apsw.Connection(str(path))) as db:
            if damage == "not UTF-8":
                db.execute("UPDATE messages SET content = CAST(x'ff41' AS TEXT)")
            else:
                db.execute("ALTER TABLE sessions RENAME TO others")
            if damage == "a view":
                db.execute("CREATE VIEW sessions AS SELECT * FROM others")
    with pytest.raises(InputError, match="cannot be read as a database of Hermes") as error:
        found(HermesReader(), path)
    assert error.value.safe == "Nothing was imported."


def test_database_in_an_archive_is_left_out(tmp_path: Path) -> None:
    raw = database(tmp_path / "state.db").read_bytes()
    findings = found(HermesReader(), zipped(tmp_path / "home.zip", {"state.db": raw}))
    assert left_out(findings) == ["it is a database in an archive: unpack the archive, and import the folder"]
