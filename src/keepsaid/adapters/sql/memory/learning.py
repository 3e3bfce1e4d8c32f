"""Learning: what is offered becomes a memory, evidence for one, or the end of one; and what held when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from keepsaid.adapters.sql.memory import forgetting, rows
from keepsaid.adapters.sql.memory.commits import KeepMemories, content_hash, keep, key_hash, slot_hash
from keepsaid.adapters.sql.memory.entities import mention_learned
from keepsaid.adapters.sql.memory.graph import Relate, relate
from keepsaid.adapters.sql.query import MemorySession, as_json, every, load, only, post_each
from keepsaid.adapters.sql.search.tokens import any_of
from keepsaid.domain.attributes import Period, SlotStatement, periods, single, slot_of, value_name
from keepsaid.domain.commits import Commit
from keepsaid.domain.forgetting import name_digest, source_name
from keepsaid.domain.graph import Association, Relation
from keepsaid.domain.learning import LEARNABLE, LearnOutcome, LearnResult, adds_evidence, refused
from keepsaid.domain.memory import NewMemory, Source
from keepsaid.text import normal, sameness
from keepsaid.values import frozen

TRUTH, UNDO = load("memory_truth"), load("memory_undo")


def statements_of(db: MemorySession, slot: bytes) -> list[SlotStatement]:
    """All statements about a slot that are not forgotten."""
    return [
        SlotStatement(key, value_name(value), *(*of, bool(corrects), memory_id, bool(founds)))
        for key, value, *of, corrects, memory_id, founds in every(db, TRUTH["told"], {"slot": slot})
    ]


def hold(db: MemorySession, periods: Sequence[Period], spare: Sequence[int], at: int) -> None:
    """Write how long each memory holds, and what took its place; nothing is written that is so already.

    A memory that what was learned divides gets a second one, with an id of `spare`, for the statements behind it.
    """
    unused = list(spare)
    for period in periods:
        if not period.founder.founds and unused:
            _copy(db, period, unused.pop(), at)
    memories = {one.key: period.founder.memory_id for period in periods for one in period.told}
    for period in (one for one in periods if one.founder.founds):
        for statement in period.told:
            if statement.memory_id != period.founder.memory_id:
                _move(db, statement, period.founder.memory_id)
        _hold(db, period, None if period.after is None else memories[period.after.key], at)


def _copy(db: MemorySession, period: Period, id_: int, at: int) -> None:
    """Give a period a memory of its own, named by its first statement: a copy of the one that this is in."""
    first = period.told[0]
    new = {"id": id_, "key": first.key, "of": first.memory_id, "at": at, "said_at": first.said_at}
    db.post(TRUTH["copy"], {**new, "start": period.start, "ends": period.ends})
    _move(db, first, id_)
    period.told[0] = replace(first, memory_id=id_, founds=True)


def _move(db: MemorySession, statement: SlotStatement, id_: int) -> None:
    for sql in ("move_statement", "move_sources"):
        db.post(TRUTH[sql], {"key": statement.key, "of": statement.memory_id, "to": id_})
    post_each(db, TRUTH["counted"], [{"id": statement.memory_id}, {"id": id_}])


def _hold(db: MemorySession, period: Period, after: int | None, at: int) -> None:
    id_ = period.founder.memory_id
    start, ends, until, before, state, said_at = only(db, TRUTH["held"], {"id": id_})
    begins = None if start is None and said_at == period.start else period.start
    is_over = after is not None and period.until is not None and period.until <= at
    new_state = "superseded" if is_over else "active"
    times = {"start": begins, "ends": period.ends, "until": period.until, "after": after}
    stored = [start, ends, until, before, "active" if state == "archived" else state]
    if stored == [*times.values(), new_state]:
        return
    db.post(TRUTH["hold"], {"id": id_, **times})
    db.post(TRUTH["turn"], {"id": id_, "state": new_state})
    if before is not None and before != after:
        db.post(TRUTH["unlink"], {"id": id_, "after": before})
    if after is not None and after != before:
        relate(db, Relate((Association(after, id_, Relation.UPDATES),), (), at))


def decide(db: MemorySession, slot: bytes, attribute: str, made: tuple[Sequence[int], int]) -> None:
    """Let the statements of a slot, or of each of its values, decide what holds; spare ids go to the first in need."""
    spare, at = made
    statements = statements_of(db, slot)
    each = [[one for one in statements if one.value == value] for value in sorted({one.value for one in statements})]
    for decided_together in [statements] if single(attribute) else each:
        found = periods(decided_together)
        hold(db, found, spare, at)
        spare = spare[sum(1 for period in found if not period.founder.founds) :]


def renew_slots(db: MemorySession, ids: Sequence[int]) -> None:
    """Give memories of a former release, whose attributes had other names, the slots that these names have now.

    What holds in such a slot is decided again, as of the newest memory.
    """
    renewed: dict[bytes, str] = {}
    for id_, about, attribute, value, slot in every(db, TRUTH["slotted"], {"ids": as_json(ids)}):
        if (wanted := slot_of(about, attribute, value)) is not None and wanted != slot:
            db.post(TRUTH["renew_slot"], {"id": id_, "slot": wanted})
            renewed[wanted] = attribute
    for slot, attribute in renewed.items():
        decide(db, slot, attribute, ((), only(db, TRUTH["newest"])[0]))


SPARE_IDS = 4
"""The memories that one new statement may divide at most: usually none or one."""

_LOOKED_AT = 1_000
"""The pieces with a shared rare word that are compared at most, the newest first."""

_SAID = frozenset({"message", "reply", "turn"})
"""Kinds of sources: a memory is not learned once a message or turn it was made of is forgotten."""


@frozen
class Learn(Commit[tuple[LearnResult, ...]]):
    """Learn memories, in order; returns the outcome of each. `at` is milliseconds UTC.

    `ids` are for those that are new, and SPARE_IDS more for each, for memories that are divided by what is learned.
    """

    ids: tuple[int, ...]
    memories: tuple[NewMemory, ...]
    at: int


def learn(db: MemorySession, commit: Learn) -> tuple[LearnResult, ...]:
    each, results = 1 + SPARE_IDS, []
    for n, memory in enumerate(commit.memories):
        result = learned(db, memory, commit.ids[n * each : (n + 1) * each], commit.at)
        if memory.about and result.memory_id:
            mention_learned(db, result.memory_id, memory)
        results.append(result)
    db.post(TRUTH["overdue"], {"at": commit.at})
    db.reindex()
    return tuple(results)


def is_buried(db: MemorySession, hashes: Sequence[bytes]) -> bool:
    """Whether one of these hashes has a tombstone."""
    return bool(every(db, TRUTH["buried"], {"hashes": rows.hexadecimal(db.tombstones(hashes))}))


def learned(db: MemorySession, memory: NewMemory, ids: tuple[int, ...], at: int, *, anew: bool = False) -> LearnResult:
    """Learn one memory; one without a slot and with `anew` is not compared with others."""
    if why := refused(memory):
        return LearnResult(0, LearnOutcome.REFUSED, why)
    said_in = [f"{source.kind}:{source.ref}" for source in memory.sources if source.kind in _SAID]
    if is_buried(db, [name_digest(source_name(ref)) for ref in said_in]):
        return LearnResult(0, LearnOutcome.FORGOTTEN)
    hashes = (key_hash(memory.key), content_hash(memory), slot_hash(memory))
    if memory.asked:
        forgetting.lift(db, memory)
    elif is_buried(db, hashes) or forgetting.repeats(db, memory):
        return LearnResult(0, LearnOutcome.FORGOTTEN)
    for id_, state in every(db, TRUTH["known"], {"key": rows.storable(memory.key)}):
        return LearnResult(0, LearnOutcome.FORGOTTEN) if state == "forgotten" else LearnResult(id_, LearnOutcome.KNOWN)
    slot = slot_of(memory.subject_id or memory.subject, memory.attribute, memory.value)
    if not memory.corrects and _is_undone(db, memory, slot):
        return LearnResult(0, LearnOutcome.KNOWN)
    if slot is not None:
        return _in_slot(db, memory, (slot, ids), at)
    same = None if anew else _same_words(db, memory)
    return _add(db, memory, ids[0], at) if same is None else _add_evidence(db, memory, same)


def _in_slot(db: MemorySession, memory: NewMemory, where: tuple[bytes, tuple[int, ...]], at: int) -> LearnResult:
    """All statements of a slot decide what each memory holds for; of one with many values, those of the value."""
    slot, ids = where
    names = (rows.storable(memory.key), value_name(memory.value), rows.storable(memory.scope))
    new = SlotStatement(*names, _start(memory), memory.said_at, memory.valid_to, memory.corrects)
    statements = statements_of(db, slot)
    same = [one for one in statements if (one.scope, one.value) == (new.scope, new.value)]
    if same and not adds_evidence(memory.sources, _sources(db, [one.memory_id for one in same])):
        return LearnResult(max(same, key=lambda one: one.place).memory_id, LearnOutcome.KNOWN)
    if not single(memory.attribute):
        statements = same
    mine = next(period for period in periods([*statements, new]) if new in period.told)
    founds = mine.founder is new
    result = _add(db, memory, ids[0], at) if founds else _add_evidence(db, memory, mine.founder.memory_id)
    if not result.memory_id:
        return result
    hold(db, periods([*statements, replace(new, memory_id=result.memory_id, founds=founds)]), ids[1:], at)
    if not founds:
        return result
    if mine.after is not None:
        return replace(result, how=LearnOutcome.PAST)
    ends_another = any(one.after is not None and one.after.key == new.key for one in periods([*statements, new]))
    return replace(result, how=LearnOutcome.UPDATES if ends_another else LearnOutcome.NEW)


def _is_undone(db: MemorySession, memory: NewMemory, slot: bytes | None) -> bool:
    """Whether a person took back a memory that said the same and came from the same sources."""
    refs = [rows.storable(source.ref) for source in memory.sources if source.kind == "message"]
    same = [
        id_
        for id_, text, its_slot, value in (every(db, UNDO["undone_of"], {"refs": as_json(refs)}) if refs else ())
        if (slot is not None and slot == its_slot and value_name(value) == value_name(memory.value))
        or sameness.say_the_same(memory.text, text)
    ]
    return bool(same) and not adds_evidence(memory.sources, _sources(db, same))


def _start(memory: NewMemory) -> int:
    return memory.said_at if memory.valid_from is None else memory.valid_from


def _add(db: MemorySession, memory: NewMemory, id_: int, at: int) -> LearnResult:
    [[kept]] = keep(db, [KeepMemories((id_,), (memory,), at)])
    if not kept:
        return LearnResult(0, LearnOutcome.FORGOTTEN)
    state_founder(db, kept)
    return LearnResult(kept, LearnOutcome.NEW)


def state_founder(db: MemorySession, *ids: int) -> None:
    """Write down what founded these memories as statements of their own, with the sources named for them."""
    db.post(TRUTH["say_founder"], {"ids": as_json(ids)})
    post_each(db, TRUTH["name_source"], [{"memory_id": id_} for id_ in ids])


def _add_evidence(db: MemorySession, memory: NewMemory, id_: int) -> LearnResult:
    """Count what says the same as a memory that is there, once for each source."""
    if not adds_evidence(memory.sources, _sources(db, [id_])):
        return LearnResult(id_, LearnOutcome.KNOWN)
    state_founder(db, id_)
    names: dict[str, Any] = {"memory_id": id_, "key": rows.storable(memory.key)}
    times = {"start": _start(memory), "said_at": memory.said_at, "ends": memory.valid_to}
    db.post(TRUTH["say"], {**names, **times, "corrects": memory.corrects, "counted": True})
    for source in memory.sources:
        db.post(TRUTH["add_source"], {**names, "kind": rows.storable(source.kind), "ref": rows.storable(source.ref)})
    worth = {"confidence": float(memory.confidence), "importance": float(memory.importance)}
    origin = {"id": id_, "derived": memory.derived, "trust": memory.trust, "start": times["start"]}
    for statement in ("strengthen", "counted", "revive"):
        db.post(TRUTH[statement], {**origin, **worth})
    return LearnResult(id_, LearnOutcome.EVIDENCE)


def _sources(db: MemorySession, ids: Sequence[int]) -> list[Source]:
    return [Source(*row) for row in every(db, TRUTH["sources_of"], {"ids": as_json(sorted(set(ids)))})]


def _same_words(db: MemorySession, memory: NewMemory) -> int | None:
    """The oldest memory of the same scope that says the same, of the same subject or of nobody in particular."""
    words = any_of(sameness.telling(normal.normalise(memory.text)), "body")
    place = {"scope": rows.storable(memory.scope), "kinds": as_json(sorted(LEARNABLE)), "start": _start(memory)}
    about = value_name(memory.subject)
    for id_, text, subject in every(db, TRUTH["same_words"], {**place, **words, "limit": _LOOKED_AT}):
        other = value_name(subject)
        if (not about or not other or about == other) and sameness.say_the_same(memory.text, text):
            return int(id_)
    return None
