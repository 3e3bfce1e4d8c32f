from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from keepsaid.adapters.sql.memory.commits import KeepMemories, content_hash, key_hash
from keepsaid.adapters.sql.search.memories import MEMORY_TABLE
from keepsaid.adapters.sql.tombstones import KEY_NAME, TombstoneKeyring
from keepsaid.adapters.sql.writer import RejectedCommit, Writer
from keepsaid.adapters.sqlite.connection import Readers, SqliteSession, open_writer
from keepsaid.adapters.sqlite.integrity import migrate
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.adapters.sqlite.writer import TransactionExecutor
from keepsaid.domain.memory import Source
from keepsaid.errors import ForeignStore
from keepsaid.testing.clock import CountingIds
from keepsaid_testkit.contracts.memories import AUDIT, keys, sample

BOTH = ("buffer", "memory")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[SqliteSession]:
    """A file that holds both stores."""
    path = tmp_path / "one.db"
    opened = open_writer(path)
    for part in BOTH:
        migrate(opened, path, part)
    yield opened
    opened.close()


def kept(db: SqliteSession, *commits: KeepMemories) -> list[object]:
    ledger = TransactionExecutor(db, Path(db.filename), MEMORY_TABLE)
    return ledger.apply(commits)


def matching(db: SqliteSession, word: str) -> list[int]:
    found = db.execute(
        "SELECT memory_id FROM memory_text JOIN memory_piece AS piece ON piece.id = memory_text.rowid "
        "WHERE memory_text MATCH ? ORDER BY memory_id",
        (word,),
    )
    return [int(str(row[0])) for row in found]


def change(db: SqliteSession, statement: str, *values: object) -> None:
    with db:
        db.execute(statement, values)
        db.reindex()


def intact(db: SqliteSession) -> None:
    """Raises when the full text is not what the memories say."""
    db.execute("INSERT INTO memory_text (memory_text, rank) VALUES ('integrity-check', 1)")


def test_a_set_of_commits_is_kept_with_sources_and_changes(db: SqliteSession) -> None:
    told = sample("a", sources=(Source("message", "1"), Source("message", "2")))
    results = kept(db, KeepMemories((1, 2), (told, sample("b")), 5), KeepMemories((3, 4), (told, sample("c")), 6))
    assert results == [(1, 2), (1, 4)]
    sources = db.execute("SELECT memory_id, n, kind, ref FROM memory_source").fetchall()
    assert sources == [(1, 0, "message", "1"), (1, 1, "message", "2")]
    changes = db.execute("SELECT memory_id, what, at FROM memory_change ORDER BY seq").fetchall()
    assert changes == [(1, "kept", 5), (2, "kept", 5), (4, "kept", 6)]


def test_a_bad_commit_does_not_cost_the_others(db: SqliteSession) -> None:
    taken, fine = KeepMemories((1,), (sample("b"),), 5), KeepMemories((2,), (sample("c"),), 5)
    first, refused, last = kept(db, KeepMemories((1,), (sample("a"),), 5), taken, fine)
    assert (first, last) == ((1,), (2,))
    assert isinstance(refused, RejectedCommit)


def test_what_was_forgotten_is_not_written_again(db: SqliteSession, tmp_path: Path) -> None:
    by_key, by_content = sample("a", "one"), sample("b", "two")
    tombs = TombstoneKeyring(tmp_path / KEY_NAME)
    for hash_ in tombs.make_tombstones([key_hash(by_key.key), content_hash(by_content)]):
        db.execute("INSERT INTO memory_tombstone (hash, created_at) VALUES (?, 1)", (hash_,))
    told = (by_key, by_content, sample("z", "two"), sample("c", "three"))
    assert kept(db, KeepMemories((1, 2, 3, 4), told, 5)) == [(0, 0, 0, 4)]
    assert matching(db, "one OR two OR three") == [4]
    assert db.execute("SELECT count(*) FROM memory_change").fetchall() == [(1,)]


def test_the_content_hash_names_what_was_said_to_whom() -> None:
    same = content_hash(sample("a", "x"))
    assert content_hash(sample("b", "x", said_at=9)) == same
    for other in (sample("a", "y"), sample("a", "x", scope="lane:x"), sample("a", "x", speaker="Bob")):
        assert content_hash(other) != same


def test_only_active_and_superseded_memories_are_searchable(db: SqliteSession) -> None:
    kept(db, KeepMemories((1, 2), (sample("a", "red fox"), sample("b", "red hen")), 5))
    searchable = {"active": True, "superseded": True, "archived": False, "forgotten": False}
    for state, found in (*searchable.items(), ("active", True)):
        change(db, "UPDATE memory SET state = ? WHERE id = 1", state)
        assert matching(db, "red") == ([1, 2] if found else [2]), state
        intact(db)
    change(db, "UPDATE memory SET state = 'forgotten', text = '', speaker = '' WHERE id = 1")
    change(db, "UPDATE memory SET text = 'blue hen' WHERE id = 2")
    assert matching(db, "red OR fox") == []
    assert matching(db, "blue") == [2]
    change(db, "DELETE FROM memory")
    assert matching(db, "blue") == []
    intact(db)


def test_forgotten_words_leave_the_file(db: SqliteSession, tmp_path: Path) -> None:
    kept(db, KeepMemories((1, 2), (sample("a", "the quetzal flew"), sample("b", "a hen")), 5))
    change(db, "UPDATE memory SET state = 'forgotten', text = '' WHERE id = 1")
    assert db.execute("SELECT term FROM memory_term WHERE term = 'quetzal'").fetchall() == []
    db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    assert b"quetzal" not in (tmp_path / "one.db").read_bytes()


def test_rebuilding_the_full_text_changes_nothing(db: SqliteSession) -> None:
    kept(db, KeepMemories((1, 2), (sample("a", "red fox"), sample("b", "red hen")), 5))
    change(db, "UPDATE memory SET state = 'archived' WHERE id = 1")
    db.execute("INSERT INTO memory_text (memory_text) VALUES ('rebuild')")
    assert matching(db, "red") == [2]


async def test_one_file_may_hold_both_stores(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    opened = open_writer(path)
    for part in BOTH:
        migrate(opened, path, part)
    writer, readers = Writer(TransactionExecutor(opened, path, MEMORY_TABLE), "both"), Readers(path)
    store = SqliteMemories(writer, readers, CountingIds())
    await store.keep([sample("a")], 5)
    await store.close()
    assert keys(await store.find(AUDIT, (), 9)) == ["a"], "what belongs to both is not closed by one"
    await readers.close()
    await writer.close()


async def test_another_programs_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(b"not a database at all")
    with pytest.raises(ForeignStore):
        await open_memories(path, CountingIds())
    assert path.read_bytes() == b"not a database at all"
