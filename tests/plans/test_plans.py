"""The hot statements cost the same whatever is stored: none walks a large table, and none takes many steps.

The steps are those of SQLite's own machine, counted while the statement runs on 100,000 messages: they are the same
on every computer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.plans.hot import HOT, Hot, keys, numbers
from tests.plans.large import filled

from keepsaid.adapters.sql.memory.graph import MEMORY_GRAPH as GRAPH
from keepsaid.adapters.sql.memory.revisions import TRUTH
from keepsaid.adapters.sql.memory.rows import SQL as MEMORY
from keepsaid.adapters.sql.query import load
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.integrity import migrate

_TABLES = "batch episode_due lane message message_key ready reply session slot step transcript turn"
_TABLES += " trace finding injection feedback staged_memory forgetting_item lane_summary reply_move tombstone redaction"
_TABLES += " task task_after reply_part"
_TABLES += " memory memory_audience memory_piece memory_source term_df vector association entity mention"
LARGE = frozenset(_TABLES.split())
"""Tables that grow with what is stored."""

_NAMED = re.compile(r"\b(?:FROM|JOIN|UPDATE)\s+(\w+)(?:\s+AS\s+(\w+))?", re.IGNORECASE)
_SCAN = re.compile(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?")


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    """The file, open for writing; what a test changes is taken back."""
    db = filled(tmp_path_factory.mktemp("plans") / "buffer.db")
    yield db
    db.close()


@pytest.fixture(scope="session")
def partial(large: apsw.Connection) -> frozenset[str]:
    """Indexes that hold only what is open, or due."""
    return frozenset(
        row[0] for row in large.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '% WHERE %'")
    )


def each(chosen: Sequence[Hot]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("hot", chosen, ids=lambda hot: f"{hot.page}.{hot.name}")


def scans(db: apsw.Connection, sql: str, bound: Any, partial: frozenset[str]) -> list[str]:
    """Lines of a plan that walk a large table: by no index, or by one that holds every row."""
    names = {alias or table: table for table, alias in _NAMED.findall(sql)}
    found = []
    for _, _, _, line in db.execute(f"EXPLAIN QUERY PLAN {sql}", bound):
        scan = _SCAN.match(line)
        if scan and names.get(scan[1], scan[1]) in LARGE and scan[2] not in partial:
            found.append(line)
    return found


def steps(db: apsw.Connection, sql: str, bound: Any) -> int:
    """What a statement costs; what it changes is taken back."""
    told: list[dict[str, Any]] = []
    db.execute("SAVEPOINT cost")
    db.trace_v2(apsw.SQLITE_TRACE_PROFILE, told.append)
    db.execute(sql, bound).fetchall()
    db.trace_v2(0)
    db.execute("ROLLBACK TO cost; RELEASE cost")
    return int(told[0]["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])


@each(HOT)
def test_a_hot_statement_walks_no_large_table(large: apsw.Connection, partial: frozenset[str], hot: Hot) -> None:
    found = scans(large, hot.sql, hot.bound, partial)
    assert found == [] or hot.walks, f"{hot.page}.{hot.name}: {found}"


@each(HOT)
def test_a_hot_statement_takes_few_steps(large: apsw.Connection, hot: Hot) -> None:
    assert steps(large, hot.sql, hot.bound) <= hot.steps


def test_keys_are_looked_up_one_by_one(large: apsw.Connection, partial: frozenset[str]) -> None:
    sql = load("intake")["known_keys"]
    assert scans(large, sql, keys(64), partial) == []
    assert len(large.execute(sql, keys(64)).fetchall()) == 64
    assert steps(large, sql, keys(64)) <= 64 * 30


@each([hot for hot in HOT if hot.walks])
def test_an_excuse_is_still_needed(large: apsw.Connection, partial: frozenset[str], hot: Hot) -> None:
    assert scans(large, hot.sql, hot.bound, partial) != []


_ASKED = (
    "keep_audiences keep_sources kept get fetch matches matches_heard matches_known pieces_heard counted frequencies"
)


@pytest.mark.parametrize("name", _ASKED.split())
def test_what_a_turn_asks_of_memory_walks_no_memory(tmp_path: Path, name: str) -> None:
    with closing(open_writer(path := tmp_path / "memory.db")) as db:
        migrate(db, path, "memory")
        sql = MEMORY[name]
        bound = dict.fromkeys(re.findall(r":(\w+)", sql))
        assert scans(db, sql, bound, frozenset()) == []


@pytest.mark.parametrize("name", sorted(GRAPH.keys() - {"related"}))
def test_a_step_of_the_graph_walks_no_table(tmp_path: Path, name: str) -> None:
    with closing(open_writer(path := tmp_path / "memory.db")) as db:
        migrate(db, path, "memory")
        assert scans(db, GRAPH[name], dict.fromkeys(re.findall(r":(\w+)", GRAPH[name])), frozenset()) == []


@pytest.mark.parametrize("name", ["stale", "before", "after", "pieces_of", "drop_pieces", "change_piece"])
def test_indexing_a_memory_walks_no_memory(tmp_path: Path, name: str) -> None:
    with closing(open_writer(path := tmp_path / "memory.db")) as db:
        migrate(db, path, "memory")
        sql = load("memory_index")[name]
        assert scans(db, sql, dict.fromkeys(re.findall(r":(\w+)", sql)), frozenset()) == []


@pytest.mark.parametrize("name", sorted(TRUTH))
def test_learning_walks_no_memory(tmp_path: Path, name: str) -> None:
    with closing(open_writer(path := tmp_path / "memory.db")) as db:
        migrate(db, path, "memory")
        assert scans(db, TRUTH[name], dict.fromkeys(re.findall(r":(\w+)", TRUTH[name])), frozenset()) == []


@pytest.mark.parametrize("name", sorted(load("memory_vectors").keys() - {"unembedded", "changed"}))
def test_vectors_are_read_and_written_by_their_ids(tmp_path: Path, name: str) -> None:
    """But for what goes on from where it stood: pieces, and the log of changes, behind a number."""
    with closing(open_writer(path := tmp_path / "memory.db")) as db:
        migrate(db, path, "memory")
        sql = load("memory_vectors")[name]
        named = dict.fromkeys(re.findall(r":(\w+)", sql))
        places: tuple[object, ...] = (None,) * len(set(re.findall(r"\?(\d)", sql)))
        if "carray" in sql:
            places = (numbers((1,)),)
        assert scans(db, sql, named or places, frozenset()) == []


_WHOLE = {"everything", "all_named", "of_conversation", "tombstones"}
"""Read by a request of a person alone, beside the writer: they look through all that is there."""


_LOOKED_THROUGH = re.compile(r"all_(?!forgotten)\w+|tombstones|newest|\w+_of_(conversation|lane)")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    """Both stores in one file."""
    path = tmp_path_factory.mktemp("empty") / "both.db"
    with closing(open_writer(path)) as db:
        for part in ("buffer", "memory"):
            migrate(db, path, part)
        yield db


_AUDIENCES = {"unname_audiences": ["SCAN memory_audience"]}
"""Statements that look at every audience: as many as there are people and conversations, not memories."""


@pytest.mark.parametrize("name", sorted(load("memory_forget").keys() - _WHOLE))
def test_forgetting_walks_no_memory(empty: apsw.Connection, name: str) -> None:
    assert scans(empty, *_tried("memory_forget", name), frozenset()) == _AUDIENCES.get(name, [])


@pytest.mark.parametrize("name", sorted(load("trails")))
def test_where_memories_come_from_is_looked_up(empty: apsw.Connection, partial: frozenset[str], name: str) -> None:
    assert scans(empty, *_tried("trails", name), partial) == []


@pytest.mark.parametrize("name", [one for one in load("forgetting") if not _LOOKED_THROUGH.fullmatch(one)])
def test_forgetting_walks_no_table(empty: apsw.Connection, partial: frozenset[str], name: str) -> None:
    assert scans(empty, *_tried("forgetting", name), partial) == []


def _tried(page: str, name: str) -> tuple[str, tuple[object, ...] | dict[str, object]]:
    """A statement, and values to try it with."""
    sql = load(page)[name]
    if named := re.findall(r":([a-z_]+)", sql):
        return sql, dict.fromkeys(named, "x")
    places = len(set(re.findall(r"\?(\d)", sql))) or sql.count("?")
    return sql, tuple(numbers((1,)) if "carray" in sql else "x" for _ in range(places))


def test_a_walk_is_found(large: apsw.Connection, partial: frozenset[str]) -> None:
    assert scans(large, "SELECT 1 FROM message AS m WHERE m.text = 'x'", (), partial) == ["SCAN m"]
    assert scans(large, "SELECT sum(first_at) FROM batch", (), partial) == ["SCAN batch"]
    assert scans(large, "SELECT 1 FROM batch WHERE state = 'leased'", (), partial) == []
    assert steps(large, "SELECT count(*) FROM message WHERE text = 'x'", ()) > 100_000
