"""Claims: which ready batches a runtime takes next."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, islice

import apsw

from keepsaid.adapters.sqlite import rows
from keepsaid.adapters.sqlite.busy import leave_unseen
from keepsaid.adapters.sqlite.query import Row, every, numbers, one, only
from keepsaid.adapters.sqlite.statements import chunks, flat, load, many
from keepsaid.adapters.sqlite.telling import tell_together
from keepsaid.domain.commits import LONER_PATIENCE_MS, Claim
from keepsaid.domain.fact import started
from keepsaid.domain.states import move
from keepsaid.domain.suspicion import next_beat_ms
from keepsaid.domain.turn import Lease

SQL = load("claims")
_TURN_ROW = "(?, ?, ?, ?, ?)"
_Taking = tuple[Claim, int, int]
_NORMAL, _SUSPECT = 0, 1


def claim(db: apsw.Connection, commits: Sequence[Claim]) -> list[tuple[Lease, ...]]:
    """Lease ready batches: one for a trial with nothing beside it, else one suspect at most and normal ones.

    A set of claims chooses once, as its last one orders; the first is served first.
    """
    last = commits[-1]
    wake(db, last.at)
    leased, alone, suspects = only(db, SQL["leased"])
    limits = [max(0, min(commit.limit, len(commit.turn_ids))) for commit in commits]
    nothing: list[tuple[Lease, ...]] = [()] * len(commits)
    if alone or not any(limits):
        return nothing
    suspicious = one(db, SQL["suspicious"]) is not None
    held = one(db, SQL["next_trial"], (last.lived_ms,)) if suspicious else None
    if held is not None and not leased:
        n = next(n for n, limit in enumerate(limits) if limit)
        begun_ms = commits[n].lived_ms
        db.execute(SQL["begin_trial"], (commits[n].owner, begun_ms, next_beat_ms(begun_ms, begun_ms, commits[n].terms)))
        nothing[n] = _leased(db, [(commits[n], held[0], commits[n].turn_ids[0])], alone=True)
        return nothing
    if held is not None and last.at - held[3] >= LONER_PATIENCE_MS:
        return nothing
    ready = _ready(db, last, _NORMAL, sum(limits))
    if suspicious and not suspects:
        ready = [*ready, *_ready(db, last, _SUSPECT, 1)]
    chosen = iter(sorted(ready, key=lambda row: _order(last, row))[: sum(limits)])
    taken = [
        [(commit, row[0], turn_id) for turn_id, row in zip(commit.turn_ids, islice(chosen, limit), strict=False)]
        for commit, limit in zip(commits, limits, strict=True)
    ]
    claimed = iter(_leased(db, [one for part in taken for one in part]))
    return [tuple(islice(claimed, len(part))) for part in taken]


def wake(db: apsw.Connection, at: int | None) -> None:
    """What waited for a time is ready; all of it without one."""
    if one(db, SQL["asleep"], (at,)) is not None:
        db.execute(SQL["wake_batches"], (at,))
        db.execute(SQL["wake"], (at,))


def _ready(db: apsw.Connection, commit: Claim, suspect: int, limit: int) -> list[Row]:
    """The best of every level of priority, those first that count as best: id, priority, arrival, ready since."""
    levels = (
        every(db, SQL["ready"], (suspect, priority, limit)) for (priority,) in every(db, SQL["levels"], (suspect,))
    )
    return sorted((row for level in levels for row in level), key=lambda row: _order(commit, row))[:limit]


def _order(commit: Claim, row: Row) -> tuple[int, int, int]:
    batch_id, priority, first_at, _ = row
    return commit.ageing.counts_as(priority, commit.at - first_at), first_at, batch_id


def _leased(db: apsw.Connection, taken: Sequence[_Taking], *, alone: bool = False) -> tuple[Lease, ...]:
    """Lease batches in a few statements, whatever their number."""
    if not taken:
        return ()
    for owner, part in groupby(taken, key=lambda one: one[0].owner):
        mine = list(part)
        until = max(commit.lease_until for commit, _, _ in mine)
        state = move("batch", "queued", "claim")
        db.execute(SQL["lease"], (numbers([batch_id for _, batch_id, _ in mine]), state, owner, until, alone))
    ids = numbers([batch_id for _, batch_id, _ in taken])
    found = {row[0]: row for row in every(db, SQL["batch"], (ids,))}
    open_turns: dict[int, int] = dict(every(db, SQL["open_turns"], (ids,)))
    db.execute(SQL["not_ready"], (numbers([row[18] for row in found.values()]),))
    begun = [
        (turn_id, found[batch_id][18], batch_id, "open", commit.at)
        for commit, batch_id, turn_id in taken
        if batch_id not in open_turns
    ]
    for run in chunks(begun):
        db.execute(many(SQL["start_turns"], _TURN_ROW, len(run)), flat(run))
    tell_together(db, taken[-1][0].at, [started(turn_id, batch_id) for turn_id, _, batch_id, *_ in begun])
    for open_turn in open_turns.values():
        leave_unseen(db, open_turn)
    return tuple(
        Lease(rows.batch(found[batch_id]), open_turns.get(batch_id, turn_id), alone, continued=batch_id in open_turns)
        for _, batch_id, turn_id in taken
    )
