"""Standing of a memory: whether it is current, and otherwise which memory replaced it."""

from __future__ import annotations

from typing import NamedTuple

from keepsaid.adapters.sql.query import MemorySession, every, load, one
from keepsaid.domain.revision import RevisionReason, RevisionRefusal

TRUTH = load("memory_truth")


class MemoryStanding(NamedTuple):
    """The columns of a memory that decide whether it can be changed; times are milliseconds UTC."""

    kind: str
    scope: str
    slot: bytes | None
    attribute: str
    value: str
    state: str
    valid_to: int | None
    stated_to: int | None
    superseded_by: int | None


def standing(db: MemorySession, memory_id: int) -> MemoryStanding | None:
    """The standing of a memory; None if it does not exist or was forgotten."""
    row = one(db, TRUTH["standing"], {"id": memory_id})
    return None if row is None else MemoryStanding(*row)


def not_current(db: MemorySession, memory_id: int, at: int) -> RevisionRefusal | None:
    """Why a memory is not current at a time (milliseconds UTC), with its successor; None if it is current."""
    found = standing(db, memory_id)
    if found is None:
        return RevisionRefusal(memory_id, RevisionReason.MISSING)
    reason = _reason(found, at)
    if reason in (RevisionReason.MERGED, RevisionReason.SUPERSEDED):
        row = one(db, TRUTH["successor"], {"id": memory_id, "at": at})
        return RevisionRefusal(memory_id, reason, 0 if row is None else row[0])
    return None if reason is None else RevisionRefusal(memory_id, reason, until=found.valid_to)


def contradict(db: MemorySession, one_id: int, other_id: int) -> bool:
    """Whether two memories were judged to contradict each other."""
    return bool(every(db, TRUTH["contradicts"], {"one": one_id, "other": other_id}))


def _reason(found: MemoryStanding, at: int) -> RevisionReason | None:
    if found.state in ("merged", "archived"):
        return RevisionReason(found.state)
    is_past = found.valid_to is not None and found.valid_to <= at
    if found.state != "superseded" and not is_past:
        return None
    has_ended = found.superseded_by is None and found.stated_to is not None and found.stated_to <= at
    return RevisionReason.EXPIRED if has_ended else RevisionReason.SUPERSEDED
