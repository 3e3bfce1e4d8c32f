"""Moving both stores from files into a database and back: every row, beside a runtime, after a kill, and refused."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from contextlib import closing as closing_of
from pathlib import Path
from random import Random

import psycopg
import pytest
from tests.acceptance.program import WITHIN_S, Program
from tests.postgres.server import database, empty
from tests.postgres.test_full_text import assert_sizes, corpus

from keepsaid.adapters.postgres import stores as postgres_stores
from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.adapters.postgres.moving import MovableSchema
from keepsaid.adapters.sql.marks import MOVED
from keepsaid.adapters.sql.moving import compare_stores, copy_stores
from keepsaid.adapters.sql.tombstones import open_keyring
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.moving import MovableFiles
from keepsaid.adapters.sqlite.stores import open_memories, open_operations, open_stores
from keepsaid.domain.fetching import LeaveFile
from keepsaid.errors import StoreError
from keepsaid.testing.builders import said
from keepsaid.testing.clock import CountingIds
from keepsaid.text.normal import without_logins
from keepsaid_testkit.contracts.files import PHOTO, VOICE, fetch, take, with_files
from keepsaid_testkit.contracts.store_driver import StoreDriver

SETTINGS = "models: {chat: none}\nbuffer: {window_ms: 0}\nchannels: {library: {window_ms: 0}}\n"

KILLED_BEFORE_THE_SWITCH = """
import asyncio, os, sys
from pathlib import Path
from keepsaid.app.moving import MoveOrder, move_stores
from keepsaid.config import Config, Home
here, url = Home.at(Path(sys.argv[1])), sys.argv[2]
wanted = Config.model_validate({"store": {"url": url}})
asyncio.run(move_stores(here, Config(), MoveOrder(wanted, lambda: os._exit(9), 1)))
"""


@pytest.fixture
def program(place: PostgresPlace, tmp_path: Path) -> Iterator[Program]:
    """A home whose stores are files; the database is empty."""
    empty(place)
    made = Program(tmp_path / "home")
    made.configure(SETTINGS)
    yield made
    empty(place)


def test_what_was_said_goes_into_a_database_and_back(program: Program, place: PostgresPlace) -> None:
    """Found, answered and forgotten alike, wherever the rows are; each time all of them are compared."""
    program.run("memory", "add", "My desk is blue")
    program.run("chat", given="My sister is called Ann\nWhat colour is my desk?\n")
    program.run("memory", "add", "The cellar floods in March")
    program.run("memory", "forget", "--filter", "cellar", "--yes")
    before = seen(program)
    there = program.run("data", "move", "--to", place.url, "--json").json
    assert (there["switched"], there["working"]) == (True, [])
    assert not list((program.home / "data").glob("*.db"))
    assert sorted(Path(path).name.partition(".moved-")[0] for path in there["kept"]) == ["buffer.db", "memory.db"]
    assert seen(program) == before
    assert_sizes(place)
    program.run("chat", given="My brother is called Ben\n")
    between = seen(program)
    assert len(between["memories"]) > len(before["memories"])
    back = program.run("data", "move", "--to", "files")
    assert f"the schema keepsaid in {without_logins(place.url)}" in back.out
    assert seen(program) == between
    assert "passes" in program.run("doctor", "--deep").out
    assert "already" in program.run("data", "move", "--to", "files", code=None).err
    program.run("memory", "forget", "--filter", "sister", "--yes")
    assert program.run("data", "move", "--to", place.url, "--json").json["switched"]
    assert seen(program)["found"] == []
    assert_sizes(place)


def test_stores_move_from_one_database_to_another(program: Program, place: PostgresPlace) -> None:
    program.run("memory", "add", "My desk is blue")
    program.run("chat", given="My sister is called Ann\n")
    program.run("memory", "add", "The cellar floods in March")
    program.run("memory", "forget", "--filter", "cellar", "--yes")
    before = seen(program)
    program.run("data", "move", "--to", place.url)
    with database(place, "elsewhere") as other:
        there = program.run("data", "move", "--to", other.url, "--json").json
        assert (there["switched"], there["kept"]) == (True, [])
        assert seen(program) == before
        assert_sizes(other)
        left = Program(program.home, {"KEEPSAID_STORE__URL": place.url})
        assert "were moved elsewhere" in left.run("memory", "ls", code=None).err
        again = {"KEEPSAID_STORE__REDIS": "redis://127.0.0.1:1"}
        assert "already" in Program(program.home, again).run("data", "move", "--to", other.url, code=None).err
        program.run("data", "move", "--to", "files")
    assert seen(program) == before


def test_a_receipt_names_the_files_that_were_left_and_they_can_be_deleted(
    program: Program, place: PostgresPlace
) -> None:
    program.run("memory", "add", "My desk is blue")
    kept = program.run("data", "move", "--to", place.url, "--json").json["kept"]
    receipt = program.run("memory", "forget", "--filter", "desk", "--yes", "--json").json
    assert receipt["backups"] == sorted(kept)
    program.run("memory", "forget", "--rewrite-backups", "--yes")
    assert not any(map(Path.exists, map(Path, kept)))


def test_beside_a_runtime_rows_are_copied_and_the_next_run_switches(program: Program, place: PostgresPlace) -> None:
    with program.serving() as running:
        for text in ("the first", "the second"):
            running.settled(program.run("inbox", "send", text, "--json").json["id"])
        copied = program.run("data", "move", "--to", place.url, "--json").json
        assert (copied["switched"], copied["working"]) == (False, ["another process of this home"])
        running.settled(program.run("inbox", "send", "the third", "--json").json["id"])
    told = program.run("data", "move", "--to", place.url).out
    assert "each was read again and compared" in told
    assert [one["text"] for one in messages(program)] == ["the third", "the second", "the first"]
    with program.serving() as running:
        running.settled(program.run("inbox", "send", "the fourth", "--json").json["id"])
    assert len(messages(program)) == 4


def test_processes_of_other_homes_hold_up_the_switch(program: Program, place: PostgresPlace, tmp_path: Path) -> None:
    program.run("memory", "add", "My desk is blue")
    program.run("data", "move", "--to", place.url)
    shutil.copytree(program.home, tmp_path / "second")
    second = Program(tmp_path / "second")
    with second.serving():
        copied = program.run("data", "move", "--to", "files", "--json").json
        assert not copied["switched"]
        [working] = copied["working"]
        assert working in second.run("status").out
        second.run("memory", "add", "in between")
    assert program.run("data", "move", "--to", "files", "--json").json["switched"]
    assert "in between" in program.run("memory", "ls").out
    refused = second.run("memory", "ls", code=None)
    assert refused.code != 0
    assert "were moved elsewhere" in refused.err


def test_killed_while_rows_are_moved_the_home_has_its_files(program: Program, place: PostgresPlace) -> None:
    program.run("memory", "add", "My desk is blue")
    with locked(place), program.start("data", "move", "--to", place.url) as moving:
        wait_for_mark(place, "moving")
        moving.kill()
        moving.wait(WITHIN_S)
    assert "blue" in program.run("memory", "ls").out
    program.configure(f"{SETTINGS}store: {{url: {place.url!r}}}\n")
    refused = program.run("memory", "add", "more", code=None)
    assert "being moved" in refused.err
    program.configure(SETTINGS)
    assert program.run("data", "move", "--to", place.url, "--json").json["switched"]
    assert "blue" in program.run("memory", "ls").out


def test_killed_before_the_switch_the_same_command_goes_on(program: Program, place: PostgresPlace) -> None:
    """Both places are whole then, and neither may be written before it is decided which is in use."""
    program.run("memory", "add", "My desk is blue")
    command = [sys.executable, "-c", KILLED_BEFORE_THE_SWITCH, str(program.home), place.url]
    assert subprocess.run(command, env=program.environment, check=False).returncode == 9
    refused = program.run("memory", "add", "more", code=None)
    assert "were moved elsewhere" in refused.err
    assert program.run("data", "move", "--to", place.url, "--json").json["switched"]
    program.run("memory", "add", "more")
    assert program.run("memory", "ls", "--json").json["memories"][0]["text"] == "more"


def test_a_switch_that_cannot_be_written_leaves_everything_as_it_was(program: Program, place: PostgresPlace) -> None:
    program.run("memory", "add", "My desk is blue")
    file = program.home / "config" / "config.yaml.bak"
    file.mkdir()
    assert program.run("data", "move", "--to", place.url, code=None).code != 0
    program.run("memory", "add", "more")
    file.rmdir()
    assert program.run("data", "move", "--to", place.url, "--json").json["switched"]
    assert len(program.run("memory", "ls", "--json").json["memories"]) == 2


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("mysql://db/keepsaid", "it is neither postgresql://... nor files"),
        ("postgresql://127.0.0.1:1/none", "cannot be reached"),
        ("files", "already"),
        ("${NOT_SET_ANYWHERE}", "NOT_SET_ANYWHERE is not set"),
    ],
)
def test_a_place_that_cannot_be(program: Program, to: str, said: str) -> None:
    program.run("memory", "add", "My desk is blue")
    refused = program.run("data", "move", "--to", to, code=None)
    assert refused.code != 0
    assert said in refused.err
    assert (program.home / "config" / "config.yaml").read_text("utf-8") == SETTINGS
    assert "blue" in program.run("memory", "ls").out


def test_a_database_that_holds_something_is_not_written(program: Program, place: PostgresPlace, tmp_path: Path) -> None:
    other = Program(tmp_path / "other")
    other.configure(f"{SETTINGS}store: {{url: {place.url!r}}}\n")
    other.run("memory", "add", "theirs")
    program.run("memory", "add", "ours")
    assert "holds messages or memories already" in program.run("data", "move", "--to", place.url, code=None).err
    assert [one["text"] for one in other.run("memory", "ls", "--json").json["memories"]] == ["theirs"]


def test_what_can_be_undone_is_not_moved(program: Program, place: PostgresPlace) -> None:
    program.run("memory", "add", "My desk is blue")
    program.run("memory", "forget", "--filter", "desk", "--undo-for", "30d", "--yes")
    refused = program.run("data", "move", "--to", place.url, code=None)
    assert "can still be undone" in refused.err
    assert program.run("memory", "ls").code == 0


def test_a_setting_of_the_environment_is_named(program: Program, place: PostgresPlace) -> None:
    program.run("memory", "add", "My desk is blue")
    here = Program(program.home, {"KEEPSAID_STORE__URL": place.url})
    assert "KEEPSAID_STORE__URL" in here.run("data", "move", "--to", "files", code=None).err


async def test_who_opened_the_stores_before_they_were_moved_away_writes_nothing(
    place: PostgresPlace, tmp_path: Path
) -> None:
    """It waited for the writer's place while they were moved, and no life of it was on record."""
    empty(place)
    schema = MovableSchema(place, open_keyring(tmp_path / "buffer.db"))
    store = await postgres_stores.open_operations(place, open_keyring(tmp_path / "buffer.db"))
    schema.set_mark(MOVED, 1)
    with pytest.raises(StoreError, match="were moved elsewhere"):
        await StoreDriver(store).receive(said())
    await store.close()
    empty(place)


