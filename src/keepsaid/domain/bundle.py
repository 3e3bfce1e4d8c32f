"""Bundles: memory as it leaves a home and enters another, and the outcome of each record there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple, TypeVar

from keepsaid.domain import attributes, commits, learning, message, visibility
from keepsaid.domain.memory import GLOBAL, OWNER, Memory, NewMemory, person_scope
from keepsaid.text.normal import digest, parted
from keepsaid.values import frozen

T = TypeVar("T")

RECORDS_MAX = 25
CHARS_MAX = 500_000
"""The records, and the characters in all, that one commit imports at most."""

SPARE_IDS = 5
"""Ids for each record of a commit: one where its own is taken, and some for memories that its slot divides."""

_BY_HAND = frozenset({"person", "note", "external"})
_SCOPES = {"person": 3, "conversation": 3, "lane": 4}
_COMPARED = (
    *("kind", "text", "scope", "trust", "lane", "speaker", "subject", "attribute", "value"),
    *("speaker_id", "subject_id", "chat_of"),
)


class BundleStatement(NamedTuple):
    """One time that a memory was said, under its key; `counted` says that it is evidence. Times: milliseconds UTC."""

    key: str
    start: int
    said_at: int
    ends: int | None
    corrects: bool
    counted: bool


class Named(NamedTuple):
    """Whom or what a memory mentions, by the name it has there; `since` is when it was first mentioned anywhere."""

    entity: str
    since: int
    name: str
    weight: float
    at: int


@frozen
class BundleEntry:
    """A memory with all that hangs on it; other memories are named by their keys.

    `content_hash` is what a tombstone of its words is made from, `replaced_by` what took its place, `said_in` the
    statement that each of its sources belongs to. The version of its text is left out: it counts in its home alone.
    """

    memory: Memory
    content_hash: bytes
    replaced_by: str = ""
    confirmed_at: int | None = None
    last_decayed_at: int | None = None
    said_in: tuple[str, ...] = ()
    statements: tuple[BundleStatement, ...] = ()
    mentions: tuple[Named, ...] = ()
    widened: tuple[visibility.MemoryShared, ...] = ()

    @property
    def slot(self) -> bytes | None:
        """The slot it speaks of; None for none."""
        new = self.memory.new
        return attributes.slot_of(new.subject_id or new.subject, new.attribute, new.value)


@frozen
class BundleLink:
    """That one memory took the place of another, which then holds as it says here."""

    key: str
    replaced_by: str
    state: str
    valid_to: int | None


@frozen
class Edge:
    """An association between two memories, by their keys."""

    source: str
    target: str
    relation: str
    weight: float
    at: int


@frozen
class Tombstone:
    """A keyed hash of what was forgotten."""

    hash: bytes
    at: int


Record = BundleEntry | BundleLink | Edge | visibility.Person | Tombstone


class ImportOutcome(StrEnum):
    """The outcome of a record: it is new; the same is there; what is there differs, and stays; or it is rejected."""

    NEW = "new"
    SAME = "same"
    CONFLICT = "conflict"
    REJECTED = "rejected"


@frozen
class ImportVerdict:
    """The outcome of a record, and why it is not new.

    `beside` are the memories that speak of its slot in this home, `like` those that say it in the same words, by key.
    """

    outcome: ImportOutcome
    why: str = ""
    beside: tuple[str, ...] = ()
    like: tuple[str, ...] = ()


@frozen
class TakeIn(commits.Commit[tuple[ImportVerdict, ...]]):
    """Take over records of a bundle, in order; what is there already stays as it is. Returns the outcome of each.

    `ids` are SPARE_IDS for each. What holds in the `contested` slots is decided again by all statements about them
    here and there. `at` is milliseconds UTC.
    """

    records: tuple[Record, ...]
    ids: tuple[int, ...]
    contested: tuple[bytes, ...]
    at: int


FORGOTTEN = ImportVerdict(ImportOutcome.REJECTED, "it was forgotten here")


def key_print(key: bytes | None) -> str:
    """A value that identifies the key of tombstones and does not reveal it; "" for none."""
    return "" if key is None else digest("forgotten.key", key).hex()


def scope_fault(scope: str) -> str:
    """Why nobody can read a scope; "" where somebody can."""
    kind, _, rest = scope.partition(":")
    count = _SCOPES.get(kind)
    is_whole = count is not None and len(parted(":", rest, count)) >= count and rest.strip(":")
    return "" if is_whole or scope in (GLOBAL, person_scope(OWNER)) else f"nobody can read the scope {scope[:80]!r}"


def allowed(entry: BundleEntry, ceiling: message.Trust) -> BundleEntry:
    """The memory as a source of this trust may state it: pins, certainties and corrections are the owner's alone."""
    if ceiling is message.Trust.OWNER:
        return entry
    new = replace(entry.memory.new, trust=visibility.least((entry.memory.new.trust, ceiling)), corrects=False)
    statements = tuple(one._replace(corrects=False) for one in entry.statements)
    return replace(entry, memory=replace(entry.memory, new=new, pinned=False), confirmed_at=None, statements=statements)


def gated(entry: BundleEntry) -> str:
    """Why a memory is not worth taking over, "" when it is.

    What was learned passes the gate of learning again; what somebody wrote down by hand never had to.
    """
    new = entry.memory.new
    if new.kind not in learning.LEARNABLE:
        return "" if new.text.strip() else "it says nothing"
    if new.trust is message.Trust.EXTERNAL:
        return "what outsiders wrote is not learned"
    if len(new.text.encode("utf-8", "replace")) > learning.BYTES_MAX:
        return f"it is longer than {learning.BYTES_MAX:,} bytes"
    by_hand = any(source.kind in _BY_HAND for source in new.sources)
    return ("" if new.text.strip() else "it says nothing") if by_hand else learning.junk(new)


def difference(there: NewMemory, given: NewMemory) -> str:
    """In what two memories of one name differ; "" where they say the same."""
    return ", ".join(name for name in _COMPARED if getattr(there, name) != getattr(given, name))


def cyclic(replaced: Mapping[str, str]) -> frozenset[str]:
    """The memories that, by what took the place of what, would take the place of themselves."""
    done: set[str] = set()
    found: set[str] = set()
    for first in replaced:
        way: dict[str, int] = {}
        key = first
        while key in replaced and key not in done and key not in way:
            way[key] = len(way)
            key = replaced[key]
        if key in way:
            found.update(one for one, place in way.items() if place >= way[key])
        done.update(way)
    return frozenset(found)


def in_batches(items: Iterable[T], weight: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """The items in runs that one commit takes: by number, and by how much each weighs."""
    batch: list[T] = []
    load = 0
    for item in items:
        batch.append(item)
        load += weight(item)
        if len(batch) >= RECORDS_MAX or load >= CHARS_MAX:
            yield batch
            batch, load = [], 0
    if batch:
        yield batch


def weight_of(record: Record | None) -> int:
    """How much a record weighs in a batch: the characters of its words."""
    return len(record.memory.new.text) + len(record.memory.new.metadata) if isinstance(record, BundleEntry) else 1
