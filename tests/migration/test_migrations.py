"""Migrations: fresh equals migrated, an older file is copied first, and what is not ours is not touched.

The newer program of these tests is a copy of this one with one more migration, run in a process of its own.
"""

from __future__ import annotations

import asyncio
import re
import stat
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.migration.files import (
    GROWN,
    NEXT,
    PARTS,
    SOURCE,
    Newer,
    bytes_of,
    first_schema,
    made,
    rows,
    schema,
    versions,
    with_a_message,
)

from keepsaid.adapters.sql.scripts import due, migrations
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.integrity import migrate, version
from keepsaid.ports import runtime

_BEFORE_SHARED = {"buffer": 5, "memory": 5}
"""The newest migrations when databases began to be shared."""

# Fresh equals migrated


@pytest.mark.parametrize("part", PARTS)
def test_migrations_are_numbered_without_gaps(part: str) -> None:
    numbers = [number for number, _ in migrations(part)]
    assert numbers == list(range(2, len(numbers) + 2))


def test_every_migration_has_a_name_that_is_read() -> None:
    folder = SOURCE / "adapters" / "sql"
    names = sorted(file.name for file in (folder / "migrations").iterdir())
    assert names == sorted(f"{part}_{number:04}.sql" for part in PARTS for number, _ in migrations(part))
    whole = sorted(file.name for file in (folder / "schema").iterdir())
    assert whole == sorted(f"{part}_{due(part, 0)[0][0]:04}.sql" for part in PARTS)
    assert all(re.fullmatch(r"(buffer|memory)_\d{4}\.sql", name) for name in names + whole)


@pytest.mark.parametrize("part", PARTS)
def test_every_migration_since_databases_are_shared_says_which_programs_go_on_working(part: str) -> None:
    for number, script in migrations(part):
        if number > _BEFORE_SHARED[part]:
            said = re.search(r"^-- works with: (\d+)$", script, re.MULTILINE)
            assert said, f"{part}_{number:04}.sql begins with `-- works with: N` (ADR 54)"
            assert _BEFORE_SHARED[part] <= int(said[1]) <= number


@pytest.mark.parametrize("parts", [("buffer",), ("memory",), ("buffer", "memory"), ("memory", "buffer")])
def test_a_file_built_step_by_step_equals_one_built_at_once(tmp_path: Path, parts: tuple[str, ...]) -> None:
    fresh, stepped = made(tmp_path / "fresh.db", parts), tmp_path / "stepped.db"
    for part in parts:
        db = open_writer(stepped)
        first_schema(db, part)
        assert version(db, part) == 1
        migrate(db, stepped, part)
        db.close()
    assert laid_out(stepped) == laid_out(fresh)
    assert versions(stepped) == versions(fresh) == {part: NEXT[part] - 1 for part in parts}


def laid_out(path: Path) -> set[tuple[Any, ...]]:
    """What the file declares, without line breaks: a migration adds a column in the line of the one before."""
    return {(kind, name, table, " ".join(sql.split()).replace(" ,", ",")) for kind, name, table, sql in schema(path)}


def test_two_parts_in_one_file_are_the_two_parts(tmp_path: Path) -> None:
    buffer, memory = made(tmp_path / "buffer.db", ["buffer"]), made(tmp_path / "memory.db", ["memory"])
    assert schema(made(tmp_path / "one.db")) == schema(buffer) | schema(memory)
    assert {name for _, name, _, _ in schema(buffer) & schema(memory)} == {
        "keepsaid_schema",
        "sealed_table",
        "store_mark",
    }


def test_migrating_again_changes_nothing(tmp_path: Path) -> None:
    path = made(tmp_path / "one.db")
    before = bytes_of(path)
    made(path)
    assert bytes_of(path) == before


@pytest.mark.usefixtures("disarmed")
@pytest.mark.parametrize("part", PARTS)
def test_a_death_around_a_migration_leaves_the_old_schema_or_the_new(tmp_path: Path, part: str) -> None:
    path, fresh = tmp_path / "one.db", made(tmp_path / "fresh.db", [part])
    db = open_writer(path)
    first_schema(db, part)
    db.close()
    numbers = [number for number, _ in migrations(part)]
    deaths = [(number, *one) for number in numbers for one in (("before", number - 1), ("after", number))]
    for number, place, found in deaths:
        db = open_writer(path)
        runtime.arm(dying_at(f"migrate.{part}.{number}.{place}"))
        with pytest.raises(Killed):
            migrate(db, path, part)
        runtime.arm(None)
        assert version(db, part) == found
        db.close()
    assert laid_out(path) == laid_out(fresh)
    copies = {file.name for file in tmp_path.glob("*.bak*")}
    assert copies == {f"one.db.schema-{part}-{number - 1}.bak" for number in numbers}


