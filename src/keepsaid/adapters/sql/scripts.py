"""Scripts: the schema of each store and its migrations, written once for every database."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from keepsaid.errors import SchemaTooNew

Script = tuple[int, str]
"""The number that a store has when a script was run, and the script."""

_WORKS_WITH = re.compile(r"^-- works with: (\d+)$", re.MULTILINE)
"""A migration whose result programs of an earlier release can work with says so, by the number that they know."""


@cache
def migrations(part: str) -> tuple[Script, ...]:
    """The migrations of a part of the schema ("buffer" or "memory") from the number before, in order."""
    return _scripts("migrations", part)


@cache
def due(part: str, found: int) -> tuple[Script, ...]:
    """What brings a store from a number to the newest; one without the part begins with the whole schema."""
    whole = () if found else _scripts("schema", part)
    begun = whole[0][0] if whole else found
    return whole + tuple(script for script in migrations(part) if script[0] > begun)


@cache
def oldest_known(part: str) -> int:
    """The oldest number whose programs can work with the newest schema, beside those of this release."""
    number, text = migrations(part)[-1]
    said = _WORKS_WITH.search(text)
    return int(said[1]) if said else number


def check_number(place: str, part: str, found: int, oldest: int | None = None) -> int:
    """Return the number of a part of the schema; raises SchemaTooNew when a newer program wrote it.

    `oldest` is the number from which on programs can work with it, as the newer program left it there.
    """
    known = migrations(part)[-1][0]
    if found > known and (oldest is None or oldest > known):
        raise SchemaTooNew(f"{place} has {part} schema {found}; this keepsaid knows {known}")
    return found


def oldest_name(part: str) -> str:
    """By which name a store keeps the oldest number whose programs can work with a part."""
    return f"{part} from"


def check_numbers(place: str, oldest: Sequence[tuple[str, int]]) -> None:
    """Raise SchemaTooNew when a newer release has shut this one out, by the oldest numbers as the store keeps them."""
    for name, number in oldest:
        part = name.partition(" ")[0]
        check_number(place, part, number, number)


def _scripts(folder: str, part: str) -> tuple[Script, ...]:
    found = []
    for entry in files("keepsaid.adapters.sql").joinpath(folder).iterdir():
        name, _, number = entry.name.removesuffix(".sql").rpartition("_")
        if name == part and entry.name.endswith(".sql"):
            found.append((int(number), entry.read_text("utf-8")))
    return tuple(sorted(found))
