"""The lines of a bundle: each record as a JSON object, and back, refusing what does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from keepsaid.domain import graph, ids, message, visibility
from keepsaid.domain.bundle import BundleEntry, BundleLink, BundleStatement, Edge, Named, Record, Tombstone, scope_fault
from keepsaid.domain.memory import Kind, Memory, NewMemory, Source
from keepsaid.text import json_reader, normal

Json = dict[str, Any]
T = TypeVar("T")

STATES = ("active", "superseded", "archived", "merged")
"""The states a memory can be in that is not forgotten."""

_NAME_CHARS = 4_000
_HASH_BYTES = 16
_COUNT_MAX = 1 << 53


class BundleLineError(ValueError):
    """A line is not a record of a bundle; the message says why."""


def line_of(record: Record) -> Json:
    """A record as the object of its line."""
    match record:
        case BundleEntry():
            return {"type": "memory", **_entry_fields(record)}
        case Edge():
            return {"type": "association", **asdict(record)}
        case BundleLink():
            return {"type": "link", **asdict(record)}
        case visibility.Person():
            joined = [{"name": one.name, "at": one.at, "by": one.by} for one in record.identities]
            return {"type": "person", "id": record.id, "identities": joined}
        case Tombstone():
            return {"type": "tombstone", "hash": record.hash.hex(), "at": record.at}


def _entry_fields(entry: BundleEntry) -> Json:
    memory, new = entry.memory, entry.memory.new
    sources = zip(new.sources, entry.said_in, strict=True)
    values = {name: getattr(new, name) for name in _NEW} | {name: getattr(memory, name) for name in _STORED}
    values |= {
        "id": ids.show("memory", memory.id),
        "kind": str(new.kind),
        "trust": str(new.trust),
        "lane": None if new.lane is None else list(new.lane),
        "stated_to": new.valid_to,
        "superseded_by": entry.replaced_by,
        "confirmed_at": entry.confirmed_at,
        "last_decayed_at": entry.last_decayed_at,
        "content_hash": entry.content_hash.hex(),
        "sources": [{"kind": one.kind, "ref": one.ref, "statement": statement} for one, statement in sources],
        "statements": [one._asdict() for one in entry.statements],
        "mentions": [one._asdict() for one in entry.mentions],
        "widened": [asdict(one) for one in entry.widened],
    }
    return {name: values[name] for name in _ENTRY}


def record_in(fields: object) -> Record:
    """The record of a line; raises BundleLineError."""
    if not isinstance(fields, dict):
        raise BundleLineError(f"it is {normal.kind_of(fields)}, not an object")
    if (made := _MADE.get(str(fields.get("type")))) is None:
        raise BundleLineError(f"there is no record of type {str(fields.get('type'))[:40]!r}")
    return made({name: value for name, value in fields.items() if name != "type"})


def _read(fields: object, table: Mapping[str, Callable[[Any], Any]]) -> Json:
    """The fields that a table names, each checked by it; nothing may be missing or left over."""
    if not isinstance(fields, dict):
        raise BundleLineError(f"{normal.kind_of(fields)} stands where an object belongs")
    if wrong := sorted({*map(str, fields)} ^ {*table}):
        what = "does not belong there" if wrong[0] in fields else "is missing"
        raise BundleLineError(f"{wrong[0][:40]!r} {what}")
    told = {}
    for name, check in table.items():
        try:
            told[name] = check(fields[name])
        except (ValueError, TypeError) as error:
            raise BundleLineError(f"{name}: {error}") from None
    return told


def _check(*rules: tuple[Callable[[Any], bool], str]) -> Callable[[Any], Any]:
    """Lets through what keeps all rules; else tells the first that it breaks, `{kind}` for what it is."""

    def checked(value: Any) -> Any:
        for keeps, broken in rules:
            if not keeps(value):
                raise BundleLineError(broken.format(kind=normal.kind_of(value)))
        return value

    return checked


_IS_TEXT = (lambda value: isinstance(value, str), "it must be a text, not {kind}")
_IS_SHORT = (lambda value: len(value) <= _NAME_CHARS, f"it has more than {_NAME_CHARS:,} characters")
_IS_SHARE = (
    lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1,
    "it must be a number from 0 to 1",
)
_text = _check(_IS_TEXT)
_short = _check(_IS_TEXT, _IS_SHORT)
_named = _check(_IS_TEXT, _IS_SHORT, (bool, "it is empty"))
_called = _check(_IS_TEXT, _IS_SHORT, (lambda value: graph.name_words(value) != "", "a name has words"))
_flag = _check((lambda value: isinstance(value, bool), "it must be true or false, not {kind}"))
_list = _check((lambda value: isinstance(value, list), "it must be a list, not {kind}"))
_count = _check(
    (lambda value: type(value) is int and 0 <= value < _COUNT_MAX, "it must be a whole number, not below 0")
)
_time = _check(
    (lambda value: type(value) is int and ids.is_time(value), "it must be milliseconds UTC within years 1 to 9999")
)


def _as_float(check: Callable[[Any], Any]) -> Callable[[Any], float]:
    return lambda value: float(check(value))


_share = _as_float(_check(_IS_SHARE))
_weight = _as_float(_check(_IS_SHARE, (bool, "it must be above 0")))


def _hash(value: Any) -> bytes:
    found = bytes.fromhex(_text(value))
    if len(found) != _HASH_BYTES:
        raise BundleLineError(f"it must be {_HASH_BYTES} bytes in hexadecimal")
    return found


def _number(value: Any) -> int:
    number = ids.read("memory", _text(value))
    if not number or number > ids.MAX_ID:
        raise BundleLineError("it must be the id of a memory: mem_...")
    return number


def _one_of(*names: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in names:
            raise BundleLineError(f"{str(value)[:40]!r} is not one of: {', '.join(names)}")
        return str(value)

    return check


def _scope(value: Any) -> str:
    if why := scope_fault(_short(value)):
        raise BundleLineError(why)
    return str(value)


def _maybe(check: Callable[[Any], T]) -> Callable[[Any], T | None]:
    return lambda value: None if value is None else check(value)


def _all_of(check: Callable[[Any], T]) -> Callable[[Any], tuple[T, ...]]:
    return lambda value: tuple(check(one) for one in _list(value))


def _lane(value: Any) -> message.Lane:
    parts = _all_of(_short)(value)
    if len(parts) != len(message.Lane._fields):
        raise BundleLineError("it must be four texts: channel, account, conversation, key")
    return message.Lane(*parts)


def _metadata(value: Any) -> str:
    if not isinstance(json_reader.read_json(_text(value).encode("utf-8", "surrogatepass")), dict):
        raise BundleLineError("it must be a JSON object, as text")
    return str(value)


_SOURCE = {"kind": _named, "ref": _short, "statement": _short}
_SAID = {"key": _named, "start": _time, "said_at": _time, "ends": _maybe(_time), "corrects": _flag, "counted": _flag}
_MENTION = {"entity": _named, "since": _time, "name": _called, "weight": _weight, "at": _time}
_WIDENED = {"before": _scope, "after": _scope, "by": _short, "reason": _text, "at": _time}
_ENTRY: Mapping[str, Callable[[Any], Any]] = {
    "id": _number,
    "key": _named,
    "kind": _one_of(*Kind),
    "state": _one_of(*STATES),
    "text": _text,
    "scope": _scope,
    "trust": _one_of(*message.Trust),
    "derived": _flag,
    "lane": _maybe(_lane),
    "speaker": _short,
    "speaker_id": _short,
    "subject": _short,
    "subject_id": _short,
    "chat_of": _short,
    "attribute": _short,
    "value": _text,
    "said_at": _time,
    "recorded_at": _time,
    "valid_from": _maybe(_time),
    "stated_to": _maybe(_time),
    "valid_to": _maybe(_time),
    "superseded_by": _short,
    "importance": _share,
    "confidence": _share,
    "corrects": _flag,
    "pinned": _flag,
    "confirmed_at": _maybe(_time),
    "evidence": _count,
    "access_count": _count,
    "last_access_at": _maybe(_time),
    "last_decayed_at": _maybe(_time),
    "content_hash": _hash,
    "metadata": _metadata,
    "sources": _all_of(lambda one: _read(one, _SOURCE)),
    "statements": _all_of(lambda one: BundleStatement(**_read(one, _SAID))),
    "mentions": _all_of(lambda one: Named(**_read(one, _MENTION))),
    "widened": _all_of(lambda one: visibility.MemoryShared(**_read(one, _WIDENED))),
}
"""The fields of a memory, in the order in which they are written."""

_STORED = ("state", "recorded_at", "access_count", "last_access_at", "valid_to", "evidence", "pinned")
_NEW = tuple(name for name in _ENTRY if name in NewMemory.__dataclass_fields__ and name not in (*_STORED, "sources"))


def _entry(fields: Json) -> BundleEntry:
    told = _read(fields, _ENTRY)
    sources = told["sources"]
    new = NewMemory(
        **{name: told[name] for name in _NEW if name not in ("kind", "trust")},
        kind=Kind(told["kind"]),
        trust=message.Trust(told["trust"]),
        valid_to=told["stated_to"],
        sources=tuple(Source(one["kind"], one["ref"]) for one in sources),
    )
    if told["superseded_by"] == new.key:
        raise BundleLineError("superseded_by: nothing takes its own place")
    return BundleEntry(
        Memory(told["id"], new, **{name: told[name] for name in _STORED}),
        told["content_hash"],
        told["superseded_by"],
        told["confirmed_at"],
        told["last_decayed_at"],
        tuple(one["statement"] for one in sources),
        told["statements"],
        told["mentions"],
        told["widened"],
    )


_EDGE = {"source": _named, "target": _named, "relation": _one_of(*graph.Relation), "weight": _weight, "at": _time}
_LINK = {"key": _named, "replaced_by": _named, "state": _one_of(*STATES), "valid_to": _maybe(_time)}
_JOINED = {"name": _named, "at": _time, "by": _named}
_PERSON = {"id": _named, "identities": _all_of(lambda one: visibility.Joined(**_read(one, _JOINED)))}
_TOMBSTONE = {"hash": _hash, "at": _time}


def _person(fields: Json) -> visibility.Person:
    person = visibility.Person(**_read(fields, _PERSON))
    names = {one.name for one in person.identities}
    if len(names) < 2 or len(names) < len(person.identities):
        raise BundleLineError("a person is made of two or more identities, each named once")
    return person


_MADE: Mapping[str, Callable[[Json], Record]] = {
    "memory": _entry,
    "association": lambda fields: Edge(**_read(fields, _EDGE)),
    "link": lambda fields: BundleLink(**_read(fields, _LINK)),
    "person": _person,
    "tombstone": lambda fields: Tombstone(**_read(fields, _TOMBSTONE)),
}
