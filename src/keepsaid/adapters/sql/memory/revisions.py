"""Revisions of memories: corrections, pins and merges by a person, and rulings on pairs that stand close."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import field, replace
from typing import NamedTuple

from keepsaid.adapters.sql.memory.graph import Relate, relate
from keepsaid.adapters.sql.memory.learning import SPARE_IDS, hold, learned, state_founder, statements_of
from keepsaid.adapters.sql.memory.rows import MemoryAccess, bound, lane_columns, memories, statements, storable
from keepsaid.adapters.sql.memory.standing import MemoryStanding, contradict, not_current, standing
from keepsaid.adapters.sql.query import MemorySession, Row, as_json, column, every, load, only, reads, writes
from keepsaid.domain import attributes, commits, message
from keepsaid.domain.graph import Association, Relation
from keepsaid.domain.learning import (
    COMMAND_KEY,
    LEARNABLE,
    STATED_MAX,
    LearnOutcome,
    LearnResult,
    Pair,
    RememberedMemory,
    Ruled,
    RulePairs,
    Ruling,
    UndoneMemory,
    UndoRequest,
    stated_key,
)
from keepsaid.domain.memory import Listener, Memory, NewMemory, conversation_scope
from keepsaid.domain.revision import RevisionReason, RevisionRefusal
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
class Pin(commits.Commit[RevisionRefusal | None]):
    """Pin a current memory or unpin it; returns the refusal if it is not current at `at` (milliseconds UTC)."""

    memory_id: int
    at: int
    pinned: bool = field(kw_only=True)


@frozen
class Confirm(commits.Commit[bool]):
    """Take a memory for certain; False when there is none. `at` is milliseconds UTC."""

    memory_id: int
    at: int


@frozen
class ArchiveMemories(commits.Commit[tuple[int, ...] | RevisionRefusal]):
    """Archive current memories, all or none, or restore archived ones (`back`) as used at `at` (ms UTC).

    Returns the changed ids, or the refusal for the first that cannot be archived.
    """

    memory_ids: Sequence[int]
    at: int
    back: bool = field(default=False, kw_only=True)


@frozen
class UndoMemory(commits.Commit[UndoneMemory | None]):
    """Take back the newest memory that a person stored from a conversation; None if there is none."""

    request: UndoRequest


@frozen
class Merge(commits.Commit[RevisionRefusal | None]):
    """Move the sources of the others to `into`; returns the refusal, with nothing done, if they cannot be merged."""

    into: int
    others: Sequence[int]
    at: int


def _history(db: MemorySession, listener: Listener, memory_id: int) -> Sequence[Memory]:
    return memories(db, TRUTH["history"], {**bound(listener), "id": memory_id})


def _remembered(
    db: MemorySession, listener: Listener, turn_id: int, message_ids: Sequence[int]
) -> Sequence[RememberedMemory]:
    stated = (stated_key(one, n) for one in message_ids for n in range(STATED_MAX))
    keys = as_json([*(f"{COMMAND_KEY}{one}" for one in message_ids), *stated])
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


def pin(db: MemorySession, commit: Pin) -> RevisionRefusal | None:
    refusal = not_current(db, commit.memory_id, commit.at)
    if refusal is None:
        db.post(TRUTH["pin"], {"id": commit.memory_id, "pinned": commit.pinned})
    return refusal


def confirm(db: MemorySession, commit: Confirm) -> bool:
    return bool(every(db, TRUTH["confirm"], {"id": commit.memory_id, "at": commit.at}))


def archive(db: MemorySession, commit: ArchiveMemories) -> tuple[int, ...] | RevisionRefusal:
    if not commit.back and (refusal := _not_learned(db, commit.memory_ids, commit.at)) is not None:
        return refusal
    bindings = {"ids": as_json(commit.memory_ids), "kinds": _KINDS, "at": commit.at}
    slots = every(db, UNDO["undone_slots"], bindings) if commit.back else []
    changed = column(db, TRUTH["bring_back" if commit.back else "put_away"], bindings)
    for slot, attribute in slots:
        _hold_slot(db, slot, attribute, commit.at)
    db.reindex()
    return tuple(sorted(changed))


def _not_learned(db: MemorySession, ids: Sequence[int], at: int) -> RevisionRefusal | None:
    """Why the first of these is not a current memory of a kind that is learned; None if all are."""
    for id_ in ids:
        if (refusal := not_current(db, id_, at)) is not None:
            return refusal
        found = standing(db, id_)
        if found is None or found.kind not in LEARNABLE:
            return RevisionRefusal(id_, RevisionReason.KIND)
    return None


def undo(db: MemorySession, commit: UndoMemory) -> UndoneMemory | None:
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


def _take_back(db: MemorySession, id_: int, request: UndoRequest) -> Sequence[int]:
    """Archive a memory and restore what it replaced; returns the ids of what it had replaced."""
    of = {"id": id_}
    slot, attribute = only(db, UNDO["slot"], of)
    replaced = column(db, UNDO["replaced"], of)
    db.post(UNDO["undo"], {**of, "by": request.by, "restored": as_json(replaced)})
    if slot is not None:
        _hold_slot(db, slot, attribute, request.at)
    for other in column(db, UNDO["replaced"], of):
        db.post(TRUTH["unlink"], {"id": other, "after": id_})
    db.post(UNDO["restore"], of)
    db.reindex()
    return replaced


def _hold_slot(db: MemorySession, slot: bytes, attribute: str, at: int) -> None:
    """Work out from its statements which memory of a slot holds; in one with several values each holds by itself."""
    if attributes.single(attribute):
        hold(db, attributes.periods(statements_of(db, slot)), (), at)


_KEPT = ("kind", "scope", "lane", "subject", "subject_id", "chat_of", "importance")
"""What a memory keeps when it is put right."""


def correct(db: MemorySession, commit: Correct) -> LearnResult:
    found = next(iter(memories(db, TRUTH["corrected"], {"id": commit.memory_id})), None)
    if (refusal := _replaced(db, commit)) is not None:
        return LearnResult(0, LearnOutcome.REFUSED, refusal.sentence)
    if found is None or found.new.kind not in LEARNABLE:
        return LearnResult(0, LearnOutcome.REFUSED, "there is no such memory to be corrected")
    old, new = found.new, commit.memory
    slotted = bool(old.attribute and (old.subject_id or old.subject) and old.value)
    kept = {name: getattr(old, name) for name in _KEPT}
    slot = (old.attribute, new.value or new.text) if slotted else ("", "")
    new = replace(new, **kept, attribute=slot[0], value=slot[1], corrects=True)
    result = learned(db, new, commit.ids, commit.at, anew=not slotted)
    if not slotted and result.how is LearnOutcome.NEW:
        db.post(TRUTH["replace"], {"id": found.id, "after": result.memory_id, "at": new.said_at})
        relate(db, Relate((Association(result.memory_id, found.id, Relation.UPDATES),), (), commit.at))
        result = replace(result, how=LearnOutcome.UPDATES)
    db.reindex()
    return result


def _replaced(db: MemorySession, commit: Correct) -> RevisionRefusal | None:
    """Why a memory outside a slot cannot be corrected: another replaced it before; None if the same word did."""
    found, refusal = standing(db, commit.memory_id), not_current(db, commit.memory_id, commit.at)
    if found is None or refusal is None or every(db, TRUTH["known"], {"key": storable(commit.memory.key)}):
        return None
    is_version = refusal.reason is RevisionReason.SUPERSEDED and found.slot is None and refusal.successor
    return refusal if is_version or refusal.reason is RevisionReason.MERGED else None


def merge(db: MemorySession, commit: Merge) -> RevisionRefusal | None:
    ids = (commit.into, *commit.others)
    survivor = standing(db, commit.into)
    if survivor is None or len({*ids}) < len(ids) or not commit.others:
        reason = RevisionReason.MISSING if survivor is None else RevisionReason.REPEATED
        return RevisionRefusal(commit.into, reason)
    if (refusal := _not_learned(db, ids, commit.at) or _unlike(db, commit, survivor)) is not None:
        return refusal
    held = []
    if survivor.slot is not None:
        statements = statements_of(db, survivor.slot)
        if not attributes.single(survivor.attribute):
            statements = [one for one in statements if one.memory_id in ids]
        held = attributes.periods(_merged(statements, commit))
    if not all(period.founder.founds for period in held):
        return RevisionRefusal(commit.into, RevisionReason.BETWEEN, other=commit.others[0])
    state_founder(db, *ids)
    for id_ in commit.others:
        for statement in ("take_statements", "take_sources", "unsay"):
            db.post(TRUTH[statement], {"of": id_, "to": commit.into})
    db.post(TRUTH["counted"], {"id": commit.into})
    hold(db, held, (), commit.at)
    db.reindex()
    return None


def _unlike(db: MemorySession, commit: Merge, survivor: MemoryStanding) -> RevisionRefusal | None:
    """Why one of the others does not say the same as the survivor; None if all do."""
    for id_ in commit.others:
        other = standing(db, id_)
        if other is not None and (why := _difference(survivor, other)) is not None:
            return RevisionRefusal(commit.into, why, other=id_)
        if contradict(db, commit.into, id_):
            return RevisionRefusal(commit.into, RevisionReason.CONTRADICTS, other=id_)
    return None


def _difference(one: MemoryStanding, other: MemoryStanding) -> RevisionReason | None:
    if one.scope != other.scope:
        return RevisionReason.SCOPE
    if one.slot != other.slot:
        return RevisionReason.SLOT
    differ = attributes.value_name(one.value) != attributes.value_name(other.value)
    is_single = one.slot is not None and attributes.single(one.attribute)
    return RevisionReason.CONTRADICTS if is_single and differ else None


def _merged(statements: Sequence[attributes.SlotStatement], commit: Merge) -> list[attributes.SlotStatement]:
    """The statements of the slot as they are once what the others say is what `into` says."""
    value = next(one.value for one in statements if one.memory_id == commit.into)
    return [
        replace(one, memory_id=commit.into, founds=False, value=value) if one.memory_id in commit.others else one
        for one in statements
    ]


MEMORY_PAIRS = load("memory_pairs")
_LOOKED_AT = 256


def _undecided(db: MemorySession, after: int, limit: int) -> Undecided:
    looked_at, found = max(limit, _LOOKED_AT), list[Pair]()
    rows = every(db, MEMORY_PAIRS["undecided"], {"after": after, "limit": looked_at, "kinds": _KINDS})
    for row in rows:
        found.extend(_pairs(row))
        if len(found) == limit:
            return Undecided(tuple(found), row[1] - 1)
    upto = rows[-1][1] - 1 if len(rows) == looked_at else only(db, MEMORY_PAIRS["newest"])[0]
    return Undecided(tuple(found), max(after, upto))


def _count_rulings_since(db: MemorySession, at: int) -> int:
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


def rule(db: MemorySession, commit: RulePairs) -> int:
    new = 0
    for one in commit.rulings:
        pair = {"older": one.older, "newer": one.newer}
        if every(db, MEMORY_PAIRS["keep_ruling"], {**pair, "ruling": str(one.ruling), "by": one.by, "at": commit.at}):
            new += 1
            _apply_ruling(db, one, commit.at)
    db.reindex()
    return new


def _apply_ruling(db: MemorySession, one: Ruled, at: int) -> None:
    older, newer = (_Standing(*only(db, MEMORY_PAIRS["standing"], (id_,))) for id_ in (one.older, one.newer))
    match one.ruling:
        case Ruling.SAME:
            into, other = (one.older, one.newer) if older.slot or not newer.slot else (one.newer, one.older)
            if not _joined(db, into, other, at):
                db.post(MEMORY_PAIRS["replace"], {"id": other, "after": into, "at": max(older.since, newer.since)})
        case Ruling.UPDATES if older.trust != message.Trust.OWNER or newer.trust == message.Trust.OWNER:
            db.post(MEMORY_PAIRS["replace"], {"id": one.older, "after": one.newer, "at": newer.since})
            relate(db, Relate((Association(one.newer, one.older, Relation.UPDATES),), (), at))
        case Ruling.UPDATES | Ruling.CONTRADICTS:
            relate(db, Relate((Association(one.newer, one.older, Relation.CONTRADICTS),), (), at))


def _joined(db: MemorySession, into: int, other: int, at: int) -> bool:
    """Merge two memories, one of which may lack a slot; False if something else held between them."""
    db.post("SAVEPOINT same")
    db.post(MEMORY_PAIRS["fill_slot"], {"id": other, "like": into})
    if not (joined := merge(db, Merge(into, (other,), at)) is None):
        db.post("ROLLBACK TO same")
    db.post("RELEASE same")
    return joined
