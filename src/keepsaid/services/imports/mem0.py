"""Reads a JSON file of mem0: a list of memories as `get_all` returns it, or an object with the list as `results`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from keepsaid.domain import ids, timing
from keepsaid.services.imports.drafts import Draft, Finding, LeftOut, kind_of_words, list_in
from keepsaid.services.imports.files import ImportFiles, refused
from keepsaid.text.normal import kind_of

_NAME_CHARS = 200
_LISTS = ("results", "memories")
_ABOUT = ("user_id", "agent_id", "run_id", "categories", "metadata", "updated_at", "hash")
_LOOKS = re.compile(rb'"memory"\s{0,9}:\s{0,9}"')


class Mem0Reader:
    """Reads a file of mem0."""

    product = "mem0"

    def recognises(self, files: ImportFiles) -> bool:
        """Whether it is one file, and something in it has a `memory`."""
        return len(files.names) == 1 and _LOOKS.search(files.head(files.names[0])) is not None

    def read(self, files: ImportFiles, now: int) -> Iterator[Finding]:
        """Each memory of the list. Raises InputError."""
        name, *others = files.names
        if others:
            raise refused(f"{files.path} holds {len(others) + 1:,} files, where mem0 has one")
        items = files.document(name)
        if isinstance(items, dict):
            items = next((items[one] for one in _LISTS if isinstance(items.get(one), list)), None)
        if not isinstance(items, list):
            raise refused(f"{files.path} is not a list of memories, and holds none as `results`")
        for item in items:
            try:
                yield _draft(item, name, now)
            except ValueError as error:
                yield LeftOut(str(error))


def _draft(item: Any, file: str, now: int) -> Draft:
    if not isinstance(item, dict):
        raise ValueError(f"it is {kind_of(item)}, not an object")
    text = item.get("memory", item.get("text"))
    if not isinstance(text, str):
        raise ValueError("it has no text as `memory`")
    name = item.get("id")
    if not isinstance(name, str) or not 0 < len(name) <= _NAME_CHARS:
        raise ValueError(f"it has no `id` of 1 to {_NAME_CHARS} characters")
    return Draft(
        name,
        text,
        file,
        kind=kind_of_words(*list_in(item.get("categories"))),
        said_at=_said_at(item, now),
        who=next((str(item[one]) for one in ("user_id", "agent_id", "run_id") if item.get(one)), ""),
        about={one: item[one] for one in _ABOUT if item.get(one) is not None},
    )


def _said_at(item: dict[str, Any], now: int) -> int:
    given = item.get("created_at") or item.get("updated_at")
    if given is None:
        return now
    if not isinstance(given, str):
        raise ValueError(f"created_at is {kind_of(given)}, not a time as text")
    at = timing.once(given).at
    if not ids.is_time(at):
        raise ValueError("created_at is outside the years 1 to 9999")
    return at