async def test_only_what_differs_is_written_again(place: PostgresPlace, tmp_path: Path) -> None:
    """Rows that changed, came and went in either place; the index of words follows."""
    empty(place)
    buffer, memory = tmp_path / "buffer.db", tmp_path / "memory.db"
    files, schema = MovableFiles(buffer, memory), MovableSchema(place, open_keyring(buffer))
    store, random = await open_memories(memory, CountingIds()), Random(5)
    await (await open_operations(buffer)).close()
    await store.keep(corpus(random, 0, 700), 1)
    schema.prepare()
    first = {one.table: one for one in copy_stores(files, schema)}
    assert first["memory"].rows == first["memory"].changed == 700
    await store.keep(corpus(random, 700, 5), 2)
    with psycopg.connect(place.url) as db:
        db.execute("SET search_path TO keepsaid")
        db.execute("DELETE FROM memory_piece WHERE id % 50 = 0")
        db.execute("UPDATE memory SET text = 'changed here' WHERE id % 100 = 0")
    second = {one.table: one for one in copy_stores(files, schema)}
    assert (second["memory"].rows, second["memory"].changed) == (705, 12)
    assert 19 <= second["memory_piece"].changed <= 40
    assert_sizes(place)
    third = copy_stores(files, schema)
    assert not any(one.changed for one in third)
    assert {one.table: one.hash for one in third} == {one.table: one.hash for one in second.values()}
    await store.close()
    empty(place)


