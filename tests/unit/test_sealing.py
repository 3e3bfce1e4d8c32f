"""Row checksums: a row that was altered on disk is found, in every table, and is served nowhere."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from tests.migration.files import first_schema

from keepsaid import Episode, Keepsaid
from keepsaid.adapters.sql.operations import outbox, rows
from keepsaid.adapters.sql.operations.rows import WITHHELD
from keepsaid.adapters.sql.operations.sessions import context, span
from keepsaid.adapters.sqlite.connection import SqliteSession, open_writer
from keepsaid.adapters.sqlite.integrity import check_integrity, migrate
from keepsaid.adapters.sqlite.sealing import keep_sealed, register, seal_all, sealed_tables, unsealed
from keepsaid.domain.commits import TakeReplies
from keepsaid.domain.message import Lane

SETTINGS = {"models": {"chat": "none"}, "buffer": {"window_ms": 0}}
PARTS = ("buffer", "memory")

WITHOUT = {
    "message": "has a hash and a seal of its own",
    "message_key": "keys and hashes; those of messages that are there are in their rows",
    "body_key": "hashes of bodies, kept for days; an altered one lets a repeated delivery in",
    "life": "ages of former processes, of which the last 64 are kept; an altered one changes when a trial begins",
    "tally": "counts, compared with what they count",
    "keepsaid_schema": "names and numbers of the schema",
    "store_mark": "identities and a counter, compared with the other store and with the file beside",
    "sealed_table": "how checksums were made",
    "term_df": "statistics, counted anew",
    "term_count": "statistics, counted anew",
}
"""Tables with text or bytes that have no checksums, and why."""

LEASES = ("owner", "collection")
"""Who holds a lease and how far a session was collected: both change with every claim, and a lease runs out."""

NOT_UTF8 = "CAST(x'fffe41' AS TEXT)"


def fresh(folder: Path, part: str) -> Path:
    """A new store of one part of the schema."""
    path = folder / f"{part}.db"
    with closing(open_writer(path)) as db:
        migrate(db, path, part)
    return path


def tables(part: str) -> list[str]:
    """The tables of a part that have checksums."""
    with closing(SqliteSession(":memory:")) as db:
        db.create_scalar_function("buried", lambda *_: None)
        register(db)
        migrate(db, Path(":memory:"), part)
        return sorted(sealed_tables(db))


def alter(path: Path, statement: str) -> None:
    """What a bad disk or a careless hand does."""
    with closing(SqliteSession(str(path))) as db:
        db.set_busy_timeout(2_000)
        for name in ("seal_of", "buried"):
            db.create_scalar_function(name, lambda *_: None)
        db.execute(statement)
        assert db.changes(), statement


@pytest.mark.parametrize("part", PARTS)
def test_every_table_with_text_has_checksums_or_a_reason(tmp_path: Path, part: str) -> None:
    with closing(SqliteSession(str(fresh(tmp_path, part)))) as db:
        found = db.execute(
            "SELECT DISTINCT t.name FROM sqlite_schema AS t JOIN pragma_table_info(t.name) AS c"
            " WHERE t.type = 'table' AND t.sql NOT LIKE '%VIRTUAL%' AND c.type IN ('TEXT', 'BLOB', 'ANY')"
        ).fetchall()
    shadows = {name for (name,) in found if str(name).startswith("memory_text_")}
    without = {str(name) for (name,) in found} - shadows - set(tables(part))
    assert without <= set(WITHOUT), "add a column `row_seal INTEGER` in the migration that makes the table, or a reason"


@pytest.mark.parametrize(("part", "table"), [(part, table) for part in PARTS for table in tables(part)])
def test_an_altered_value_is_found_in_every_column_of_text(tmp_path: Path, part: str, table: str) -> None:
    path = fresh(tmp_path, part)
    with closing(open_writer(path)) as db:
        keep_sealed(db)
        columns = db.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
        given = {str(name): kind for name, kind in columns if name not in ("row_seal", "one")}
        values = {"TEXT": "'[\"some text\"]'", "BLOB": "x'0102030405'", "INTEGER": "7", "REAL": "0.5", "ANY": "'some'"}
        worth = ["'done'" if name == "state" else values[str(kind)] for name, kind in given.items()]
        db.execute(f"INSERT INTO {table} ({', '.join(given)}) VALUES ({', '.join(worth)})")
    assert check_integrity(path, (part,), mend=False).altered == ()
    for name, kind in given.items():
        if kind not in ("TEXT", "BLOB", "ANY") or name in LEASES:
            continue
        former = "'done'" if name == "state" else values[str(kind)]
        other = "x'0102030605'" if kind == "BLOB" else "'[\"some tExt\"]'"
        alter(path, f"UPDATE {table} SET {name} = {other}")
        [found] = check_integrity(path, (part,), mend=False).altered
        assert found.startswith(f"{table} "), name
        if kind == "TEXT":
            alter(path, f"UPDATE {table} SET {name} = {NOT_UTF8}")
            assert "not UTF-8" in str(check_integrity(path, (part,), mend=False).altered) or name == "state"
        alter(path, f"UPDATE {table} SET {name} = {former}")
        assert check_integrity(path, (part,), mend=False).altered == (), name


def test_what_is_written_stays_sealed_and_an_update_does_not_hide_an_alteration(tmp_path: Path) -> None:
    path = fresh(tmp_path, "buffer")
    keep = "INSERT INTO note (name, text, until) VALUES ('one', 'some text', 1)"
    with closing(open_writer(path)) as db:
        keep_sealed(db)
        db.execute(keep)
        db.execute("UPDATE note SET text = 'another text'")
    assert check_integrity(path, ("buffer",), mend=False).altered == ()
    alter(path, "UPDATE note SET text = 'a third text'")
    with closing(open_writer(path)) as db:
        keep_sealed(db)
        db.execute("UPDATE note SET until = 2")
    assert check_integrity(path, ("buffer",), mend=False).altered == ("note one",)


def test_rows_of_the_first_schema_are_sealed_when_the_store_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "buffer.db"
    with closing(open_writer(path)) as db:
        first_schema(db, "buffer")
        db.execute("INSERT INTO note (name, text, until) VALUES ('one', 'some text', 1)")
    with closing(open_writer(path)) as db:
        migrate(db, path, "buffer")
        assert unsealed(db) == []
    assert check_integrity(path, ("buffer",), mend=False).altered == ()
    alter(path, "UPDATE note SET text = 'other text'")
    assert check_integrity(path, ("buffer",), mend=False).altered == ("note one",)


def test_a_large_table_of_the_first_schema_is_sealed_by_a_deep_look(tmp_path: Path) -> None:
    path = tmp_path / "buffer.db"
    with closing(open_writer(path)) as db:
        first_schema(db, "buffer")
        db.execute(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50001)"
            " INSERT INTO note (name, text, until) SELECT i, 'some text', 1 FROM n"
        )
    with closing(open_writer(path)) as db:
        migrate(db, path, "buffer")
        assert unsealed(db) == ["note"]
    assert check_integrity(path, ("buffer",), mend=False).astray == ("the rows of note have no checksums yet",)
    assert check_integrity(path, ("buffer",), mend=True).astray == ("the rows of note have no checksums yet",)
    assert check_integrity(path, ("buffer",), mend=False).astray == ()
    with closing(open_writer(path)) as db:
        assert seal_all(db) == 0


ALTERED = ("'an evil lantern'", NOT_UTF8)


@pytest.mark.parametrize("text", ALTERED)
async def test_an_altered_memory_is_served_nowhere_and_the_others_are(tmp_path: Path, text: str) -> None:
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        await ks.memory.record(
            [Episode("the brass lantern", "ann", "room", 1_000), Episode("the copper lantern", "ann", "room", 2_000)]
        )
    alter(tmp_path / "data" / "memory.db", f"UPDATE memory SET text = {text} WHERE text = 'the brass lantern'")
    async with Keepsaid.open(tmp_path, settings=SETTINGS) as ks:
        assert [found.text for found in await ks.memory.recall("lantern")] == ["the copper lantern"]
    found = check_integrity(tmp_path / "data" / "memory.db", ("memory",), mend=False)
    assert [row.startswith("memory ") for row in found.altered] == [True]


def replied(folder: Path) -> Path:
    """A buffer with two replies to be sent, to two conversations, and a transcript of two records."""
    path = fresh(folder, "buffer")
    with closing(open_writer(path)) as db:
        keep_sealed(db)
        for number in (1, 2):
            room = f"room {number}"
            db.execute(
                "INSERT INTO lane (id, channel, account, conversation, key, transcript)"
                " VALUES (?, 'http', 'a', ?, 'k', 2)",
                (number, room),
            )
            db.execute(
                "INSERT INTO reply (id, lane_id, channel, account, conversation, state, text, next_at, created_at)"
                " VALUES (?1, ?1, 'http', 'a', ?2, 'pending', 'the good answer', 0, 0)",
                (number, room),
            )
            db.execute(
                "INSERT INTO transcript (lane_id, position, session_id, turn_id, role, text, created_at)"
                " VALUES (1, ?1, 1, 1, 'user', 'some words', 0)",
                (number,),
            )
    return path


@pytest.mark.parametrize("text", ALTERED)
def test_an_altered_reply_is_never_sent_and_waits_for_a_person(tmp_path: Path, text: str) -> None:
    path = replied(tmp_path)
    alter(path, f"UPDATE reply SET text = {text} WHERE id = 1")
    with closing(open_writer(path)) as db:
        migrate(db, path, "buffer")
        taken = outbox.take(db, TakeReplies(("http",), "me", 9, 5))
        assert [(reply.id, reply.draft.text) for reply in taken] == [(2, "the good answer")]
        assert db.execute("SELECT id, state FROM reply ORDER BY id").fetchall() == [(1, "dead"), (2, "sending")]
        [shown] = rows.replies(db, rows.SQL["reply"], (1,))
        assert shown.draft.text == WITHHELD
    assert check_integrity(path, ("buffer",), mend=False).altered[0].startswith("reply 1")


@pytest.mark.parametrize("text", ALTERED)
def test_an_altered_record_is_withheld_from_the_prompt(tmp_path: Path, text: str) -> None:
    path = replied(tmp_path)
    alter(path, f"UPDATE transcript SET text = {text} WHERE position = 1")
    with closing(open_writer(path)) as db:
        migrate(db, path, "buffer")
        lane = Lane("http", "a", "room 1", "k")
        shown = [record.text for record in context(db, lane, 9).recent.records]
        assert shown == [WITHHELD, "some words"]
        assert [record.text for record in span(db, lane, 0, 9).records] == shown
