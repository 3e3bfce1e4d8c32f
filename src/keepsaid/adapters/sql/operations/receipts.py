"""Receipts: in which turns memories were shown, what people said of that; and notes kept by name until a time."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence

from keepsaid.adapters.sql.operations import rows
from keepsaid.adapters.sql.operations.outbox import keep_for_owner
from keepsaid.adapters.sql.operations.routing import lane_id_of
from keepsaid.adapters.sql.query import every, load, one, scalar
from keepsaid.adapters.sql.session import Row, SqlSession
from keepsaid.domain import receipt
from keepsaid.domain.lane import Lane
from keepsaid.domain.process import Note, NotifyOwner
from keepsaid.domain.states import move

SQL = load("notes")


def keep(db: SqlSession, commit: Note) -> None:
    db.execute(SQL["over"], (commit.at,))
    db.execute(SQL["keep"], (commit.name, commit.text, commit.until))


def notify(db: SqlSession, commit: NotifyOwner) -> bool:
    if one(db, SQL["read"], (commit.name, commit.at)) is not None:
        return True
    if not keep_for_owner(db, commit.notice, commit.at):
        return False
    keep(db, Note(commit.name, "told", commit.until, commit.at))
    return True


def note(db: SqlSession, name: str, at: int) -> str:
    return str(scalar(db, SQL["read"], (name, at)) or "")


RECEIPTS = load("receipts")


def judged(db: SqlSession, word: receipt.JudgeMemory, at: int) -> bool:
    """Whether the word stands now; False where the turn was not shown the memory, or nothing is to withdraw."""
    place = (word.turn_id, word.memory_id)
    known = one(db, RECEIPTS["judged"], place)
    if known is not None:
        stands = receipt.FeedbackState.WRONG if word.verb == "mark" else receipt.FeedbackState.WITHDRAWN
        if known[0] != stands:
            db.execute(RECEIPTS["judge_again"], (*place, move("feedback", known[0], word.verb), word.by, at))
        return True
    shown = one(db, RECEIPTS["shown"], place)
    if shown is None or word.verb != "mark":
        return False
    db.execute(RECEIPTS["judge"], (*place, shown[0], str(receipt.FeedbackState.WRONG), word.by, at))
    return True


def list_flagged_memories(db: SqlSession, lane_id: int) -> frozenset[int]:
    """The memories that feedback in force marks as wrong for turns of a lane."""
    return frozenset(row[0] for row in every(db, RECEIPTS["wrong_here"], (lane_id,)))


def feedback_of_turn(db: SqlSession, turn_id: int) -> tuple[receipt.Feedback, ...]:
    return tuple(_feedback(row) for row in every(db, RECEIPTS["feedback_of_turn"], (turn_id,)))


def reminded(db: SqlSession, lane: Lane) -> receipt.Reminded | None:
    shown = every(db, RECEIPTS["reminded"], (lane_id_of(db, lane),))
    return receipt.Reminded(shown[0][0], tuple(memory_id for _, memory_id in shown)) if shown else None


def uses(db: SqlSession, memory_id: int, turns: int) -> Sequence[receipt.Use]:
    found = {}
    for turn_id, *lane, at, how in every(db, RECEIPTS["shown_to"], (memory_id,)):
        found[turn_id] = receipt.Use(
            turn_id, Lane(*lane), at, receipt.MemoryUse(how), receipt.candidate_in(rows.trace(db, turn_id), memory_id)
        )
    named = f'"id":{memory_id},'.encode()
    for turn_id, *lane, at, body in every(db, RECEIPTS["traces"], (turns,)):
        text = zlib.decompress(body)
        if turn_id in found or named not in text:
            continue
        trace = json.loads(text)
        considered, behind = receipt.candidate_in(trace, memory_id), receipt.beyond_in(trace, memory_id)
        if considered is not None and not considered["chosen"]:
            found[turn_id] = receipt.Use(turn_id, Lane(*lane), at, receipt.MemoryUse.LEFT_OUT, considered)
        elif behind is not None:
            found[turn_id] = receipt.Use(turn_id, Lane(*lane), at, receipt.MemoryUse.BEYOND, behind)
    return [found[turn_id] for turn_id in sorted(found, reverse=True)]


def list_active_feedback(db: SqlSession, lane: Lane) -> Sequence[receipt.Feedback]:
    return [_feedback(row) for row in every(db, RECEIPTS["wrong_of_lane"], (lane_id_of(db, lane),))]


def feedback(db: SqlSession, memory_id: int) -> Sequence[receipt.Feedback]:
    return [_feedback(row) for row in every(db, RECEIPTS["feedback"], (memory_id,))]


def _feedback(row: Row) -> receipt.Feedback:
    turn_id, memory_id, state, by, at = row
    return receipt.Feedback(turn_id, memory_id, receipt.FeedbackState(state), by, at)
