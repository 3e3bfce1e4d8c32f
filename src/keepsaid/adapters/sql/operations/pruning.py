"""Pruning: what is settled and old leaves in small pieces; keys, lanes and transcripts stay right without it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from keepsaid.adapters.sql.operations import journal, schedules
from keepsaid.adapters.sql.operations.intake import MARKED_EACH, MessageInserter
from keepsaid.adapters.sql.query import Row, SqlSession, every, load, only, run, write_rows
from keepsaid.domain.commits import BeginPruning, Prune
from keepsaid.domain.retention import Backlog, Cursor, Prunable, Pruned, PruneHistory, PruneRun, Stale

SQL = load("pruning")
_STEPS_EACH = 4
"""Rows that the steps of a batch count as."""

_RECORDS_EACH = 5
"""Rows that the records of a batch count as."""

_RUNS_MAX = 4_000
_FIRST: Cursor = (-(1 << 62), 0)


def begin(db: SqlSession, commit: BeginPruning) -> None:
    db.post(SQL["begin"], (commit.at,))


def history(db: SqlSession) -> PruneHistory:
    first_at, messages = only(db, SQL["totals"])
    return PruneHistory(tuple(PruneRun(*row) for row in every(db, SQL["runs"], (_RUNS_MAX,))), first_at, messages)


def prunable(db: SqlSession, messages_before: int, records_before: int) -> Prunable:
    return Prunable(*only(db, SQL["prunable"], (messages_before, records_before)))


def backlog(db: SqlSession) -> Backlog:
    return Backlog(*only(db, SQL["backlog"]))


@dataclass(slots=True)
class _Piece:
    """What leaves with one commit: rows, the batches that are empty then, and one that is only begun."""

    rows: list[Row] = field(default_factory=list)
    emptied: list[int] = field(default_factory=list)
    begun: int | None = None
    after: Cursor | None = None


class Pruning:
    """Prunes for one writer; no row goes before the index of the intake has its key."""

    def __init__(self, intake: MessageInserter) -> None:
        self._intake = intake

    def prune(self, db: SqlSession, commit: Prune) -> Pruned:
        if commit.what in _PRUNERS:
            return _PRUNERS[commit.what](db, commit)
        piece = self._piece(db, commit)
        if piece.rows:
            db.post(SQL["forget_messages"], (db.numbers([row[1] for row in piece.rows]),))
            db.post(SQL["count"], (len(piece.rows),))
            _note_lanes(db, piece.rows)
            self._intake.pruned()
        if piece.emptied:
            db.post(SQL["forget_steps"], (db.numbers(piece.emptied),))
            db.post(SQL["empty"], (db.numbers(piece.emptied), commit.at))
        if piece.begun is not None:
            db.post(SQL["begun"], (piece.begun, commit.at))
        return Pruned(len(piece.rows), 0, 0, piece.after)

    def _piece(self, db: SqlSession, commit: Prune) -> _Piece:
        """The rows of the next batches, as many as one commit may remove, the oldest of a batch first."""
        found = every(db, SQL["settled"], (commit.before, *(commit.after or _FIRST), commit.rows_max))
        rows: dict[int, list[Row]] = defaultdict(list)
        going: list[int] = []
        room = commit.rows_max
        for batch_id, _, held, count in found:
            if not held and room > 0:
                going.append(batch_id)
                room -= count
        for row in every(db, SQL["rows_of"], (db.numbers(going),)) if going else []:
            rows[row[0]].append(row)
        piece = _Piece(after=commit.after)
        left, left_bytes = commit.rows_max, commit.bytes_max
        for batch_id, ended_at, held, _ in found:
            if not held:
                if batch_id not in going:
                    return piece
                if any(keyed and message_id > self._intake.until for _, message_id, *_, keyed in rows[batch_id]):
                    self._intake.want_fold()
                    return piece
                for row in rows[batch_id]:
                    if piece.rows and (left < 1 or left_bytes < row[4]):
                        piece.begun = batch_id if row is not rows[batch_id][0] else None
                        return piece
                    piece.rows.append(row)
                    left, left_bytes = left - 1, left_bytes - row[4]
                piece.emptied.append(batch_id)
                left -= _STEPS_EACH
            piece.after = (ended_at, batch_id)
        piece.after = piece.after if len(found) == commit.rows_max else None
        return piece


def _note_lanes(db: SqlSession, rows: Sequence[Row]) -> None:
    """Note for each lane how far its messages are pruned, and since when it held external text."""
    last: dict[int, int] = {}
    external: dict[int, int] = {}
    for _, _, lane_id, number, _, is_external, _ in rows:
        last[lane_id] = max(number, last.get(lane_id, 0))
        if is_external:
            external[lane_id] = min(number, external.get(lane_id, number))
        if number % MARKED_EACH == 0:
            db.post(SQL["forget_mark"], (lane_id, number))
    write_rows(db, SQL["note_lanes"], [(lane_id, number, external.get(lane_id)) for lane_id, number in last.items()])


def _records(db: SqlSession, commit: Prune) -> Pruned:
    limit = max(1, commit.rows_max // _RECORDS_EACH)
    if not (found := every(db, SQL["emptied"], (commit.before, *(commit.after or _FIRST), limit))):
        return Pruned(0, 0, 0, None)
    ids = db.numbers(tuple(row[0] for row in found))
    db.post(SQL["unprompt"], (ids,))
    for what in ("steps", "traces", "injections", "replies", "turns", "batches"):
        db.post(SQL[f"forget_{what}"], (ids,))
    return Pruned(0, len(found), 0, found[-1][::-1] if len(found) == limit else None)


def _oldest(statement: str, db: SqlSession, commit: Prune) -> Pruned:
    """Remove the oldest rows that a statement finds; the cursor counts the rows that went before."""
    gone = run(db, statement, (commit.before, commit.rows_max))
    before = commit.after[0] if commit.after else 0
    return Pruned(0, 0, 0, (int(before) + gone,) if gone == commit.rows_max else None)


def _keys(db: SqlSession, commit: Prune) -> Pruned:
    [start] = commit.after or (b"",)
    if (last := only(db, SQL["last_key"], (start, commit.rows_max))[0]) is None:
        return Pruned(0, 0, 0, None)
    return Pruned(0, 0, run(db, SQL["forget_keys"], (start, last, commit.before)), (last,))


_PRUNERS: Mapping[Stale, Callable[[SqlSession, Prune], Pruned]] = {
    Stale.KEYS: _keys,
    Stale.FINDINGS: partial(_oldest, SQL["forget_findings"]),
    Stale.RECORDS: _records,
    Stale.EVENTS: journal.prune,
    Stale.TASKS: partial(_oldest, load("tasks")["forget_ended"]),
    Stale.RUNS: schedules.prune,
}
