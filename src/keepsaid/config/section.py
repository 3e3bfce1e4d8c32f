"""The base class of all sections of the settings (short: every section imports it)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from keepsaid.text.normal import is_storable


class ConfigSection(BaseModel):
    """A part of the tree."""

    model_config = ConfigDict(frozen=True, extra="ignore", use_attribute_docstrings=True)

    @field_validator("*", mode="after")
    @classmethod
    def storable(cls, value: Any) -> Any:
        """Refuse text that no store can hold: it would fail each time it is written, not when it is set."""
        if not all(map(is_storable, _texts(value))):
            raise ValueError("it holds NUL or half of a character (a lone surrogate)")
        return value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple, set, frozenset)):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _texts(name)
            yield from _texts(one)
