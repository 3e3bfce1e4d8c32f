"""SQL lives in .sql files of the adapters; their Python holds only what steers a connection."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from tests.tidy.source import Source, apply, under

STATEMENT = re.compile(
    r"\s*(SELECT|INSERT|UPDATE|DELETE|REPLACE|CREATE|ALTER|DROP|WITH|ATTACH|DETACH|EXPLAIN|PRAGMA)\s"
)


def sql_in_python(source: Source) -> Iterator[str]:
    inside = under(source.within, ("adapters",))
    for node in source.nodes:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        found = STATEMENT.match(node.value)
        if found is None:
            continue
        if not inside:
            yield source.at(node.lineno, f"SQL ({found[1]}) outside adapters")
        elif found[1] != "PRAGMA":
            yield source.at(node.lineno, f"SQL ({found[1]}) in Python; name it in a .sql file")


def test_sql() -> None:
    apply(sql_in_python, "src")


@pytest.mark.parametrize("text", ["SELECT 1", "\n  INSERT INTO a", "WITH x AS", "PRAGMA user_version"])
def test_rule_outside_adapters(text: str) -> None:
    [finding] = sql_in_python(Source("src/keepsaid/pipeline/a.py", f"x = 1\ny = {text!r}\n"))
    assert finding.startswith("src/keepsaid/pipeline/a.py:2: SQL (")
    assert finding.endswith(") outside adapters")


def test_rule_in_adapters() -> None:
    steering = (
        "PRAGMA wal_checkpoint",
        "BEGIN IMMEDIATE",
        "COMMIT",
        "ROLLBACK TO s",
        "SAVEPOINT s",
        "RELEASE s",
        "VACUUM",
    )
    fine = "".join(f"run({text!r})\n" for text in steering)
    path = "src/keepsaid/adapters/sqlite/a.py"
    assert list(sql_in_python(Source(path, fine))) == []
    bad = 'run(f"DELETE FROM {table}")\nrun("INSERT INTO f(f) VALUES")\n'
    assert sorted(sql_in_python(Source(path, bad))) == [
        f"{path}:1: SQL (DELETE) in Python; name it in a .sql file",
        f"{path}:2: SQL (INSERT) in Python; name it in a .sql file",
    ]


def test_rule_leaves_prose() -> None:
    text = '"""Select a lane, with care."""\nx = "Delete it?"\ny = "UPDATES"\n'
    assert list(sql_in_python(Source("src/keepsaid/domain/a.py", text))) == []
