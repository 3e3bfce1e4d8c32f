"""Sessions: epochs of a lane, begun by turns, ended by silence, compaction and reset, and their marks."""

from __future__ import annotations

from keepsaid.adapters.ram.session_row import SessionRow
from keepsaid.adapters.ram.slots import clear_lane
from keepsaid.adapters.ram.state import LaneRow, State
from keepsaid.domain.collection import SOFT
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.fact import of_session, session_over
from keepsaid.domain.prompt import Role
from keepsaid.domain.session import FIRST, MARKS, UNPROCESSED_MAX, Ending, Quiet, Rest, Rested
from keepsaid.domain.states import move


def enter(state: State, lane: LaneRow, commit: TurnCommit, heard_at: int) -> SessionRow:
    """The session a turn belongs to, begun or woken by it."""
    session = lane.session
    if session is not None and heard_at - session.active_at > commit.inactive_ms:
        _end(state, session, (len(lane.transcript), commit.at), Ending.INACTIVITY)
        session = None
    if session is None:
        reason = lane.sessions[-1].ended_reason if lane.sessions else FIRST
        session = SessionRow(commit.turn_id, len(lane.transcript) + 1, commit.at, reason)
        lane.sessions.append(session)
        state.told(commit.at, of_session("started", session.id, reason=reason, first=session.first))
    session.active_at = commit.at
    session.quiet_since = commit.at if commit.steady is None else commit.steady
    if session.state == "sleeping":
        session.state = move("session", session.state, "wake")
        state.told(commit.at, of_session("woke", session.id, reason="a message came"))
    return session


def mark_if_many(lane: LaneRow, session: SessionRow, at: int) -> None:
    """Mark the session for collection once it has more new records of people and agent than may wait."""
    since = lane.transcript[max(session.processed_until or 0, session.first - 1) :]
    if sum(entry.record.role is not Role.TOOL for entry in since) > UNPROCESSED_MAX:
        invalidate(session, len(lane.transcript), "records", at)


def invalidate(session: SessionRow, record: int, reason: str, at: int) -> bool:
    """Mark a session for collection up to a record; whether that changed anything.

    Set only where none is, or a smaller one (seed 004). One that does not wait for six records makes another of the
    same record due, too.
    """
    marked, firm = session.invalidated_at or 0, reason not in SOFT
    waits = session.collect_at is None and session.collection == "marked"
    further = record > marked or (firm and (record > session.firm_until or waits))
    if record <= (session.processed_until or 0) or not further:
        return False
    if record > marked:
        session.invalidated_at, session.invalidated_reason = record, reason
    if firm:
        session.firm_until = max(session.firm_until, record)
    session.collection = move("collection", session.collection, "mark")
    if session.collection == "marked" and session.collect_at is None:
        session.collect_at = at
    return True


def mark(lane: LaneRow, reason: str, at: int) -> None:
    """Mark the session of a lane, if it has one, for all that was said in it."""
    if lane.session is not None and len(lane.transcript) >= lane.session.first:
        invalidate(lane.session, len(lane.transcript), reason, at)


def rotate(state: State, lane: LaneRow, ending: Ending, at: int) -> None:
    """End the session of a lane, if it has one; the next record starts another. A reset asks nothing any more."""
    if lane.session is not None:
        _end(state, lane.session, (len(lane.transcript), at), ending)
    if ending is Ending.RESET:
        clear_lane(lane, "the lane was reset", at)


def _end(state: State, session: SessionRow, when: tuple[int, int], ending: Ending) -> None:
    last, at = when
    if last >= session.first:
        invalidate(session, last, MARKS[ending], at)
    session.state = move("session", session.state, "end")
    session.last, session.ended_at, session.ended_reason = last, at, str(ending)
    state.told(at, session_over(session.id, ending, session.first, last))


def rest(state: State, commit: Rest) -> Rested:
    """Let sessions of quiet lanes sleep, and end."""
    done = {}
    looked = 0
    for before_state, before in (("active", commit.sleep_before), ("sleeping", commit.end_before)):
        found = []
        for lane, session in _current(state, before_state):
            session.quiet_since = min(session.quiet_since, commit.steady)
            if session.quiet_since <= before:
                found.append((session.quiet_since, lane, session))
        found = sorted(found, key=lambda one: (one[0], one[2].id))[: commit.limit]
        looked += len(found)
        done[before_state] = 0
        for _, lane, session in found:
            if lane.open or lane.due_at is not None:
                session.quiet_since = commit.steady
                continue
            done[before_state] += 1
            if before_state == "active":
                _sleep(state, lane, session, commit.at)
            else:
                _end(state, session, (len(lane.transcript), commit.at), Ending.IDLE)
    return Rested(done["active"], done["sleeping"], looked)


def _sleep(state: State, lane: LaneRow, session: SessionRow, at: int) -> None:
    if len(lane.transcript) >= session.first:
        invalidate(session, len(lane.transcript), "sleep", at)
    session.state = move("session", session.state, "sleep")
    state.told(at, of_session("sleeping", session.id, reason="the lane is quiet"))


def _current(state: State, wanted: str) -> list[tuple[LaneRow, SessionRow]]:
    current = ((lane, lane.session) for lane in state.lanes.values())
    return [(lane, session) for lane, session in current if session is not None and session.state == wanted]


def quiet_since(state: State) -> Quiet:
    """Since when the longest quiet lanes are."""
    active, sleeping = (
        min((session.quiet_since for _, session in _current(state, wanted)), default=None)
        for wanted in ("active", "sleeping")
    )
    return Quiet(active, sleeping)