@pytest.mark.usefixtures("disarmed")
@pytest.mark.parametrize("part", PARTS)
def test_a_death_while_a_file_is_made_leaves_none_of_its_tables_or_all(tmp_path: Path, part: str) -> None:
    path, numbers = tmp_path / "one.db", [0, *(number for number, _ in due(part, 0))]
    places = [
        (number, place, found)
        for before, number in pairwise(numbers)
        for place, found in (("before", before), ("after", number))
    ]
    for number, place, found in places:
        db = open_writer(path)
        runtime.arm(dying_at(f"migrate.{part}.{number}.{place}"))
        with pytest.raises(Killed):
            migrate(db, path, part)
        runtime.arm(None)
        assert version(db, part) == found
        db.close()
    assert schema(path) == schema(made(tmp_path / "fresh.db", [part]))


class Killed(Exception):
    """The process would be dead now."""


def dying_at(name: str) -> Callable[[str], None]:
    def die(passed: str) -> None:
        if passed == name:
            raise Killed

    return die


@pytest.fixture
def disarmed() -> Iterator[None]:
    """Leave no point armed."""
    yield
    runtime.arm(None)


# A newer program


DIE_HALFWAY = "CREATE TABLE later_PART (id INTEGER PRIMARY KEY) STRICT;\nDELETE FROM later_PART WHERE id = die();\n"
BROKEN = "CREATE TABLE later_PART (id INTEGER PRIMARY KEY) STRICT;\nINSERT INTO nowhere_PART VALUES (1);\n"
TALKING = "SELECT 1 AS told UNION SELECT 2;\n" + GROWN


@pytest.fixture(scope="module")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Newer:
    return Newer(tmp_path_factory.mktemp("newer"))


def test_an_older_file_is_copied_before_it_is_migrated(tmp_path: Path, newer: Newer) -> None:
    path = asyncio.run(with_a_message(tmp_path / "buffer.db"))
    old = schema(path)
    assert newer.run(path, "buffer") is None
    assert versions(path) == {"buffer": NEXT["buffer"]}
    assert schema(path) > old
    (copy,) = tmp_path.glob("*.bak*")
    assert copy.name == f"buffer.db.schema-buffer-{NEXT['buffer'] - 1}.bak"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    for file in (path, copy):
        assert rows(file, "SELECT text FROM message") == [("kept",)]
        assert rows(file, "PRAGMA integrity_check") == [("ok",)]
    assert schema(copy) == old
    asyncio.run(with_a_message(copy, 2))


def test_the_copy_holds_what_stood_in_the_log_alone(tmp_path: Path, newer: Newer) -> None:
    path = made(tmp_path / "buffer.db", ["buffer"])
    dying = "db.execute('INSERT INTO tombstone VALUES (x\\'01\\', 5, NULL)'); os._exit(0)"
    Newer(tmp_path / "older", script=None).run(path, "buffer", after=dying)
    assert (tmp_path / "buffer.db-wal").stat().st_size > 0
    newer.run(path, "buffer")
    (copy,) = tmp_path.glob("*.bak")
    assert rows(copy, "SELECT created_at FROM tombstone") == [(5,)]


def test_what_is_new_or_up_to_date_is_not_copied(tmp_path: Path, newer: Newer) -> None:
    for _ in range(2):
        newer.run(tmp_path / "one.db", *PARTS)
    assert versions(tmp_path / "one.db") == NEXT
    assert list(tmp_path.glob("*.bak*")) == []


def test_a_death_in_the_middle_of_a_migration_leaves_the_old_schema(tmp_path: Path, newer: Newer) -> None:
    dying = Newer(tmp_path / "dying", DIE_HALFWAY)
    path = made(tmp_path / "one.db")
    old = schema(path)
    deadly = "db.create_scalar_function('die', lambda: os._exit(0), 0)"
    dying.run(path, *PARTS, around=deadly)
    assert (schema(path), versions(path)) == (old, {part: number - 1 for part, number in NEXT.items()})
    made(path)
    assert newer.run(path, *PARTS) is None
    assert versions(path) == NEXT


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_death_between_migrations_leads_back_to_them(tmp_path: Path, newer: Newer, place: str) -> None:
    path = made(tmp_path / "one.db")
    name = f"migrate.memory.{NEXT['memory']}.{place}"
    newer.run(path, *PARTS, around=f"runtime.arm(lambda name: os._exit(0) if name == {name!r} else None)")
    assert versions(path) == {"buffer": NEXT["buffer"], "memory": NEXT["memory"] - (place == "before")}
    newer.run(path, *PARTS)
    assert versions(path) == NEXT


async def test_a_migration_that_fails_leaves_the_old_schema(tmp_path: Path) -> None:
    path = await with_a_message(tmp_path / "buffer.db")
    old = schema(path)
    error = Newer(tmp_path / "broken", BROKEN).run(path, "buffer")
    assert (error["code"], "nowhere_buffer" in error["what"]) == ("KS-DB", True)
    assert (schema(path), versions(path)) == (old, {"buffer": NEXT["buffer"] - 1})
    await with_a_message(path, 2)


def test_a_migration_runs_to_its_end_also_when_a_statement_of_it_tells_rows(tmp_path: Path) -> None:
    path = tmp_path / "buffer.db"
    Newer(tmp_path / "talking", TALKING).run(path, "buffer")
    assert "later_buffer" in {name for _, name, _, _ in schema(path)}
