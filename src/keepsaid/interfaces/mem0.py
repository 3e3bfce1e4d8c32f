"""Memories of mem0: what its `get_all` and its exports hold, as memories to be learned here."""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any

from keepsaid.domain.bundle import Entry
from keepsaid.domain.ids import moment
from keepsaid.domain.learning import LEARNABLE
from keepsaid.domain.memory import IMPORTANCE, OWNER, Kind, Memory, NewMemory, Source, is_time, person_scope
from keepsaid.domain.message import Trust
from keepsaid.errors import InputError
from keepsaid.memory.importing import Line
from keepsaid.text.normal import kind_of, normalise

FILE_BYTES_MAX = 256_000_000
EVERYBODY = "*"
"""Stands for whoever is not named."""

_HASH_BYTES = 16
_NAME_CHARS = 200
_METADATA_CHARS = 20_000
_LISTS = ("results", "memories")
_ABOUT = ("user_id", "agent_id", "run_id", "categories", "metadata", "updated_at", "hash")


class Mem0File:
    """A JSON file of mem0, read whole; `persons` says who is who here, by what mem0 calls them.

    An item is counted as a line, the first is 1. Raises InputError with nothing imported.
    """

    def __init__(self, path: Path, persons: Mapping[str, str], now: int) -> None:
        self._items = _items(path)
        self._persons = persons
        self._now = now

    @property
    def key_print(self) -> str:
        """It has no tombstones."""
        return ""

    def lines(self, wanted: Container[int] | None = None) -> Iterator[Line]:
        """Each item, or those that are wanted, as a memory, or why it is none."""
        for number, item in enumerate(self._items, start=1):
            if wanted is not None and number not in wanted:
                continue
            try:
                yield Line(number, self._entry(item, number))
            except ValueError as error:
                yield Line(number, None, str(error))

    def _entry(self, item: Any, number: int) -> Entry:
        """Its words as a memory made from others' words, heard by its person in direct chats."""
        if not isinstance(item, dict):
            raise ValueError(f"it is {kind_of(item)}, not an object")
        text = item.get("memory", item.get("text"))
        if not isinstance(text, str):
            raise ValueError("it has no text as `memory`")
        name = item.get("id")
        if not isinstance(name, str) or not 0 < len(name) <= _NAME_CHARS:
            raise ValueError(f"it has no `id` of 1 to {_NAME_CHARS} characters")
        person, kind = self._person(item), _kind(item)
        new = NewMemory(
            key=f"import:mem0:{name}",
            kind=kind,
            text=normalise(text).strip(),
            scope=person_scope(person),
            trust=Trust.OWNER if person == OWNER else Trust.KNOWN,
            said_at=_said_at(item, self._now),
            importance=IMPORTANCE[kind],
            sources=(Source("import", f"mem0:{name}"),),
            derived=True,
            metadata=_metadata(item),
            subject_id=person,
        )
        return Entry(Memory(number, new, "active", self._now), bytes(_HASH_BYTES), said_in=("",))

    def _person(self, item: dict[str, Any]) -> str:
        called = next((str(item[name]) for name in ("user_id", "agent_id", "run_id") if item.get(name)), "")
        person = self._persons.get(called, self._persons.get(EVERYBODY))
        if person is None:
            raise ValueError(f"nobody here is {called[:80]!r}: say who it is with --as '{called[:80]}=owner'")
        return person


def _items(path: Path) -> list[Any]:
    try:
        size = path.stat().st_size
        raw = path.read_bytes() if size <= FILE_BYTES_MAX else b""
    except OSError as error:
        raise _refused(f"{path} cannot be read ({error.strerror})") from error
    if size > FILE_BYTES_MAX:
        raise _refused(f"{path} has {size:,} bytes; {FILE_BYTES_MAX:,} are allowed")
    try:
        told = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _refused(f"{path} is not JSON") from error
    if isinstance(told, dict):
        told = next((told[name] for name in _LISTS if isinstance(told.get(name), list)), None)
    if not isinstance(told, list):
        raise _refused(f"{path} is no list of memories, and holds none as `results`")
    return told


def _refused(what: str) -> InputError:
    return InputError(what, safe="Nothing was imported.", hint="keepsaid data import --help")


def _kind(item: dict[str, Any]) -> Kind:
    """What the last word of one of its categories names, as in `food_preferences`; else a fact."""
    categories = item.get("categories")
    for category in categories if isinstance(categories, list) else ():
        word = str(category).lower().replace(" ", "_").rsplit("_", 1)[-1]
        for one in LEARNABLE:
            if word in (one, f"{one}s", f"{one[:-1]}ies"):
                return one
    return Kind.FACT


def _said_at(item: dict[str, Any], now: int) -> int:
    given = item.get("created_at") or item.get("updated_at")
    if given is None:
        return now
    if not isinstance(given, str):
        raise ValueError(f"created_at is {kind_of(given)}, not a time as text")
    at = moment(given)
    if not is_time(at):
        raise ValueError("created_at is outside the years 1 to 9999")
    return at


def _metadata(item: dict[str, Any]) -> str:
    """What else mem0 tells of it; where that is too much, only that it is from there."""
    about = {name: item[name] for name in _ABOUT if item.get(name) is not None}
    told = json.dumps({"mem0": about}, ensure_ascii=False)
    return told if len(told) <= _METADATA_CHARS else '{"mem0": {}}'
