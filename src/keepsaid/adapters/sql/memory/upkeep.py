"""Upkeep: each step of maintenance is a short transaction that notes its place."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from time import monotonic

from keepsaid.adapters.sql.memory.rows import MemoryAccess, space_names
from keepsaid.adapters.sql.query import MemorySession, Row, as_json, column, every, load, one, only, post_each, reads
from keepsaid.domain import forgetting, learning, maintenance, memory
from keepsaid.domain.maintenance import LOOSE, Maintain, Stepped, UpkeepTask

MEMORY_UPKEEP = load("memory_upkeep")
LOOSE_SQL = load("memory_loose")
_LEARNABLE = as_json(sorted(learning.LEARNABLE))
_ALL = 1 << 62
_TERMS_EACH = 4
"""The terms that are counted in the time of checking one memory."""

_ARCHIVED = 1
"""The memories of one piece archived at a time: removing one from the index changes a page for each of its words."""


def _runs(db: MemorySession) -> tuple[maintenance.TaskRun, ...]:
    found = {task: maintenance.TaskRun(UpkeepTask(task), *run) for task, *run in every(db, MEMORY_UPKEEP["runs"])}
    return tuple(found[task] for task in UpkeepTask if task in found)


def _holdings(db: MemorySession) -> maintenance.Holdings:
    counts = only(db, MEMORY_UPKEEP["counts"])
    kinds, states, scopes = (dict[str, int](every(db, MEMORY_UPKEEP[of])) for of in ("kinds", "states", "scopes"))
    return maintenance.Holdings(kinds, states, scopes, dict(zip(counts[::2], counts[1::2], strict=True)), _runs(db))


def _outstanding(
    db: MemorySession, at: int, curve: maintenance.Curve, space: memory.VectorSpace | None
) -> maintenance.Outstanding:
    step = Maintain(UpkeepTask.FADE, at, _ALL, curve, space)
    fading, archived, after = 0, 0, 0
    while rows := _memories(db, after, maintenance.PIECE):
        faded, gone = _fading(rows, step)
        fading, archived, after = fading + len(faded), archived + len(gone), rows[-1][0]
    counts = {
        UpkeepTask.FADE: fading,
        UpkeepTask.ENDED: len(every(db, LOOSE_SQL["ended"], (at, _LEARNABLE, _ALL))),
        UpkeepTask.BULLETINS: len(every(db, LOOSE_SQL["withdrawn"], (at, _ALL))),
        **{task: len(loose_in(db, task, 0, _ALL)) for task in LOOSE},
        UpkeepTask.SPACES: sum(only(db, MEMORY_UPKEEP["vectors_of"], (id_,))[0] for id_ in _former(db, space)),
    }
    return maintenance.Outstanding(counts, archived)


class SqlUpkeep(MemoryAccess):
    """Maintenance of the memories."""

    runs = reads(_runs)
    outstanding = reads(_outstanding)
    holdings = reads(_holdings)

    async def step(self, step: Maintain) -> Stepped:
        return await self._writer.apply(step)

    async def empty_log(self) -> bool:
        return await self._writer.apply(forgetting.EmptyLog(whole=False))


def maintain(db: MemorySession, step: Maintain) -> Stepped:
    """Do a task piece by piece, until enough was looked at or it took long enough."""
    row = one(db, MEMORY_UPKEEP["standing"], (step.task,))
    begun_at, after, changed, archived = row or (step.at, 0, 0, 0)
    until = inf if step.budget_ms is None else monotonic() + step.budget_ms / 1_000
    done = Stepped(over=False)
    while not done.over:
        piece = replace(step, at=begun_at, limit=min(maintenance.PIECE, step.limit - done.looked))
        after, further = _TASKS[step.task](db, piece, after)
        done = done.then(further)
        if done.looked >= step.limit or monotonic() >= until:
            break
    counts = {"changed": changed + done.changed, "archived": archived + done.archived}
    place = {"task": step.task, "begun_at": begun_at, "ended_at": step.at if done.over else None, "after": after}
    if row is not None or not done.over or done.changed or done.archived or done.looked:
        db.post(MEMORY_UPKEEP["stand"], {**place, **counts})
    return done


def _fade(db: MemorySession, step: Maintain, after: int) -> tuple[int, Stepped]:
    """Importance fades, and what is left of too little is archived: a few at a step."""
    rows = _memories(db, after, step.limit)
    faded, gone = _fading(rows, step)
    whole = len(rows) < step.limit
    if len(gone) > _ARCHIVED:
        upto, whole = gone[_ARCHIVED - 1], False
        rows, gone = [row for row in rows if row[0] <= upto], gone[:_ARCHIVED]
        faded = [one for one in faded if one[0] <= upto]
    if faded:
        db.post(MEMORY_UPKEEP["fade"], {"faded": as_json(faded), "at": step.at})
    if gone:
        db.post(MEMORY_UPKEEP["archive"], {"ids": as_json(gone)})
        db.reindex()
    reached = rows[-1][0] if rows else after
    return reached, Stepped(len(rows), len(faded), len(gone), over=whole)


def _memories(db: MemorySession, after: int, limit: int) -> list[Row]:
    """Memories by id with what decay needs; in one row, so that the interpreter's lock is given up only once."""
    found: list[Row] = json.loads(only(db, MEMORY_UPKEEP["memories"], (after, limit))[0])
    return found