async def test_one_file_that_holds_both_stores_moves_and_a_changed_row_is_noticed(
    place: PostgresPlace, tmp_path: Path
) -> None:
    empty(place)
    one, back = tmp_path / "one.db", tmp_path / "back.db"
    schema = MovableSchema(place, open_keyring(one))
    async with AsyncExitStack() as closing:
        _, store = await open_stores(one, one, CountingIds(), closing)
        await store.keep(corpus(Random(6), 0, 40), 1)
    schema.prepare()
    MovableFiles(back, back).prepare()
    first = copy_stores(MovableFiles(one, one), schema)
    second = copy_stores(schema, MovableFiles(back, back))
    hashes = {row.table: row.hash for row in first}
    assert hashes == {row.table: row.hash for row in second}
    assert hashes == {row.table: row.hash for row in compare_stores(schema, MovableFiles(back, back))}
    assert hashes.keys() > {"message", "batch", "memory", "memory_piece", "vector"}
    with closing_of(open_writer(back)) as db:
        db.execute("UPDATE memory SET importance = 0.25 WHERE id = 3")
    with pytest.raises(StoreError, match=r"a row of memory in .*back.db is not what was copied"):
        compare_stores(schema, MovableFiles(back, back))
    empty(place)


def seen(program: Program) -> dict[str, list[object]]:
    """What a person can see of a home."""
    return {
        "memories": program.run("memory", "ls", "--json").json["memories"],
        "messages": messages(program),
        "found": program.run("memory", "search", "sister", "--json").json["hits"],
    }


