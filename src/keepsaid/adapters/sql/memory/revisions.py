"""Revisions of memories: corrections, pins and merges by a person, and rulings on pairs that stand close."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from keepsaid.adapters.sql.memory.graph import Relate, relate
from keepsaid.adapters.sql.memory.learning import SPARE_IDS, hold, learned, statements_of
from keepsaid.adapters.sql.memory.rows import bound, memories, statements, without_secrets
from keepsaid.adapters.sql.query import every, load, only, reads
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.domain.attributes import SlotStatement, periods, single, value_name
from keepsaid.domain.commits import Commit
from keepsaid.domain.graph import Association, Relation
from keepsaid.domain.learning import LEARNABLE, LearnOutcome, LearnResult, Pair, Ruled, RulePairs, Ruling
from keepsaid.domain.memory import Listener, Memory, NewMemory
from keepsaid.domain.message import Trust
from keepsaid.ports.memory_maintenance import Undecided
from keepsaid.ports.redactor import Redactor
from keepsaid.ports.runtime import Ids
from keepsaid.ports.store_views import Operations

SQL = statements("memory_truth")


@dataclass(frozen=True, slots=True)
class Correct(Commit[LearnResult]):
    """Put a memory right: `memory` takes its place, in its slot and scope; what it said before is kept as past.

    `ids` are one for what is new and SPARE_IDS more. A memory that is not there is refused.
    """

    memory_id: int
    memory: NewMemory
    ids: tuple[int, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Pin(Commit[bool]):
    """Pin a memory or unpin it; False when there is none."""

    memory_id: int
    pinned: bool


@dataclass(frozen=True, slots=True)
class Confirm(Commit[bool]):
    """Take a memory for certain; False when there is none. `at` is milliseconds UTC."""

    memory_id: int
    at: int


@dataclass(frozen=True, slots=True)
class ArchiveMemories(Commit[tuple[int, ...]]):
    """Archive memories, or restore archived ones (`back`) as used at `at` (milliseconds UTC).

    The result is the ids that were changed.
    """

    memory_ids: tuple[int, ...]
    back: bool
    at: int


@dataclass(frozen=True, slots=True)
class Merge(Commit[bool]):
    """Have `into` stand for the others, with their sources; False, and nothing done, when they cannot be merged."""

    into: int
    others: tuple[int, ...]
    at: int


def _history(db: SqlSession, listener: Listener, memory_id: int) -> Sequence[Memory]:
    """All memories of the slot of this one that the listener may hear, in the order in which they began to hold.

    Of one that has no slot, it and those before and after it; none when it may not be heard.
    """
    return memories(db, SQL["history"], {**bound(listener), "id": memory_id})


class SqlRevisions:
    """Versions of the memories of one store; `writer` must apply MEMORY_TABLE."""

    def __init__(self, writer: Operations, readers: SqlReaders, ids: Ids, redactor: Redactor | None = None) -> None:
        self._writer = writer
        self._readers = readers
        self._ids = ids
        self._redactor = redactor

    history = reads(_history)

    async def correct(self, memory_id: int, memory: NewMemory, at: int) -> LearnResult:
        """Put a memory right; the new words stand in its slot and scope. Again by the same key it does nothing."""
        [memory] = await without_secrets(self._redactor, [memory])
        return await self._writer.apply(Correct(memory_id, memory, self._some(1 + SPARE_IDS), at))

    async def pin(self, memory_id: int, *, pinned: bool) -> bool:
        """Pin a memory, so that it never fades, or unpin it; False when there is no such memory."""
        return await self._writer.apply(Pin(memory_id, pinned))

    async def confirm(self, memory_id: int, at: int) -> bool:
        """Take a memory for certain from now on (milliseconds UTC); False when there is no such memory."""
        return await self._writer.apply(Confirm(memory_id, at))

    async def archive(self, memory_ids: Sequence[int], at: int, *, back: bool = False) -> tuple[int, ...]:
        """Archive memories, or restore archived ones (`back`) as used at `at` (milliseconds UTC).

        Returns the ids that were changed. Episodes and summaries are never archived.
        """
        return await self._writer.apply(ArchiveMemories(tuple(memory_ids), back, at))

    async def merge(self, into: int, others: Sequence[int], at: int) -> bool:
        """Have one memory stand for others that say the same, with their sources; they are kept, and never recalled.

        All or none: False when one is not there or was merged before, is an episode or a summary, is of another scope
        or slot than `into`, or something else held between them.
        """
        return await self._writer.apply(Merge(into, tuple(others), at))

    def _some(self, count: int) -> tuple[int, ...]:
        return tuple(self._ids.next() for _ in range(count))


def pin(db: SqlSession, commit: Pin) -> bool:
    """Apply one commit."""
    return bool(every(db, SQL["pin"], {"id": commit.memory_id, "pinned": commit.pinned}))


def confirm(db: SqlSession, commit: Confirm) -> bool:
    """Apply one commit."""
    return bool(every(db, SQL["confirm"], {"id": commit.memory_id, "at": commit.at}))


def archive(db: SqlSession, commit: ArchiveMemories) -> tuple[int, ...]:
    """Apply one commit."""
    wanted = {"ids": json.dumps(commit.memory_ids), "kinds": json.dumps(sorted(LEARNABLE)), "at": commit.at}
    rows = every(db, SQL["bring_back" if commit.back else "put_away"], wanted)
    db.reindex()
    return tuple(sorted(int(str(row[0])) for row in rows))


def correct(db: SqlSession, commit: Correct) -> LearnResult:
    """Apply one commit."""
    old = next(iter(memories(db, SQL["corrected"], {"id": commit.memory_id})), None)
    if old is None or old.new.kind not in LEARNABLE:
        return LearnResult(0, LearnOutcome.REFUSED, "there is no such memory to be corrected")
    slotted = bool(old.new.attribute and (old.new.subject_id or old.new.subject) and old.new.value)
    new = replace(
        commit.memory,
        kind=old.new.kind,
        scope=old.new.scope,
        lane=old.new.lane,
        subject=old.new.subject,
        subject_id=old.new.subject_id,
        chat_of=old.new.chat_of,
        attribute=old.new.attribute if slotted else "",
        value=(commit.memory.value or commit.memory.text) if slotted else "",
        importance=old.new.importance,
        corrects=True,
    )
    done = learned(db, new, commit.ids, commit.at, anew=not slotted)
    if not slotted and done.how is LearnOutcome.NEW:
        db.execute(SQL["replace"], {"id": old.id, "after": done.memory_id, "at": new.said_at})
        relate(db, Relate((Association(done.memory_id, old.id, Relation.UPDATES),), (), commit.at))
        done = replace(done, how=LearnOutcome.UPDATES)
    db.reindex()
    return done


def merge(db: SqlSession, commit: Merge) -> bool:
    """Apply one commit."""
    wanted = (commit.into, *commit.others)
    rows: list[tuple[Any, ...]]
    rows = [row for id_ in wanted for row in every(db, SQL["standing"], {"id": id_})]
    mergeable = len({*wanted}) == len(rows) == len(wanted) > 1 and all(row[0] in LEARNABLE for row in rows)
    if not mergeable or len({row[2:] for row in rows}) > 1:
        return False
    _, attribute, _, slot = rows[0]
    told = statements_of(db, slot) if slot is not None else []
    if not single(attribute):
        told = [one for one in told if one.memory_id in wanted]
    held = periods(_moved(told, commit)) if slot is not None else []
    if not all(period.founder.founds for period in held):
        return False
    db.execute(SQL["say_founder"], {"ids": json.dumps(wanted)})
    for id_ in wanted:
        db.execute(SQL["name_source"], {"memory_id": id_})
    for id_ in commit.others:
        moved = {"of": id_, "to": commit.into}
        db.execute(SQL["take_statements"], moved)
        db.execute(SQL["take_sources"], moved)
        db.execute(SQL["unsay"], moved)
    db.execute(SQL["counted"], {"id": commit.into})
    hold(db, held, (), commit.at)
    db.reindex()
    return True


def _moved(told: Sequence[SlotStatement], commit: Merge) -> list[SlotStatement]:
    """All that was told of the slot, as it stands once what the others say is what `into` says."""
    value = next(one.value for one in told if one.memory_id == commit.into)
    return [
        replace(one, memory_id=commit.into, founds=False, value=value) if one.memory_id in commit.others else one
        for one in told
    ]


MEMORY_PAIRS = load("memory_pairs")
_KINDS = json.dumps(sorted(LEARNABLE))
_LOOKED_AT = 256


def _undecided(db: SqlSession, after: int, limit: int) -> Undecided:
    """Pairs of related memories that hold, whose newer-kept one is behind `after`, up to a limit."""
    wanted = {"after": after, "limit": max(limit, _LOOKED_AT), "kinds": _KINDS}
    rows: list[tuple[Any, ...]] = every(db, MEMORY_PAIRS["undecided"], wanted)
    found: list[Pair] = []
    for row in rows:
        found.extend(_pairs(row))
        if len(found) == limit:
            return Undecided(tuple(found), row[1] - 1)
    upto = rows[-1][1] - 1 if len(rows) == wanted["limit"] else int(only(db, MEMORY_PAIRS["newest"])[0])
    return Undecided(tuple(found), max(after, upto))


class SqlPairs:
    """Pairs; `writer` must know MEMORY_TABLE."""

    def __init__(self, writer: Operations, readers: SqlReaders) -> None:
        self._writer = writer
        self._readers = readers

    undecided = reads(_undecided)

    async def count_rulings_since(self, at: int) -> int:
        """Count the pairs that a model ruled on after a time (milliseconds UTC)."""
        return await self._readers.run(lambda db: int(only(db, MEMORY_PAIRS["asked_since"], (at,))[0]))

    async def rule(self, rulings: Sequence[Ruled], at: int) -> int:
        """Keep rulings and do what they come to; returns how many were new. Raises a StoreError with nothing done."""
        return await self._writer.apply(RulePairs(tuple(rulings), at)) if rulings else 0


class _Standing(NamedTuple):
    """A memory of a pair, as it stands."""

    slot: bytes | None
    trust: str
    since: int


def _pairs(row: tuple[Any, ...]) -> list[Pair]:
    """The pair of a row, unless its slot decides which of the two holds."""
    kept, came, text, other, since, then, one_slot, value, another = row
    equal = bool(one_slot) and value_name(value) == value_name(another)
    if one_slot and not equal:
        return []
    if (since, kept) <= (then, came):
        return [Pair(kept, came, (text, other), (since, then), equal)]
    return [Pair(came, kept, (other, text), (then, since), equal)]


def rule(db: SqlSession, commit: RulePairs) -> int:
    """Apply one commit."""
    new = 0
    for one in commit.rulings:
        told = {"older": one.older, "newer": one.newer, "ruling": str(one.ruling), "by": one.by, "at": commit.at}
        if every(db, MEMORY_PAIRS["keep_ruling"], told):
            new += 1
            _do(db, one, commit.at)
    db.reindex()
    return new


def _do(db: SqlSession, one: Ruled, at: int) -> None:
    older, newer = (_Standing(*only(db, MEMORY_PAIRS["standing"], (id_,))) for id_ in (one.older, one.newer))
    match one.ruling:
        case Ruling.SAME:
            into, other = (one.older, one.newer) if older.slot or not newer.slot else (one.newer, one.older)
            if not _joined(db, into, other, at):
                db.execute(MEMORY_PAIRS["replace"], {"id": other, "after": into, "at": max(older.since, newer.since)})
        case Ruling.UPDATES if older.trust != Trust.OWNER or newer.trust == Trust.OWNER:
            db.execute(MEMORY_PAIRS["replace"], {"id": one.older, "after": one.newer, "at": newer.since})
            relate(db, Relate((Association(one.newer, one.older, Relation.UPDATES),), (), at))
        case Ruling.UPDATES | Ruling.CONTRADICTS:
            relate(db, Relate((Association(one.newer, one.older, Relation.CONTRADICTS),), (), at))
        case Ruling.DIFFERENT:
            pass


def _joined(db: SqlSession, into: int, other: int, at: int) -> bool:
    """Have one stand for both, with the evidence and sources of both; one without a slot says what fills the other's.

    False, and nothing done, where something else held between them.
    """
    db.execute("SAVEPOINT same")
    db.execute(MEMORY_PAIRS["fill_slot"], {"id": other, "like": into})
    joined = merge(db, Merge(into, (other,), at))
    if not joined:
        db.execute("ROLLBACK TO same")
    db.execute("RELEASE same")
    return joined
