"""Sessions: epochs of a lane, begun by turns, ended by silence, compaction and reset, and their marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from keepsaid.adapters.sqlite.query import Row, every, one, only
from keepsaid.adapters.sqlite.slots import clear_lane
from keepsaid.adapters.sqlite.statements import load
from keepsaid.adapters.sqlite.telling import tell
from keepsaid.domain.collection import SOFT
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.fact import of_session, session_over
from keepsaid.domain.session import FIRST, MARKS, UNPROCESSED_MAX, Ending, Quiet, Rest, Rested, Session
from keepsaid.domain.states import move

SQL = load("sessions")


@dataclass(frozen=True, slots=True)
class Grown:
    """A lane whose transcript has `told` records, and grows by more; `heard_at` is when the first of them came."""

    lane_id: int
    told: int
    heard_at: int


def enter(db: apsw.Connection, commit: TurnCommit, grown: Grown) -> tuple[int, int]:
    """The session a turn belongs to, begun or woken by it, and the record after which its count begins."""
    row = one(db, SQL["current"], (grown.lane_id,))
    steady = commit.at if commit.steady is None else commit.steady
    if row is not None and grown.heard_at - row[2] > commit.inactive_ms:
        _end(db, row, (grown.told, commit.at), Ending.INACTIVITY)
        row = None
    if row is None:
        before = one(db, SQL["ended_before"], (grown.lane_id,))
        reason, first = before[0] if before else FIRST, grown.told + 1
        db.execute(SQL["start"], (commit.turn_id, grown.lane_id, first, commit.at, reason, steady))
        tell(db, commit.at, of_session("started", commit.turn_id, reason=reason, first=first))
        return commit.turn_id, grown.told
    session_id, state, _, first, processed_until = row
    db.execute(SQL["touch"], (session_id, commit.at, steady))
    if state == "sleeping":
        db.execute(SQL["wake"], (session_id, move("session", state, "wake")))
        tell(db, commit.at, of_session("woke", session_id, reason="a message came"))
    return session_id, max(processed_until, first - 1)


def mark_if_many(db: apsw.Connection, lane_id: int, session: tuple[int, int], reached: tuple[int, int]) -> None:
    """Mark the session for collection once it has more new records of people and agent than may wait.

    `reached` is the lane's last record, and when it was said.
    """
    session_id, after = session
    if only(db, SQL["unprocessed"], (lane_id, after, session_id, UNPROCESSED_MAX + 1))[0] > UNPROCESSED_MAX:
        invalidate(db, session_id, reached[0], "records", reached[1])


def invalidate(db: apsw.Connection, session_id: int, record: int, reason: str, at: int) -> bool:
    """Mark a session for collection up to a record; whether that changed anything.

    Set only where none is, or a smaller one (seed 004). One that does not wait for six records makes another of the
    same record due, too.
    """
    state, marked, processed, firm_until, waits = only(db, SQL["mark_of"], (session_id,))
    firm = reason not in SOFT
    further = record > marked or (firm and (record > firm_until or (waits and state == "marked")))
    if record <= processed or not further:
        return False
    db.execute(SQL["invalidate"], (session_id, record, reason, firm, move("collection", state, "mark"), at))
    return True


def mark(db: apsw.Connection, lane_id: int, last: int, reason: str, at: int) -> None:
    """Mark the session of a lane, if it has one, for all that was said in it, up to the lane's last record."""
    row = one(db, SQL["current"], (lane_id,))
    if row is not None and last >= row[3]:
        invalidate(db, row[0], last, reason, at)


def rotate(db: apsw.Connection, lane_id: int, ending: Ending, at: int) -> None:
    """End the session of a lane, if it has one; the next record starts another. A reset asks nothing any more."""
    row = one(db, SQL["current"], (lane_id,))
    if row is not None:
        _end(db, row, (only(db, SQL["told"], (lane_id,))[0], at), ending)
    if ending is Ending.RESET:
        clear_lane(db, lane_id, "the lane was reset", at)


def _end(db: apsw.Connection, row: Row, when: tuple[int, int], ending: Ending) -> None:
    session_id, state, _, first, *_ = row
    last, at = when
    if last >= first:
        invalidate(db, session_id, last, MARKS[ending], at)
    db.execute(SQL["end"], (session_id, move("session", state, "end"), last, at, str(ending)))
    tell(db, at, session_over(session_id, ending, first, last))


def rest(db: apsw.Connection, commit: Rest) -> Rested:
    """Let sessions of quiet lanes sleep, and end."""
    done = {}
    looked = 0
    for state, before in (("active", commit.sleep_before), ("sleeping", commit.end_before)):
        db.execute(SQL["never_quiet"], (state, commit.steady))
        found = every(db, SQL["quiet"], (state, before, commit.limit))
        looked += len(found)
        quiet = [row for row in found if not row[3]]
        for row in found:
            if row[3]:
                db.execute(SQL["not_quiet"], (row[0], commit.steady))
        for session_id, first, told, _ in quiet:
            if state == "active":
                _sleep(db, session_id, told if told >= first else 0, commit.at)
            else:
                _end(db, (session_id, state, 0, first), (told, commit.at), Ending.IDLE)
        done[state] = len(quiet)
    return Rested(done["active"], done["sleeping"], looked)


def _sleep(db: apsw.Connection, session_id: int, last: int, at: int) -> None:
    if last:
        invalidate(db, session_id, last, "sleep", at)
    db.execute(SQL["sleep"], (session_id, move("session", "active", "sleep")))
    tell(db, at, of_session("sleeping", session_id, reason="the lane is quiet"))


def sessions(db: apsw.Connection, lane_id: int, limit: int) -> Sequence[Session]:
    """The sessions of a lane, newest first."""
    return [Session(*row) for row in every(db, SQL["sessions"], (lane_id, limit))]


def quiet_since(db: apsw.Connection) -> Quiet:
    """Since when the longest quiet lanes are."""
    return Quiet(*only(db, SQL["quiet_since"]))
