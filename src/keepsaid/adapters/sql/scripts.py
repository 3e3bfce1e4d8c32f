"""Scripts: the schema of each store and its migrations, written once for every database."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from keepsaid.errors import SchemaTooNew

Script = tuple[int, str]
"""The number that a store has when a script was run, and the script."""


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


def check_number(place: str, part: str, found: int) -> int:
    """Return the number of a part of the schema; raises SchemaTooNew when a newer program wrote it."""
    if found > (known := migrations(part)[-1][0]):
        raise SchemaTooNew(f"{place} has {part} schema {found}; this keepsaid knows {known}")
    return found


def _scripts(folder: str, part: str) -> tuple[Script, ...]:
    found = []
    for entry in files("keepsaid.adapters.sql").joinpath(folder).iterdir():
        name, _, number = entry.name.removesuffix(".sql").rpartition("_")
        if name == part and entry.name.endswith(".sql"):
            found.append((int(number), entry.read_text("utf-8")))
    return tuple(sorted(found))
