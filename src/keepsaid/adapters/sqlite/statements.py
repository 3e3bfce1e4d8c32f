"""Named SQL statements, read from the .sql files beside this module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TypeVar

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)
_PART = re.compile(r"/\*part (\w+)\*/")


@cache
def load(page: str) -> Mapping[str, str]:
    """The statements of `page`.sql by name; `/*part NAME*/` in one stands for that statement of parts.sql."""
    return MappingProxyType({name: _filled(sql) for name, sql in _named(page).items()})


@cache
def _named(page: str) -> Mapping[str, str]:
    text = files("keepsaid.adapters.sqlite").joinpath("sql", f"{page}.sql").read_text("utf-8")
    parts = _NAME.split(text)
    found = {name: sql.strip() for name, sql in zip(parts[1::2], parts[2::2], strict=True)}
    assert len(found) == len(parts) // 2, f"a name stands twice in {page}.sql"
    return found


def _filled(sql: str) -> str:
    return _PART.sub(lambda found: _filled(_named("parts")[found[1]]), sql)


@cache
def migrations(part: str) -> tuple[tuple[int, str], ...]:
    """The numbered migrations of a part of the schema ("buffer" or "memory"), in order."""
    found = []
    for entry in files("keepsaid.adapters.sqlite").joinpath("migrations").iterdir():
        name, _, number = entry.name.removesuffix(".sql").rpartition("_")
        if name == part and entry.name.endswith(".sql"):
            found.append((int(number), entry.read_text("utf-8")))
    return tuple(sorted(found))


@cache
def many(statement: str, row: str, count: int) -> str:
    """A statement whose `/*rows*/` stands for `count` copies of the parenthesised `row`."""
    return statement.replace("/*rows*/", ", ".join([row] * count))


Row = TypeVar("Row", bound=tuple[object, ...])
CHUNK = 64


def chunks(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """The rows in runs of at most 64, so that a set of any size needs few statements and few of them differ.

    Few statements matter more than few bytes: the writer gives up the interpreter lock around each.
    """
    for start in range(0, len(rows), CHUNK):
        yield rows[start : start + CHUNK]


def flat(rows: Sequence[tuple[object, ...]]) -> list[object]:
    """All values of the rows, one after another."""
    return [value for row in rows for value in row]
