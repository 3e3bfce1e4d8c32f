"""Routing: batches and verdicts written in one commit, and the one ready batch of each lane."""

from __future__ import annotations

import apsw

from keepsaid.adapters.sqlite.query import one, only
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.batch import Routed, TaskDraft
from keepsaid.domain.commits import Dispatch
from keepsaid.domain.lane import Lane
from keepsaid.domain.route import Action
from keepsaid.domain.states import move

SQL = load("routing")


def lane_row(db: apsw.Connection, lane: Lane) -> tuple[int, int, int]:
    """A lane's row id, head and last batched number."""
    identity = (lane.channel, lane.account, lane.conversation, lane.key)
    row = one(db, SQL["lane"], identity)
    if row is None:
        raise LookupError(f"no lane {lane}")
    return row


def refresh_ready(db: apsw.Connection, lane_id: int) -> None:
    """Name the one batch of the lane that may be claimed: its first open one, unless that is leased."""
    db.execute(SQL["clear_ready"], (lane_id,))
    db.execute(SQL["set_ready"], (lane_id,))


def dispatch(db: apsw.Connection, commit: Dispatch) -> bool:
    """Write the batches of a lane's waiting messages."""
    lane_id, head, batched = lane_row(db, commit.lane)
    last = commit.batches[-1].last
    if batched != commit.after or last > head:
        return False
    for routed in commit.batches:
        if not _extended(db, commit, lane_id, routed):
            _keep(db, commit, lane_id, routed)
    _advance(db, commit, lane_id, last)
    refresh_ready(db, lane_id)
    return True


def _extended(db: apsw.Connection, commit: Dispatch, lane_id: int, routed: Routed) -> bool:
    verdict, window = routed.verdict, commit.window
    if verdict.action is not Action.FORWARD:
        return False
    bound = (lane_id, routed.first - 1, verdict.rule, verdict.version)
    row = one(db, SQL["last_open"], bound)
    if row is None:
        return False
    batch_id, first, _, chars = row
    if routed.last - first + 1 > window.count_max or chars + routed.chars > window.chars_max:
        return False
    db.execute(SQL["extend_batch"], (batch_id, routed.last, routed.chars, routed.priority))
    return True


def _keep(db: apsw.Connection, commit: Dispatch, lane_id: int, routed: Routed) -> None:
    verdict, state, task_id = routed.verdict, "queued", None
    if verdict.action is Action.DROP:
        state = move("batch", state, "drop")
    elif verdict.action is Action.SPAWN:
        state = move("batch", state, "spawn")
        assert routed.task is not None, "a spawn verdict carries its task"
        task_id = _task(db, commit, lane_id, (routed, routed.task))
        db.execute(SQL["episodes_due"], (routed.id, lane_id, None))
    ended_at = None if state == "queued" else commit.at
    reasons = (state, str(verdict.action), verdict.rule, verdict.version, verdict.reason)
    bound = (routed.id, lane_id, routed.first, routed.last, routed.chars, *reasons, routed.priority)
    db.execute(SQL["keep_batch"], (*bound, commit.at, ended_at, task_id))


def _task(db: apsw.Connection, commit: Dispatch, lane_id: int, work: tuple[Routed, TaskDraft]) -> int:
    routed, draft = work
    count = routed.last - routed.first + 1
    row = one(db, SQL["pending_task"], (draft.key,))
    if row is not None:
        db.execute(SQL["merge_task"], (row[0], draft.description, count))
        return int(row[0])
    bound = (draft.id, draft.key, lane_id, routed.verdict.rule, draft.description, count, commit.at)
    db.execute(SQL["keep_task"], bound)
    return draft.id


def _advance(db: apsw.Connection, commit: Dispatch, lane_id: int, last: int) -> None:
    window = commit.window
    row = only(db, SQL["rest_of_lane"], (lane_id, last, window.count_max))
    priority, oldest, newest, chars, count = row
    if not count:
        db.execute(SQL["advance_lane"], (lane_id, last, 100, None, None, 0, None))
        return
    full = count >= window.count_max or chars >= window.chars_max
    due = commit.at if full else window.due_at(oldest, newest)
    db.execute(SQL["advance_lane"], (lane_id, last, priority, oldest, newest, chars, due))
