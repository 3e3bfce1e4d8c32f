"""Recorded talk: stored, routed, settled in one commit (short: the functions of other messages do each of it)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from keepsaid.adapters.sql.operations import leases, modes, turns
from keepsaid.adapters.sql.operations.intake import MessageInserter
from keepsaid.adapters.sql.query import SqlSession
from keepsaid.domain.commits import Dispatch, Receive, Received
from keepsaid.domain.recorded_talk import AT_ONCE, RecordTalk, newly_stored
from keepsaid.errors import StoreError

DispatchSet = Callable[[SqlSession, Sequence[Dispatch]], list[bool]]


def recorder(
    intake: MessageInserter, dispatch: DispatchSet
) -> Callable[[SqlSession, RecordTalk], tuple[Received, ...]]:
    """How talk is recorded by one writer: `intake` stores its messages, `dispatch` routes lanes."""
    return partial(_record, intake, dispatch)


def _record(intake: MessageInserter, dispatch: DispatchSet, db: SqlSession, commit: RecordTalk) -> tuple[Received, ...]:
    received = tuple(intake.receive(db, [Receive(one, AT_ONCE) for one in commit.arrivals]))
    if not (stored := newly_stored(received)):
        return received
    lane, first = stored[0].lane, stored[0].number
    paused = modes.is_paused(db, lane)
    [kept] = dispatch(db, [Dispatch(lane, first - 1, (commit.routed(stored),), AT_ONCE, commit.at, paused)])
    lease = leases.lease_one(db, commit.claim(), commit.batch_id) if kept else None
    if lease is None or not turns.commit_turn(db, commit.settled(lease)):
        raise StoreError("something else waits in the lane of recorded talk", safe="Nothing was recorded.")
    return received
