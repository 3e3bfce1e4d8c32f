"""Named SQL statements, read from the .sql files beside this module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType

_NAME = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


@cache
def load(page: str) -> Mapping[str, str]:
    """The statements of `page`.sql by name."""
    text = files("keepsaid.adapters.sqlite").joinpath("sql", f"{page}.sql").read_text("utf-8")
    parts = _NAME.split(text)
    return MappingProxyType({name: sql.strip() for name, sql in zip(parts[1::2], parts[2::2], strict=True)})


@cache
def migrations(part: str) -> tuple[tuple[int, str], ...]:
    """The numbered migrations of a part of the schema ("buffer" or "memory"), in order."""
    found = []
    for entry in files("keepsaid.adapters.sqlite").joinpath("migrations").iterdir():
        name, _, number = entry.name.removesuffix(".sql").rpartition("_")
        if name == part and entry.name.endswith(".sql"):
            found.append((int(number), entry.read_text("utf-8")))
    return tuple(sorted(found))


def many(statement: str, row: str, count: int) -> str:
    """A statement whose `/*rows*/` stands for `count` copies of the parenthesised `row`."""
    return statement.replace("/*rows*/", ", ".join([row] * count))


def chunks(rows: Sequence[tuple[object, ...]]) -> Iterator[Sequence[tuple[object, ...]]]:
    """The rows in runs of 64, 32, ... 1, so that few distinct statements serve sets of any size."""
    start, size = 0, 64
    while start < len(rows):
        while size > len(rows) - start:
            size //= 2
        yield rows[start : start + size]
        start += size


def flat(rows: Sequence[tuple[object, ...]]) -> list[object]:
    """All values of the rows, one after another."""
    return [value for row in rows for value in row]
