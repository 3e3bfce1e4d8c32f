"""Keys and sessions of a device of Matrix as rows of the operational store: one cursor for each.

Rows that changed are handed out to be stored with what changed them. Until then `rollback` takes them back, so that
what is in memory is never ahead of the store: a ratchet that was not stored has encrypted nothing that left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from keepsaid.domain.line import Cursor

_PREFIX = "e2ee"
_PART = re.compile(r"[!-~]{1,255}")
"""A part of a name: without spaces, so that no name of one kind can be that of another, and storable anywhere."""


def is_nameable(*parts: object) -> bool:
    """Whether all parts can stand in the name of a row: ids that came from outside are checked by it."""
    return all(isinstance(one, str) and _PART.fullmatch(one) for one in parts)


class CryptoRecords:
    """The rows among the stored cursors of an account, by names of several parts; each is a JSON object."""

    def __init__(self, cursors: Mapping[str, str]) -> None:
        self._stored = {name: value for name, value in cursors.items() if name.startswith(f"{_PREFIX} ")}
        self._changed: dict[str, str] = {}

    def read(self, *name: str) -> dict[str, Any] | None:
        """The row of a name; None where there is none."""
        key = _key(name)
        value = self._changed.get(key, self._stored.get(key, ""))
        return dict(json.loads(value)) if value else None

    def write(self, value: Mapping[str, object], *name: str) -> None:
        """Change a row; it is stored with the next commit. An empty one is none."""
        key, text = _key(name), json.dumps(value, separators=(",", ":")) if value else ""
        self._changed.pop(key, None)
        if text != self._stored.get(key, ""):
            self._changed[key] = text

    def names(self, kind: str) -> list[tuple[str, ...]]:
        """The names of the rows of a kind, which is the first part, without it."""
        start = f"{_PREFIX} {kind} "
        return [
            tuple(key.removeprefix(start).split(" "))
            for key, value in {**self._stored, **self._changed}.items()
            if key.startswith(start) and value
        ]

    def cursors(self, account: str) -> list[Cursor]:
        """The rows that changed and are not stored yet."""
        return [Cursor(account, key, value) for key, value in self._changed.items()]

    def commit(self) -> None:
        """The rows that were handed out are stored now."""
        self._stored |= self._changed
        self._changed = {}

    def rollback(self) -> None:
        """Take back what is not stored."""
        self._changed = {}


def _key(name: tuple[str, ...]) -> str:
    return " ".join((_PREFIX, *name))
