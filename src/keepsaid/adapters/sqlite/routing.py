"""Routing: batches and verdicts written in one commit, and the one ready batch of each lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from keepsaid.adapters.sqlite.query import every, one
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.batch import DESCRIPTION_CHARS_MAX, Routed, TaskDraft
from keepsaid.domain.commits import Dispatch
from keepsaid.domain.lane import Lane
from keepsaid.domain.route import Action
from keepsaid.domain.states import move

SQL = load("routing")


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What routing needs to know of a message that waits."""

    number: int
    id: int
    received_at: int
    priority: int
    chars: int


def lane_row(db: apsw.Connection, lane: Lane) -> tuple[int, int, int]:
    """A lane's row id, head and last batched number."""
    identity = (lane.channel, lane.account, lane.conversation, lane.key)
    row = one(db, SQL["lane"], identity)
    if row is None:
        raise LookupError(f"no lane {lane}")
    return row


def refresh_ready(db: apsw.Connection, lane_id: int) -> None:
    """Name the one batch of the lane that may be claimed: its first open one, unless that is leased."""
    db.execute(SQL["set_ready"], (lane_id,))
    if not db.changes():
        db.execute(SQL["clear_ready"], (lane_id,))


def dispatch(db: apsw.Connection, commit: Dispatch) -> bool:
    """Write the batches of a lane's waiting messages."""
    lane_id, head, batched = lane_row(db, commit.lane)
    last = commit.batches[-1].last
    if batched != commit.after or last > head:
        return False
    if not _contiguous(commit):
        raise ValueError("the batches of a dispatch must follow one another from the first waiting message")
    for routed in commit.batches:
        if not _extended(db, commit, lane_id, routed):
            _keep(db, commit, lane_id, routed)
    _advance(db, commit, lane_id, _rest(db, lane_id, last, min(head, last + commit.window.count_max)))
    db.execute(SQL["routed"], (commit.lane.channel, last - batched))
    refresh_ready(db, lane_id)
    return True


def _rest(db: apsw.Connection, lane_id: int, last: int, until: int) -> Sequence[_Waiting]:
    """What came after the messages that are routed now."""
    if until == last:
        return ()
    waiting = (_Waiting(*row) for row in every(db, SQL["waiting"], (lane_id, until)))
    return [one for one in waiting if one.number > last]


def _contiguous(commit: Dispatch) -> bool:
    expected = commit.after + 1
    for routed in commit.batches:
        if routed.first != expected or routed.last < routed.first:
            return False
        expected = routed.last + 1
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
    db.execute(SQL["extend_batch"], (batch_id, routed.last, routed.chars, routed.priority, routed.last_id))
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
    place = (routed.id, lane_id, routed.first, routed.last, routed.last_id, routed.first_at, routed.chars)
    decided = (state, str(verdict.action), verdict.rule, verdict.version, verdict.reason, routed.priority)
    db.execute(SQL["keep_batch"], (*place, *decided, commit.at, ended_at, task_id))


def _task(db: apsw.Connection, commit: Dispatch, lane_id: int, work: tuple[Routed, TaskDraft]) -> int:
    routed, draft = work
    count = routed.last - routed.first + 1
    row = one(db, SQL["pending_task"], (draft.key,))
    if row is not None:
        db.execute(SQL["merge_task"], (row[0], draft.description, count, DESCRIPTION_CHARS_MAX))
        return int(row[0])
    bound = (draft.id, draft.key, lane_id, routed.verdict.rule, draft.description, count, commit.at)
    db.execute(SQL["keep_task"], bound)
    return draft.id


def _advance(db: apsw.Connection, commit: Dispatch, lane_id: int, rest: Sequence[_Waiting]) -> None:
    """Move the lane past its new batches; what remains decides when it is due again."""
    window, last = commit.window, commit.batches[-1].last
    if not rest:
        db.execute(SQL["advance_lane"], (lane_id, last, 100, None, None, 0, None))
        return
    oldest, newest = min(one.received_at for one in rest), max(one.received_at for one in rest)
    chars = sum(one.chars for one in rest)
    full = len(rest) >= window.count_max or chars >= window.chars_max
    due = commit.at if full else window.due_at(oldest, newest)
    priority = min(one.priority for one in rest)
    db.execute(SQL["advance_lane"], (lane_id, last, priority, oldest, newest, chars, due))
