"""Revisions of memories: corrections, pins and merges by a person, and rulings on pairs that stand close."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field, replace
from typing import NamedTuple

from keepsaid.adapters.sql.memory.graph import Relate, relate
from keepsaid.adapters.sql.memory.learning import SPARE_IDS, hold, learned, state_founder, statements_of
from keepsaid.adapters.sql.memory.rows import MemoryAccess, bound, lane_columns, memories, statements, storable
from keepsaid.adapters.sql.query import Row, SqlSession, as_json, column, every, load, only, reads, writes
from keepsaid.domain import attributes, commits, message
from keepsaid.domain.graph import Association, Relation
from keepsaid.domain.learning import (
    COMMAND_KEY,
    LEARNABLE,
    LearnOutcome,
    LearnResult,
    Pair,
    RememberedMemory,
    Ruled,
    RulePairs,
    Ruling,
    UndoneMemory,
    UndoRequest,
)
from keepsaid.domain.memory import Listener, Memory, NewMemory, conversation_scope
from keepsaid.ports.memory_maintenance import Undecided
from keepsaid.values import frozen

TRUTH, UNDO = statements("memory_truth"), statements("memory_undo")
_KINDS = as_json(sorted(LEARNABLE))


@frozen
class Correct(commits.Commit[LearnResult]):
    """Put a memory right: `memory` takes its place, in its slot and scope; what it said before is kept as past.

    `ids` are one for what is new and SPARE_IDS more. A memory that is not there is refused.
    """

    memory_id: int
    memory: NewMemory
    ids: tuple[int, ...]
    at: int


@frozen
class Pin(commits.Commit[bool]):
    """Pin a memory or unpin it; False when there is none."""

    memory_id: int
    pinned: bool = field(kw_only=True)


@frozen
class Confirm(commits.Commit[bool]):
    """Take a memory for certain; False when there is none. `at` is milliseconds UTC."""

    memory_id: int
    at: int


@frozen
class ArchiveMemories(commits.Commit[tuple[int, ...]]):
    """Archive memories, or restore archived ones (`back`) as used at `at` (ms UTC); returns the changed ids."""

    memory_ids: Sequence[int]
    at: int
    back: bool = field(default=False, kw_only=True)


@frozen
class UndoMemory(commits.Commit[UndoneMemory | None]):
    """Take back the newest memory that a person stored from a conversation; None if there is none."""

    request: UndoRequest


@frozen
class Merge(commits.Commit[bool]):
    """Have `into` stand for the others, with their sources; False, and nothing done, when they cannot be merged."""

    into: int
    others: Sequence[int]
    at: int


def _history(db: SqlSession, listener: Listener, memory_id: int) -> Sequence[Memory]:
    return memories(db, TRUTH["history"], {**bound(listener), "id": memory_id})


def _remembered(
    db: SqlSession, listener: Listener, turn_id: int, message_ids: Sequence[int]
) -> Sequence[RememberedMemory]:
    keys = as_json(f"{COMMAND_KEY}{one}" for one in message_ids)
    found = memories(db, UNDO["remembered"], {**bound(listener), "turn": str(turn_id), "keys": keys})
    return [RememberedMemory(one, tuple(column(db, UNDO["replaced"], {"id": one.id}))) for one in found]


class SqlRevisions(MemoryAccess):
    """Versions of the memories of one store."""

    history = reads(_history)
    remembered = reads(_remembered)
    pin = writes(Pin)
    confirm = writes(Confirm)
    archive = writes(ArchiveMemories)
    merge = writes(Merge)

    async def undo(self, request: UndoRequest) -> UndoneMemory | None:
        return await self._writer.apply(UndoMemory(request))

    async def correct(self, memory_id: int, memory: NewMemory, at: int) -> LearnResult:
        [memory] = await self._without_secrets([memory])
        return await self._writer.apply(Correct(memory_id, memory, self._new_ids(1 + SPARE_IDS), at))


def pin(db: SqlSession, commit: Pin) -> bool:
    return bool(every(db, TRUTH["pin"], {"id": commit.memory_id, "pinned": commit.pinned}))


def confirm(db: SqlSession, commit: Confirm) -> bool:
    return bool(every(db, TRUTH["confirm"], {"id": commit.memory_id, "at": commit.at}))


def archive(db: SqlSession, commit: ArchiveMemories) -> tuple[int, ...]:
    bindings = {"ids": as_json(commit.memory_ids), "kinds": _KINDS, "at": commit.at}
    slots = every(db, UNDO["undone_slots"], bindings) if commit.back else []
    changed = column(db, TRUTH["bring_back" if commit.back else "put_away"], bindings)
    for slot, attribute in slots:
        _hold_slot(db, slot, attribute, commit.at)
    db.reindex()
    return tuple(sorted(changed))


def undo(db: SqlSession, commit: UndoMemory) -> UndoneMemory | None:
    request, listener = commit.request, commit.request.listener
    if listener.lane is None:
        return None
    here = {"here": conversation_scope(listener.lane), "speaker": storable(listener.person), "by": request.by}
    place = lane_columns(listener.lane)
    if (found := next(iter(memories(db, UNDO["stored_here"], {**place, **here})), None)) is None:
        return None
    if found.state == "active":
        replaced = _take_back(db, found.id, request)
    else:
        replaced = json.loads(found.new.metadata)["undone"]["restored"]
    return UndoneMemory(found, tuple(memories(db, UNDO["restored"], {**bound(listener), "ids": as_json(replaced)})))


def _take_back(db: SqlSession, id_: int, request: UndoRequest) -> Sequence[int]:
    """Archive a memory and restore what it replaced; returns the ids of what it had replaced."""
    of = {"id": id_}
    slot, attribute = only(db, UNDO["slot"], of)
    replaced = column(db, UNDO["replaced"], of)
    db.execute(UNDO["undo"], {**of, "by": request.by, "restored": as_json(replaced)})
    if slot is not None:
        _hold_slot(db, slot, attribute, request.at)
    for other in column(db, UNDO["replaced"], of):
        db.execute(TRUTH["unlink"], {"id": other, "after": id_})
    db.execute(UNDO["restore"], of)
    db.reindex()
    return replaced


def _hold_slot(db: SqlSession, slot: bytes, attribute: str, at: int) -> None:
    """Work out from its statements which memory of a slot holds; in one with several values each holds by itself."""
    if attributes.single(attribute):
        hold(db, attributes.periods(statements_of(db, slot)), (), at)


_KEPT = ("kind", "scope", "lane", "subject", "subject_id", "chat_of", "importance")
"""What a memory keeps when it is put right."""


def correct(db: SqlSession, commit: Correct) -> LearnResult:
    found = next(iter(memories(db, TRUTH["corrected"], {"id": commit.memory_id})), None)
    if found is None or found.new.kind not in LEARNABLE:
        return LearnResult(0, LearnOutcome.REFUSED, "there is no such memory to be corrected")
    old, new = found.new, commit.memory
    slotted = bool(old.attribute and (old.subject_id or old.subject) and old.value)
    kept = {name: getattr(old, name) for name in _KEPT}
    slot = (old.attribute, new.value or new.text) if slotted else ("", "")
    new = replace(new, **kept, attribute=slot[0], value=slot[1], corrects=True)
    result = learned(db, new, commit.ids, commit.at, anew=not slotted)
    if not slotted and result.how is LearnOutcome.NEW:
        db.execute(TRUTH["replace"], {"id": found.id, "after": result.memory_id, "at": new.said_at})
        relate(db, Relate((Association(result.memory_id, found.id, Relation.UPDATES),), (), commit.at))
        result = replace(result, how=LearnOutcome.UPDATES)
    db.reindex()
    return result


def merge(db: SqlSession, commit: Merge) -> bool:
    ids = (commit.into, *commit.others)
    rows = [row for id_ in ids for row in every(db, TRUTH["standing"], {"id": id_})]
    mergeable = len({*ids}) == len(rows) == len(ids) > 1 and all(row[0] in LEARNABLE for row in rows)
    if not mergeable or len({row[2:] for row in rows}) > 1:
        return False
    _, attribute, _, slot = rows[0]
    held = []
    if slot is not None:
        statements = statements_of(db, slot)
        if not attributes.single(attribute):
            statements = [one for one in statements if one.memory_id in ids]
        held = attributes.periods(_merged(statements, commit))
    if not all(period.founder.founds for period in held):
        return False
    state_founder(db, *ids)
    for id_ in commit.others:
        for statement in ("take_statements", "take_sources", "unsay"):
            db.execute(TRUTH[statement], {"of": id_, "to": commit.into})
    db.execute(TRUTH["counted"], {"id": commit.into})
    hold(db, held, (), commit.at)
    db.reindex()
    return True


def _merged(statements: Sequence[attributes.SlotStatement], commit: Merge) -> list[attributes.SlotStatement]:
    """The statements of the slot as they are once what the others say is what `into` says."""
    value = next(one.value for one in statements if one.memory_id == commit.into)
    return [
        replace(one, memory_id=commit.into, founds=False, value=value) if one.memory_id in commit.others else one
        for one in statements
    ]


MEMORY_PAIRS = load("memory_pairs")
_LOOKED_AT = 256


def _undecided(db: SqlSession, after: int, limit: int) -> Undecided:
    looked_at, found = max(limit, _LOOKED_AT), list[Pair]()
    rows = every(db, MEMORY_PAIRS["undecided"], {"after": after, "limit": looked_at, "kinds": _KINDS})
    for row in rows:
        found.extend(_pairs(row))
        if len(found) == limit:
            return Undecided(tuple(found), row[1] - 1)
    upto = rows[-1][1] - 1 if len(rows) == looked_at else only(db, MEMORY_PAIRS["newest"])[0]
    return Undecided(tuple(found), max(after, upto))


def _count_rulings_since(db: SqlSession, at: int) -> int:
    return int(only(db, MEMORY_PAIRS["asked_since"], (at,))[0])


class SqlPairs(MemoryAccess):
    """Pairs of memories, and rulings on them."""

    undecided = reads(_undecided)
    count_rulings_since = reads(_count_rulings_since)

    async def rule(self, rulings: Sequence[Ruled], at: int) -> int:
        return await self._writer.apply(RulePairs(tuple(rulings), at)) if rulings else 0


class _Standing(NamedTuple):
    """A memory of a pair, as it stands."""

    slot: bytes | None
    trust: str
    since: int


def _pairs(row: Row) -> list[Pair]:
    """The pair of a row, unless its slot decides which of the two holds."""
    kept, came, text, other, since, then, one_slot, value, another = row
    equal = bool(one_slot) and attributes.value_name(value) == attributes.value_name(another)
    if one_slot and not equal:
        return []
    if (since, kept) <= (then, came):
        return [Pair(kept, came, (text, other), (since, then), equal)]
    return [Pair(came, kept, (other, text), (then, since), equal)]


def rule(db: SqlSession, commit: RulePairs) -> int:
    new = 0
    for one in commit.rulings:
        pair = {"older": one.older, "newer": one.newer}
        if every(db, MEMORY_PAIRS["keep_ruling"], {**pair, "ruling": str(one.ruling), "by": one.by, "at": commit.at}):
            new += 1
            _apply_ruling(db, one, commit.at)
    db.reindex()
    return new


def _apply_ruling(db: SqlSession, one: Ruled, at: int) -> None:
    older, newer = (_Standing(*only(db, MEMORY_PAIRS["standing"], (id_,))) for id_ in (one.older, one.newer))
    match one.ruling:
        case Ruling.SAME:
            into, other = (one.older, one.newer) if older.slot or not newer.slot else (one.newer, one.older)
            if not _joined(db, into, other, at):
                db.execute(MEMORY_PAIRS["replace"], {"id": other, "after": into, "at": max(older.since, newer.since)})
        case Ruling.UPDATES if older.trust != message.Trust.OWNER or newer.trust == message.Trust.OWNER:
            db.execute(MEMORY_PAIRS["replace"], {"id": one.older, "after": one.newer, "at": newer.since})
            relate(db, Relate((Association(one.newer, one.older, Relation.UPDATES),), (), at))
        case Ruling.UPDATES | Ruling.CONTRADICTS:
            relate(db, Relate((Association(one.newer, one.older, Relation.CONTRADICTS),), (), at))


def _joined(db: SqlSession, into: int, other: int, at: int) -> bool:
    """Merge two memories, one of which may lack a slot; False if something else held between them."""
    db.execute("SAVEPOINT same")
    db.execute(MEMORY_PAIRS["fill_slot"], {"id": other, "like": into})
    if not (joined := merge(db, Merge(into, (other,), at))):
        db.execute("ROLLBACK TO same")
    db.execute("RELEASE same")
    return joined