@contextmanager
def locked(place: PostgresPlace) -> Iterator[None]:
    """A table of memory that nobody else can write or change for now."""
    with psycopg.connect(place.url) as db:
        db.execute("LOCK TABLE keepsaid.association IN ACCESS EXCLUSIVE MODE")
        yield


def wait_for_mark(place: PostgresPlace, mark: str) -> None:
    """Return once a move has left a mark; a command that never does is ended by the deadline of the test."""
    with psycopg.connect(place.url, autocommit=True) as db:
        while not db.execute("SELECT 1 FROM keepsaid.keepsaid_schema WHERE part = %s", (mark,)).fetchall():
            pass


def messages(program: Program) -> list[dict[str, str]]:
    """The messages of a home, the newest first."""
    found: list[dict[str, str]] = program.run("inbox", "ls", "--json").json["messages"]
    return found


async def test_files_move_with_their_messages(place: PostgresPlace, tmp_path: Path) -> None:
    """Byte for byte, there and back."""
    empty(place)
    buffer, memory, back = tmp_path / "buffer.db", tmp_path / "memory.db", tmp_path / "back.db"
    schema, content = MovableSchema(place, open_keyring(buffer)), bytes(range(256)) * 2_000
    operations = await open_operations(buffer)
    await (await open_memories(memory, CountingIds())).close()
    number, _ = await with_files(StoreDriver(operations), PHOTO, VOICE)
    kept, left = await take(operations)
    assert await fetch(operations, kept, content[:300_000], content[300_000:])
    assert await operations.apply(LeaveFile(left.lease, "it is gone"))
    before = await operations.files.of_messages((number,))
    await operations.close()
    schema.prepare()
    copy_stores(MovableFiles(buffer, memory), schema)
    moved = await postgres_stores.open_operations(place, open_keyring(buffer))
    assert await moved.files.of_messages((number,)) == before
    assert await moved.files.content(number, 1) == content
    await moved.close()
    MovableFiles(back, back).prepare()
    copy_stores(schema, MovableFiles(back, back))
    returned = await open_operations(back)
    assert await returned.files.of_messages((number,)) == before
    assert await returned.files.content(number, 1) == content
    await returned.close()
