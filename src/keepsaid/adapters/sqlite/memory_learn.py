"""Learning on SQLite: what is offered becomes a memory, evidence for one, or the end of one, in one transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import apsw

from keepsaid.adapters.sqlite import memory_echo
from keepsaid.adapters.sqlite.memory_commits import KeepMemories, content_hash, keep, key_hash, slot_hash
from keepsaid.adapters.sqlite.memory_index import settle
from keepsaid.adapters.sqlite.memory_rows import storable
from keepsaid.adapters.sqlite.memory_truth import SQL, hold, statements_of
from keepsaid.adapters.sqlite.query import every
from keepsaid.domain.attributes import single, slot_of, value_name
from keepsaid.domain.commits import Commit
from keepsaid.domain.forgetting import name_digest, source_name
from keepsaid.domain.learning import LEARNABLE, How, Learnt, adds_evidence, refused
from keepsaid.domain.memory import NewMemory, Source
from keepsaid.domain.truth import Told, periods
from keepsaid.text.chunks import say_the_same, telling
from keepsaid.text.normal import normalise

SPARE_IDS = 4
"""So many memories one new statement may divide: as a rule none or one."""

_LOOKED_AT = 1_000
"""So many pieces that share a telling word are compared, the newest first."""


_SAID = frozenset({"message", "reply", "turn"})


@dataclass(frozen=True, slots=True)
class Learn(Commit[tuple[Learnt, ...]]):
    """Learn memories, in order; says of each what became of it. `at` is milliseconds UTC.

    `ids` are for those that are new, and SPARE_IDS more for each, for memories that are divided by what is learned.
    """

    ids: tuple[int, ...]
    memories: tuple[NewMemory, ...]
    at: int


def learn(db: apsw.Connection, commit: Learn) -> tuple[Learnt, ...]:
    """Apply one commit."""
    each = 1 + SPARE_IDS
    outcomes = []
    for n, memory in enumerate(commit.memories):
        outcomes.append(learned(db, memory, commit.ids[n * each : (n + 1) * each], commit.at))
    db.execute(SQL["overdue"], {"at": commit.at})
    settle(db)
    return tuple(outcomes)


def learned(db: apsw.Connection, memory: NewMemory, ids: tuple[int, ...], at: int, *, anew: bool = False) -> Learnt:
    """Learn one memory; one without a slot that is to stand `anew` is compared with no other."""
    why = refused(memory)
    if why:
        return Learnt(0, How.REFUSED, why)
    hashes = json.dumps([one.hex() for one in (key_hash(memory.key), content_hash(memory), slot_hash(memory))])
    if every(db, SQL["buried"], {"hashes": _hashes(memory)}):
        return Learnt(0, How.FORGOTTEN)
    if memory.asked:
        memory_echo.lift(db, memory)
    elif every(db, SQL["buried"], {"hashes": hashes}) or memory_echo.repeats(db, memory):
        return Learnt(0, How.FORGOTTEN)
    known: list[tuple[Any, ...]] = every(db, SQL["known"], {"key": storable(memory.key)})
    for id_, state in known:
        return Learnt(0, How.FORGOTTEN) if state == "forgotten" else Learnt(id_, How.KNOWN)
    slot = slot_of(memory.subject_id or memory.subject, memory.attribute, memory.value)
    if slot is not None:
        return _in_slot(db, memory, (slot, ids), at)
    there = None if anew else _same_words(db, memory)
    return _founded(db, memory, ids[0], at) if there is None else _proven(db, memory, there)


def _hashes(memory: NewMemory) -> str:
    """The names of the messages and turns that a memory was made of: it is not learned once one is forgotten."""
    refs = [f"{one.kind}:{one.ref}" for one in memory.sources if one.kind in _SAID]
    return json.dumps([name_digest(source_name(ref)).hex() for ref in refs])


def _in_slot(db: apsw.Connection, memory: NewMemory, where: tuple[bytes, tuple[int, ...]], at: int) -> Learnt:
    """All statements of a slot decide what each memory holds for; of one with many values, those of the value."""
    slot, ids = where
    value = value_name(memory.value)
    told = statements_of(db, slot)
    same = [one for one in told if one.scope == storable(memory.scope) and one.value == value]
    if same and not adds_evidence(memory.sources, _sources(db, [one.memory_id for one in same])):
        latest = max(same, key=lambda one: one.place)
        return Learnt(latest.memory_id, How.KNOWN)
    if not single(memory.attribute):
        told = same
    new = _told(memory)
    mine = next(period for period in periods([*told, new]) if new in period.told)
    founds = mine.founder is new
    done = _founded(db, memory, ids[0], at) if founds else _proven(db, memory, mine.founder.memory_id)
    if done.memory_id:
        placed = replace(new, memory_id=done.memory_id, founds=founds)
        hold(db, periods([*told, placed]), ids[1:], at)
    if not founds or not done.memory_id:
        return done
    ended = any(one.after is not None and one.after.key == new.key for one in periods([*told, new]))
    return replace(done, how=How.PAST if mine.after is not None else How.UPDATES if ended else How.NEW)


def _told(memory: NewMemory) -> Told:
    return Told(
        key=storable(memory.key),
        value=value_name(memory.value),
        scope=storable(memory.scope),
        start=_start(memory),
        said_at=memory.said_at,
        ends=memory.valid_to,
        corrects=memory.corrects,
    )


def _start(memory: NewMemory) -> int:
    return memory.said_at if memory.valid_from is None else memory.valid_from


def _founded(db: apsw.Connection, memory: NewMemory, id_: int, at: int) -> Learnt:
    [[kept]] = keep(db, [KeepMemories((id_,), (memory,), at)])
    if not kept:
        return Learnt(0, How.FORGOTTEN)
    db.execute(SQL["say_founder"], {"ids": json.dumps([kept])})
    db.execute(SQL["name_source"], {"memory_id": kept})
    return Learnt(kept, How.NEW)


def _proven(db: apsw.Connection, memory: NewMemory, id_: int) -> Learnt:
    """What says the same as a memory that is there, counted once for each source."""
    if not adds_evidence(memory.sources, _sources(db, [id_])):
        return Learnt(id_, How.KNOWN)
    key = storable(memory.key)
    db.execute(SQL["say_founder"], {"ids": json.dumps([id_])})
    db.execute(SQL["name_source"], {"memory_id": id_})
    told: dict[str, Any] = {"memory_id": id_, "key": key}
    times = {"start": _start(memory), "said_at": memory.said_at, "ends": memory.valid_to}
    db.execute(SQL["say"], {**told, **times, "corrects": memory.corrects, "counted": True})
    for source in memory.sources:
        db.execute(SQL["add_source"], {**told, "kind": storable(source.kind), "ref": storable(source.ref)})
    worth = {"confidence": float(memory.confidence), "importance": float(memory.importance)}
    origin = {"derived": memory.derived, "trust": memory.trust, "start": times["start"]}
    db.execute(SQL["strengthen"], {"id": id_, **worth, **origin})
    for statement in ("counted", "revive"):
        db.execute(SQL[statement], {"id": id_})
    return Learnt(id_, How.EVIDENCE)


def _sources(db: apsw.Connection, ids: Sequence[int]) -> list[Source]:
    return [Source(*row) for row in every(db, SQL["sources_of"], {"ids": json.dumps(sorted(set(ids)))})]


def _same_words(db: apsw.Connection, memory: NewMemory) -> int | None:
    """A memory of the same scope that says the same, of the same one or of nobody in particular; the oldest."""
    words = telling(normalise(memory.text))
    query = "{body} : (" + " OR ".join(f'"{word}"' for word in words) + ")"
    kinds = json.dumps(sorted(LEARNABLE))
    wanted = {
        "query": query,
        "scope": storable(memory.scope),
        "kinds": kinds,
        "limit": _LOOKED_AT,
        "start": _start(memory),
    }
    about = value_name(memory.subject)
    rows: list[tuple[Any, ...]] = every(db, SQL["same_words"], wanted)
    for id_, text, subject in rows:
        named = value_name(subject)
        if (not about or not named or about == named) and say_the_same(memory.text, text):
            return int(id_)
    return None