def _fading(rows: Sequence[Row], step: Maintain) -> tuple[list[tuple[int, float]], list[int]]:
    """The memories whose importance is to be written, with what is left of it; and those that are archived."""
    faded, gone = [], []
    for id_, kind, fades, *uses in rows:
        trace = maintenance.FadeTrace(*uses)
        if fades and kind in maintenance.FADING and trace.worth_counting(step.at, step.curve):
            left = trace.at(step.at, step.curve)
            faded.append((id_, left))
            gone += [id_] if trace.gone(left, step.at, step.curve) else []
    return faded, gone


def _ended(db: MemorySession, step: Maintain, after: int) -> tuple[int, Stepped]:
    """What held until a time that is over holds no more, although nothing took its place."""
    over = every(db, LOOSE_SQL["ended"], (step.at, _LEARNABLE, step.limit))
    post_each(db, LOOSE_SQL["end"], over)
    return after, Stepped(len(over), len(over), over=len(over) < step.limit)


def _bulletins(db: MemorySession, step: Maintain, after: int) -> tuple[int, Stepped]:
    """Delete bulletins with facts that no longer hold; the next turn of their scope renews them."""
    gone = every(db, LOOSE_SQL["withdrawn"], (step.at, step.limit))
    post_each(db, LOOSE_SQL["withdraw"], gone)
    if gone:
        db.reindex()
    return after, Stepped(len(gone), len(gone), over=len(gone) < step.limit)


def _sweep(db: MemorySession, step: Maintain, after: int) -> tuple[int, Stepped]:
    """What leads to nothing."""
    upto, looked = only(db, LOOSE_SQL[step.task], (after, step.limit))
    if upto is None:
        return after, Stepped()
    loose = loose_in(db, step.task, after, upto)
    post_each(db, LOOSE_SQL[f"{step.task}_cut"], loose)
    if step.task is UpkeepTask.CHAINS and loose:
        db.reindex()
    return upto, Stepped(looked, len(loose), over=looked < step.limit)


def loose_in(db: MemorySession, task: UpkeepTask, after: int, upto: int) -> list[Row]:
    """What leads to nothing in one stretch of a table; each row begins with the id it is known by."""
    return every(db, LOOSE_SQL[f"{task}_loose"], {"after": after, "upto": upto})


def _spaces(db: MemorySession, step: Maintain, after: int) -> tuple[int, Stepped]:
    """Vectors of former spaces, once the one that serves is filled."""
    if not (former := _former(db, step.space)):
        return after, Stepped()
    db.execute(MEMORY_UPKEEP["drop_vectors"], (former[0], step.limit))
    dropped = db.changes()
    for statement in ("drop_blocks", "drop_space") if dropped < step.limit else ():
        db.post(MEMORY_UPKEEP[statement], former[:1])
    return after, Stepped(dropped, dropped, over=dropped < step.limit and len(former) == 1)


def _former(db: MemorySession, space: memory.VectorSpace | None) -> list[int]:
    return [] if space is None else column(db, MEMORY_UPKEEP["former"], space_names(space))


def _terms(db: MemorySession, step: Maintain, after: int) -> tuple[int, Stepped]:
    """In how many pieces each term occurs, counted again."""
    over = db.count_terms(_TERMS_EACH * step.limit)
    counted = int(over is not None)
    return after + counted, Stepped(counted, counted, over=over is not False)


_TASKS: dict[UpkeepTask, Callable[[MemorySession, Maintain, int], tuple[int, Stepped]]] = {
    UpkeepTask.FADE: _fade,
    UpkeepTask.ENDED: _ended,
    UpkeepTask.BULLETINS: _bulletins,
    **dict.fromkeys(LOOSE, _sweep),
    UpkeepTask.SPACES: _spaces,
    UpkeepTask.TERMS: _terms,
}
