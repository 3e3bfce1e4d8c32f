"""Fields of a JSON object that somebody sent: read with their types, and refused by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from keepsaid.errors import InputError
from keepsaid.text.normal import cut, kind_of

_NUMBER_MAX = 10**18
"""What a whole number may be at most; a database holds no larger ones."""


def known_fields(fields: Mapping[str, object], known: Collection[str]) -> None:
    """Check that all fields are known ones, so that a misspelt filter does not widen a call. Raises InputError."""
    if unknown := sorted(set(fields) - set(known)):
        raise InputError(f"unknown field {cut(unknown[0], 80)!r}; known: {', '.join(sorted(known)) or 'none'}")


def text_field(fields: Mapping[str, object], name: str, default: str | None = None) -> str:
    """A field that is text; without a default it is needed. Raises InputError."""
    value = fields.get(name)
    value = default if value is None else value
    if value is None:
        raise InputError(f"the field {name!r} is missing")
    if not isinstance(value, str):
        raise InputError(f"the field {name!r} must be text, not {kind_of(value)}")
    return value


def names_field(fields: Mapping[str, object], name: str) -> list[str]:
    """A field that is a list of texts. Raises InputError."""
    given = fields.get(name)
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise InputError(f"{name} must be a list of texts")
    return list(given)


def number_field(fields: Mapping[str, object], name: str, default: int) -> int:
    """A field that is a whole number. Raises InputError."""
    value = fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InputError(f"{name} must be a whole number, not {kind_of(value)}")
    if abs(value) > _NUMBER_MAX:
        raise InputError(f"{name} must be a whole number of at most 18 digits")
    return value


def bounded_field(fields: Mapping[str, object], name: str, bounds: tuple[int, int], default: int) -> int:
    """A field that is a whole number within bounds, both included. Raises InputError."""
    value, (least, most) = number_field(fields, name, default), bounds
    if not least <= value <= most:
        raise InputError(f"{name} must be a whole number from {least} to {most}")
    return value
