"""Fields: a raw object, read field by field; what is wrong is named by its path."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from keepsaid.errors import InputError
from keepsaid.text.normal import kind_of

_NUMBER_MAX = 1 << 63
"""Counts, sizes and times of a medium are within 64 bits."""


class MediaObject:
    """An object of a medium. Every reader gives None, or nothing, for a field that is missing or null."""

    def __init__(self, source: Mapping[str, object], path: str = "") -> None:
        self._source = source
        self._path = path

    def __contains__(self, name: str) -> bool:
        """Whether there is such a field, and not null."""
        return self._source.get(name) is not None

    def text(self, name: str) -> str | None:
        """Words."""
        value = self._source.get(name)
        if value is not None and not isinstance(value, str):
            raise self._make_type_error(name, "text", value)
        return value

    def id(self, name: str) -> str:
        """An identifier, written as text; raises InputError when it is missing."""
        if (value := self._source.get(name)) is None:
            raise InputError(f"the field {self.path(name)!r} is missing")
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise self._make_type_error(name, "an id", value)
        return str(value)

    def number(self, name: str) -> float | None:
        """A number, never infinite: what is beyond a float is refused."""
        if (value := self._source.get(name)) is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._make_type_error(name, "a number", value)
        if not -_NUMBER_MAX <= value <= _NUMBER_MAX:
            raise InputError(f"the field {self.path(name)!r} is a number that is too large")
        return value

    def flag(self, name: str) -> bool:
        """Whether it is true."""
        value = self._source.get(name)
        if value is not None and not isinstance(value, bool):
            raise self._make_type_error(name, "true or false", value)
        return value is True

    def inside(self, name: str) -> MediaObject | None:
        """An object inside."""
        value = self._source.get(name)
        return None if value is None else self._object(name, value)

    def needed(self, name: str) -> MediaObject:
        """An object inside that must be there."""
        if (found := self.inside(name)) is None:
            raise InputError(f"the field {self.path(name)!r} is missing")
        return found

    def objects(self, name: str) -> list[MediaObject]:
        """A list of objects."""
        return [self._object(f"{name}[{n}]", value) for n, value in enumerate(self._list(name))]

    def tags(self, name: str) -> list[list[str]]:
        """A list of lists of words."""
        found: list[list[str]] = []
        for n, value in enumerate(self._list(name)):
            if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
                raise self._make_type_error(f"{name}[{n}]", "a list of texts", value)
            found.append(list(value))
        return found

    def first(self, names: Iterable[str]) -> str:
        """The first of some texts that says anything; "" without one."""
        return next((value.strip() for name in names if (value := self.text(name)) and value.strip()), "")

    def path(self, name: str) -> str:
        """What a field is called for people."""
        return f"{self._path}.{name}" if self._path else name

    def _list(self, name: str) -> list[object]:
        if (value := self._source.get(name)) is None:
            return []
        if not isinstance(value, list):
            raise self._make_type_error(name, "a list", value)
        return value

    def _object(self, name: str, value: object) -> MediaObject:
        if not isinstance(value, Mapping):
            raise self._make_type_error(name, "an object", value)
        return MediaObject(value, self.path(name))

    def _make_type_error(self, name: str, wanted: str, value: object) -> InputError:
        return InputError(f"the field {self.path(name)!r} must be {wanted}, not {kind_of(value)}")


def attached(kind: str, *facts: object) -> str:
    """The line that describes an attachment: `[document: plan.pdf, 2,104 bytes, BQAC...]`."""
    told = ", ".join(str(fact) for fact in facts if fact not in (None, ""))
    return f"[{kind}: {told}]" if told else f"[{kind}]"


def sized(count: float | None) -> str:
    """How large a file is."""
    return "" if count is None else f"{int(count):,} bytes"


def lines(*parts: str) -> str:
    """What was said and what is attached, one below the other."""
    return "\n".join(part for part in parts if part.strip())
