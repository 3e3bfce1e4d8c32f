"""Pruning: what is settled and old leaves in small pieces; keys, lanes and transcripts stay right without it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from keepsaid.adapters.sql.operations import journal, schedules, tasks
from keepsaid.adapters.sql.operations.intake import MARKED_EACH, MessageInserter
from keepsaid.adapters.sql.query import every, load, only, run, write_rows
from keepsaid.adapters.sql.session import Row, SqlSession
from keepsaid.domain.commits import BeginPruning, Prune
from keepsaid.domain.retention import Backlog, Cursor, Prunable, Pruned, PruneHistory, PruneRun, Stale

SQL = load("pruning")
_STEPS_EACH = 4
"""Rows that the steps of a batch count as."""

_RECORDS_EACH = 5
"""Rows that the records of a batch count as."""

_RUNS_MAX = 4_000
_OTHERS: Mapping[Stale, Callable[[SqlSession, Prune], Pruned]] = {
    Stale.EVENTS: journal.prune,
    Stale.TASKS: tasks.prune,
    Stale.RUNS: schedules.prune,
}


def begin(db: SqlSession, commit: BeginPruning) -> None:
    db.execute(SQL["begin"], (commit.at,))


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
        if commit.what is Stale.KEYS:
            return _keys(db, commit)
        if commit.what is Stale.FINDINGS:
            return _findings(db, commit)
        if commit.what is Stale.RECORDS:
            return _records(db, commit)
        if commit.what in _OTHERS:
            return _OTHERS[commit.what](db, commit)
        piece = self._piece(db, commit)
        if piece.rows:
            db.execute(SQL["forget_messages"], (db.numbers(tuple(row[1] for row in piece.rows)),))
            db.execute(SQL["count"], (len(piece.rows),))
            _note_lanes(db, piece.rows)
            self._intake.pruned()
        if piece.emptied:
            db.execute(SQL["forget_steps"], (db.numbers(tuple(piece.emptied)),))
            db.execute(SQL["empty"], (db.numbers(tuple(piece.emptied)), commit.at))
        if piece.begun is not None:
            db.execute(SQL["begun"], (piece.begun, commit.at))
        return Pruned(len(piece.rows), 0, 0, piece.after)

    def _piece(self, db: SqlSession, commit: Prune) -> _Piece:
        """The rows of the next batches, as many as one commit may remove, the oldest of a batch first."""
        found = every(db, SQL["settled"], (commit.before, *_place(commit), commit.rows_max))
        rows: dict[int, list[Row]] = defaultdict(list)
        going = _enough(found, commit.rows_max)
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


def _enough(found: Sequence[Row], rows_max: int) -> tuple[int, ...]:
    """The first batches that may go, until their messages are as many as one commit may remove."""
    going: list[int] = []
    left = rows_max
    for batch_id, _, held, count in found:
        if not held and left > 0:
            going.append(batch_id)
            left -= count
    return tuple(going)


def _place(commit: Prune) -> Cursor:
    return commit.after or (-(1 << 62), 0)


def _note_lanes(db: SqlSession, rows: Sequence[Row]) -> None:
    """Lanes remember how far their messages are gone, and since when they held external words."""
    last: dict[int, int] = {}
    external: dict[int, int] = {}
    for _, _, lane_id, number, _, is_external, _ in rows:
        last[lane_id] = max(number, last.get(lane_id, 0))
        if is_external:
            external[lane_id] = min(number, external.get(lane_id, number))
        if number % MARKED_EACH == 0:
            db.execute(SQL["forget_mark"], (lane_id, number))
    table: list[tuple[object, ...]] = [(lane, number, external.get(lane)) for lane, number in last.items()]
    write_rows(db, SQL["note_lanes"], table)


def _records(db: SqlSession, commit: Prune) -> Pruned:
    limit = max(1, commit.rows_max // _RECORDS_EACH)
    found = every(db, SQL["emptied"], (commit.before, *_place(commit), limit))
    if not found:
        return Pruned(0, 0, 0, None)
    ids = db.numbers(tuple(row[0] for row in found))
    for statement in ("unprompt", "forget_steps", "forget_traces", "forget_injections", "forget_replies"):
        db.execute(SQL[statement], (ids,))
    db.execute(SQL["forget_turns"], (ids,))
    db.execute(SQL["forget_batches"], (ids,))
    batch_id, ended_at = found[-1]
    return Pruned(0, len(found), 0, (ended_at, batch_id) if len(found) == limit else None)


def _findings(db: SqlSession, commit: Prune) -> Pruned:
    """Those are gone that come first; how many went before says that it goes on."""
    gone = run(db, SQL["forget_findings"], (commit.before, commit.rows_max))
    before = commit.after[0] if commit.after else 0
    return Pruned(0, 0, 0, (int(before) + gone,) if gone == commit.rows_max else None)


def _keys(db: SqlSession, commit: Prune) -> Pruned:
    [start] = commit.after or (b"",)
    last = only(db, SQL["last_key"], (start, commit.rows_max))[0]
    if last is None:
        return Pruned(0, 0, 0, None)
    return Pruned(0, 0, run(db, SQL["forget_keys"], (start, last, commit.before)), (last,))
