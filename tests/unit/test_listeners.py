"""No read of memory is there without somebody who listens: every way into the store, by what it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType

import pytest

import keepsaid.adapters.sql.memory as sql
from keepsaid.adapters.sqlite.stores import SqliteMemories
from keepsaid.memory.recall.recollection import Recollection
from keepsaid.ports import memory_store

DEAF = {
    "keep": "writes",
    "relate": "writes",
    "learn": "writes",
    "correct": "writes",
    "pin": "writes",
    "confirm": "writes",
    "undo": "writes; its request names who listens",
    "merge": "writes",
    "join": "writes",
    "split": "writes",
    "share": "writes, and returns scopes, never words",
    "keep_vectors": "writes",
    "close": "ends",
    "measure": "measures commits",
    **dict.fromkeys(("add_tombstones", "empty_log", "erase", "hide"), "forgets"),
    **dict.fromkeys(
        ("count", "holding", "lineage", "named", "revived", "said_elsewhere", "tombstones"),
        "what forgetting reaches; who may ask for it is decided before",
    ),
    **dict.fromkeys(("holdings", "outstanding", "runs", "step"), "upkeep, in numbers and ids"),
    **dict.fromkeys(("among_learned", "related_upto", "unrelated"), "what is to be related, by the caretaker"),
    **dict.fromkeys(("count_rulings_since", "rule", "undecided"), "what stands close, for the caretaker, and writes"),
    **dict.fromkeys(("entries", "learned", "loose", "texts", "withdrawn"), "the owner's audit, out of which come ids"),
    **dict.fromkeys(("drop", "put_back"), "ends or undoes a forgetting, of which nothing is told"),
    **dict.fromkeys(("waiting", "drop_news"), "what happened to which memory, by ids, for the journal; and ends that"),
    "archive": "writes",
    "silence": "forgets",
    **dict.fromkeys(("read", "remove"), "hashes of what was forgotten; no words"),
    **dict.fromkeys(("repeated", "in_texts", "in_memory"), "which of the asker's own words were forgotten, by hashes"),
    "take": "writes, what a bundle of the owner's holds",
    "look": "what would become of records that the asker has; no words of others",
    "adopt_key": "writes",
    "key_print": "which key tombstones are made with; no words",
    "joined": "who is one person, by ids, for the owner's command",
    "counts": "numbers of the whole store, for the owner's status; no words",
    "read_document_frequencies": "in how many pieces the words stand that the asker wrote; no words of others",
    "alike": "which of the ids that the asker was given say the same; no words",
    "unembedded": "what has no vector yet, for the embedder alone",
    "of": "the bulletin of one scope, which a listener was found to hear",
    "material": "what bulletins of one scope are made from, for that same scope",
    "spaces": "names of vector spaces",
    "joined_with": "who is one person, by ids",
    "everybody": "who is one person, by ids, for the owner's command",
    "seen": "who spoke, for the owner's command",
    "render_bulletins": "makes its own listener from who wrote",
    "remind": "makes its own listener from who wrote",
}
"""What takes no listener, and why it needs none."""

PORTS = (memory_store, memory_store)
WAYS_IN = (
    *(
        one
        for module in (import_module(found.name) for found in iter_modules(sql.__path__, f"{sql.__name__}."))
        for name, one in inspect.getmembers(module, inspect.isclass)
        if name.startswith("Sql") and one.__module__ == module.__name__
    ),
    SqliteMemories,
    Recollection,
)
"""All that a memory store is made of, and recall over it."""

_READ_NOTHING = {"Editor", "Embedder"}
"""Ports beside those of the store: models, which are given what a listener heard."""


def public(of: type) -> Iterator[tuple[str, Callable[..., object]]]:
    return ((name, one) for name, one in inspect.getmembers(of, inspect.isfunction) if not name.startswith("_"))


def listens(method: Callable[..., object]) -> bool:
    first = list(inspect.signature(method).parameters.values())[1:2]
    heard_by = bool(first) and first[0].annotation in ("Listener", "Sequence[Listener]")
    return heard_by and first[0].default is inspect.Parameter.empty


def protocols(port: ModuleType) -> Iterator[type]:
    return (
        one
        for _, one in inspect.getmembers(port, inspect.isclass)
        if one.__module__ == port.__name__ and getattr(one, "_is_protocol", False) and one.__name__ not in _READ_NOTHING
    )


@pytest.mark.parametrize("way", [*WAYS_IN, *(one for port in PORTS for one in protocols(port))])
def test_every_read_names_who_listens_first(way: type) -> None:
    deaf = [name for name, one in public(way) if not listens(one)]
    assert [name for name in deaf if name not in DEAF] == []


def test_what_takes_no_listener_is_counted_and_there() -> None:
    there = {name for way in WAYS_IN for name, one in public(way) if not listens(one)}
    assert there | {"remind", "render_bulletins"} == set(DEAF)
