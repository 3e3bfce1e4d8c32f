"""Lanes: their sessions and questions, the summary in force, and the records after it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from keepsaid.adapters.sql.operations import routing, rows
from keepsaid.adapters.sql.operations.journal import write_facts
from keepsaid.adapters.sql.query import (
    JointStatement,
    Row,
    SqlSession,
    every,
    every_replaced,
    load,
    one,
    only,
    post_each,
    run,
    scalar,
)
from keepsaid.domain import commits, effects, event, prompt, slot, states, turn, visibility
from keepsaid.domain import context as domain
from keepsaid.domain.compaction import CutContext, CutReason, SummariesCopied, Summarise, SummaryFailed
from keepsaid.domain.message import Lane, Trust
from keepsaid.domain.prompt import Json
from keepsaid.domain.session import FIRST, MARKS, SOFT, UNPROCESSED_MAX, QuietSince, Rest, Rested, Session, SessionEnd
from keepsaid.values import frozen

SLOTS = load("slots")
OfSlot = effects.OpenSlot | effects.FillSlot | effects.ClearSlot


def apply_effect(db: SqlSession, effect: OfSlot, lane_id: int, made_by: tuple[int, int]) -> None:
    """Apply what a turn requested of slots; `made_by` is its id and time. A new question replaces the person's last."""
    turn_id, at = made_by
    if isinstance(effect, effects.OpenSlot):
        for row in every(db, SLOTS["pending_of"], (lane_id, effect.person)):
            _end_slot(db, row, "clear", at, reason=slot.TAKEN_OVER)
        asked = effect.question
        question = (asked.text, str(asked.expected), json.dumps(asked.options), f"reply:{turn_id}")
        db.post(SLOTS["open_slot"], (turn_id, lane_id, effect.person, *question, at, at + effect.lasts_ms))
        return
    if (state := scalar(db, SLOTS["slot_state"], (effect.slot_id, lane_id))) != slot.SlotState.OPEN:
        return
    if isinstance(effect, effects.FillSlot):
        filled_by = f"message:{effect.message_id}"
        _end_slot(db, (effect.slot_id, state), "fill", at, filled_by=filled_by, value=effect.value)
    else:
        _end_slot(db, (effect.slot_id, state), effect.verb, at, reason=effect.reason)


def clear_lane(db: SqlSession, lane_id: int, reason: str, at: int) -> None:
    for row in every(db, SLOTS["open_of_lane"], (lane_id,)):
        _end_slot(db, row, "clear", at, reason=reason)


def _end_slot(db: SqlSession, row: Row, verb: str, at: int, **columns: str) -> None:
    slot_id, state = row
    values = (columns.get(name, "") for name in ("reason", "filled_by", "value"))
    db.post(SLOTS["end_slot"], (slot_id, states.move("slot", state, verb), *values, at))


def pending(db: SqlSession, lane_id: int) -> tuple[slot.Slot, ...]:
    return tuple(slot_of(row) for row in every(db, SLOTS["open_slots"], (lane_id,)))


def slots(db: SqlSession, lane: Lane, limit: int) -> Sequence[slot.Slot]:
    return [slot_of(row) for row in every(db, SLOTS["slots"], (routing.lane_id_of(db, lane), limit))]


def slot_of(row: Row) -> slot.Slot:
    """A row of the statements that read questions."""
    question = slot.Question(row[2], slot.Expected(row[3]), tuple(json.loads(row[4])))
    return slot.Slot(*(*row[:2], question, *row[5:8], slot.SlotState(row[8]), *row[9:]))


SESSIONS = load("sessions")


@frozen
class Grown:
    """A lane whose transcript has `told` records, and grows by more; `heard_at` is when the first of them came.

    `incognito` says that these were said in incognito: they get a session of their own, which nothing reads.
    `session` is the lane's, as a row of the statement `current`.
    """

    lane_id: int
    told: int
    heard_at: int
    incognito: bool = False
    session: Row | None = None


def enter(db: SqlSession, commit: commits.TurnCommit, grown: Grown) -> tuple[int, int]:
    """The session a turn belongs to, begun or woken by it, and the record after which its count begins."""
    row = grown.session
    steady = commit.at if commit.steady is None else commit.steady
    if row is not None and grown.heard_at - row[2] > commit.inactive_ms:
        _end(db, row, (grown.told, commit.at), SessionEnd.INACTIVITY)
        row = None
    if row is not None and bool(row[5]) != grown.incognito:
        _end(db, row, (grown.told, commit.at), SessionEnd.INCOGNITO)
        row = None
    if row is None:
        reason, first = scalar(db, SESSIONS["ended_before"], (grown.lane_id,)) or FIRST, grown.told + 1
        db.post(SESSIONS["start"], (commit.turn_id, grown.lane_id, first, commit.at, reason, steady, grown.incognito))
        write_facts(db, commit.at, event.of_session("started", commit.turn_id, reason=reason, first=first))
        return commit.turn_id, grown.told
    session_id, state, _, first, processed_until, _ = row
    db.post(SESSIONS["touch"], (session_id, commit.at, steady))
    if state == "sleeping":
        db.post(SESSIONS["wake"], (session_id, states.move("session", state, "wake")))
        write_facts(db, commit.at, event.of_session("woke", session_id, reason="a message came"))
    return session_id, max(processed_until, first - 1)


def mark_if_many(db: SqlSession, lane_id: int, session: tuple[int, int], reached: tuple[int, int]) -> None:
    """Mark a session for collection if too many records wait; `reached` is the lane's last record and its time."""
    session_id, after = session
    [(waiting,)], [marked] = db.ask(
        JointStatement(SESSIONS["unprocessed"], (lane_id, after, session_id, UNPROCESSED_MAX + 1)),
        JointStatement(SESSIONS["mark_of"], (session_id,)),
    )
    if waiting > UNPROCESSED_MAX:
        _mark(db, session_id, marked, (reached[0], "records", reached[1]))


def invalidate(db: SqlSession, session_id: int, record: int, reason: str, at: int) -> bool:
    """Mark a session for collection up to a record; whether that changed anything.

    Set only where none is, or a smaller one (seed 004). One that does not wait for six records makes another of the
    same record due, too. What was said in incognito is never collected.
    """
    return _mark(db, session_id, only(db, SESSIONS["mark_of"], (session_id,)), (record, reason, at))


def _mark(db: SqlSession, session_id: int, found: Row, new: tuple[int, str, int]) -> bool:
    """Mark a session, of which the mark was `found`; the new one has a record, a reason and a time."""
    (state, marked, processed, firm_until, waits, incognito), (record, reason, at) = found, new
    firm = reason not in SOFT
    further = record > marked or (firm and (record > firm_until or (waits and state == "marked")))
    if incognito or record <= processed or not further:
        return False
    db.post(SESSIONS["invalidate"], (session_id, record, reason, firm, states.move("collection", state, "mark"), at))
    return True


def mark(db: SqlSession, lane_id: int, last: int, reason: str, at: int) -> None:
    """Mark the session of a lane, if it has one, for all that was said in it, up to the lane's last record."""
    if (row := one(db, SESSIONS["current"], (lane_id,))) is not None and last >= row[3]:
        invalidate(db, row[0], last, reason, at)


def rotate(db: SqlSession, lane_id: int, ending: SessionEnd, at: int) -> None:
    """End the session of a lane, if it has one; the next record starts another. A reset asks nothing any more."""
    if (row := one(db, SESSIONS["current"], (lane_id,))) is not None:
        _end(db, row, (only(db, SESSIONS["told"], (lane_id,))[0], at), ending)
    if ending is SessionEnd.RESET:
        clear_lane(db, lane_id, "the lane was reset", at)


def _end(db: SqlSession, row: Row, when: tuple[int, int], ending: SessionEnd) -> None:
    session_id, state, _, first, *_ = row
    last, at = when
    if last >= first:
        invalidate(db, session_id, last, MARKS[ending], at)
    db.post(SESSIONS["end"], (session_id, states.move("session", state, "end"), last, at, str(ending)))
    write_facts(db, at, event.session_over(session_id, ending, first, last))


def rest(db: SqlSession, commit: Rest) -> Rested:
    done, looked = {}, 0
    for state, before in (("active", commit.sleep_before), ("sleeping", commit.end_before)):
        db.post(SESSIONS["never_quiet"], (state, commit.steady))
        found = every(db, SESSIONS["quiet"], (state, before, commit.limit))
        looked += len(found)
        quiet = [row for row in found if not row[3]]
        post_each(db, SESSIONS["not_quiet"], [(row[0], commit.steady) for row in found if row[3]])
        for session_id, first, last, _ in quiet:
            if state == "sleeping":
                _end(db, (session_id, state, 0, first), (last, commit.at), SessionEnd.IDLE)
                continue
            if last >= first:
                invalidate(db, session_id, last, "sleep", commit.at)
            db.post(SESSIONS["sleep"], (session_id, states.move("session", "active", "sleep")))
            write_facts(db, commit.at, event.of_session("sleeping", session_id, reason="the lane is quiet"))
        done[state] = len(quiet)
    return Rested(done["active"], done["sleeping"], looked)


def sessions(db: SqlSession, lane: Lane, limit: int) -> Sequence[Session]:
    return [Session(*row) for row in every(db, SESSIONS["sessions"], (routing.lane_id_of(db, lane), limit))]


def quiet_since(db: SqlSession) -> QuietSince:
    return QuietSince(*only(db, SESSIONS["quiet_since"]))


SQL = load("context")


class _Head(NamedTuple):
    """The head of a lane's context, with the last position of its transcript."""

    version: int
    summarised_until: int
    floor: int
    left_out: int
    summary: int | None
    last: int
    attempts: int
    next_at: int
    changed_at: int

    @property
    def covered(self) -> int:
        return max(self.summarised_until, self.floor)


def context(db: SqlSession, lane: Lane, limit: int) -> domain.LaneTail:
    if (row := one(db, SQL["head_of"], lane)) is None:
        return domain.LaneTail()
    lane_id, head = row[0], _Head(*row[1:])
    newest, posted, used, summed = db.ask(
        JointStatement(SQL["tail"], (lane_id, head.covered, max(0, limit)), replaces=True),
        JointStatement(SQL["posted"], (lane_id, head.covered, head.floor, head.changed_at, domain.POSTS_MAX)),
        JointStatement(SQL["used"], (lane_id, head.changed_at)),
        JointStatement(SQL["summary"], (lane_id, head.summary)),
        ends=head.summary is None,
    )
    found = newest[::-1]
    while found and found[0][0] == prompt.Role.TOOL:
        found.pop(0)
    posts = tuple(domain.SchedulePost(after, text, Trust(trust or Trust.EXTERNAL)) for after, text, trust in posted)
    recent = turn.Recent(rows.records(db, lane_id, found), tuple(row[6] for row in found))
    summary = _summary_of(db, lane_id, head.summary, summed) if head.summary is not None else None
    covered = (head.summarised_until, head.floor, head.version, head.left_out)
    ends = (head.last, head.attempts, head.next_at, used[0][0])
    return domain.LaneTail(recent, tuple(row[7] for row in found), summary, *covered, *ends, posts=posts)


def span(db: SqlSession, lane: Lane, after: int, limit: int) -> domain.TranscriptSpan:
    if (lane_id := routing.lane_id_of(db, lane)) is None:
        return domain.TranscriptSpan((), ())
    found = every_replaced(db, SQL["span"], (lane_id, after, max(0, limit)))
    return domain.TranscriptSpan(rows.records(db, lane_id, found), tuple(row[7] for row in found))


def past(db: SqlSession, lane: Lane) -> tuple[domain.DroppedSpan, ...]:
    return tuple(domain.DroppedSpan(*row) for row in every(db, SQL["past"], (routing.lane_id_of(db, lane),)))


def _head(db: SqlSession, lane_id: int) -> _Head:
    return _Head(*only(db, SQL["head"], (lane_id,)))


def _summary(db: SqlSession, lane_id: int, version: int) -> domain.Summary | None:
    return _summary_of(db, lane_id, version, every(db, SQL["summary"], (lane_id, version)))


def _summary_of(db: SqlSession, lane_id: int, version: int, found: Sequence[Row]) -> domain.Summary | None:
    """The summary of a version, as its row was `found`; None where it is gone or damaged."""
    if not found or db.altered("lane_summary", [version], lane_id):
        return None
    [row] = found
    trust = rows.trust_of(row[7]) or _trust_between(db, lane_id, 1, row[2])
    return replace(summary_of(row[:7]), trust=trust)


def _trust_between(db: SqlSession, lane_id: int, first: int, last: int) -> Trust:
    """The least trust of the records between two positions."""
    found = every(db, SQL["trusts_between"], (lane_id, first, last))
    said = (prompt.Record(prompt.Role(role), "", speaker=by, trust=rows.trust_of(trust)) for role, by, trust in found)
    return visibility.least_of(said)


def summary_of(row: Sequence[Any]) -> domain.Summary:
    """A row of the statements that read summaries: version, first, last, text, kind, model, created_at."""
    return domain.Summary(*(*row[:4], domain.Made(row[4]), *row[5:7]))


def summarise(db: SqlSession, commit: Summarise) -> bool:
    if (place := _movable(db, commit)) is None:
        return False
    lane_id, head = place
    version, first = head.version + 1, head.covered + 1
    said = only(db, SQL["said_between"], (lane_id, first, commit.last))
    before = None if head.summary is None else _summary(db, lane_id, head.summary)
    earlier = [before.trust] if before is not None and before.trust else []
    trust = visibility.least([_trust_between(db, lane_id, first, commit.last), *earlier])
    made = (commit.text, str(commit.made), commit.model, commit.at)
    db.post(SQL["keep_summary"], (lane_id, version, first, commit.last, *made, *said, str(trust)))
    db.post(SQL["set_head"], (lane_id, version, commit.last, head.floor, head.left_out, version, commit.at))
    if not scalar(db, SQL["incognito_between"], (lane_id, first, commit.last)):
        db.post(SQL["copy_due"], (lane_id, version))
    rotate(db, lane_id, SessionEnd.COMPACTION, commit.at)
    write_facts(db, commit.at, event.compacted(commit.lane, str(commit.made), (version, first, commit.last, said[0])))
    return True


def cut(db: SqlSession, commit: CutContext) -> bool:
    if (place := _movable(db, commit)) is None:
        return False
    lane_id, head = place
    version, first = head.version + 1, head.covered + 1
    said = only(db, SQL["said_between"], (lane_id, first, commit.last))[0]
    reset = commit.why is CutReason.RESET
    db.post(SQL["keep_cut"], (lane_id, version, first, commit.last, str(commit.why), said, commit.at))
    kept = (0, None) if reset else (head.left_out + said, head.summary)
    db.post(SQL["set_head"], (lane_id, version, head.summarised_until, commit.last, *kept, commit.at))
    if reset:
        rotate(db, lane_id, SessionEnd.RESET, commit.at)
    else:
        mark(db, lane_id, head.last, "compaction", commit.at)
    write_facts(db, commit.at, event.compacted(commit.lane, str(commit.why), (version, first, commit.last, said)))
    return True


def begin_anew(db: SqlSession, lane_id: int, lane: Lane, at: int) -> None:
    """End a lane's context where its transcript ends."""
    head = _head(db, lane_id)
    cut(db, CutContext(lane, head.version, head.last, CutReason.RESET, at))


def summary_failed(db: SqlSession, commit: SummaryFailed) -> bool:
    lane_id = routing.lane_id_of(db, commit.lane)
    if lane_id is None or (head := _head(db, lane_id)).version != commit.seen:
        return False
    db.post(SQL["set_failed"], (lane_id, commit.error, commit.next_at, commit.at))
    failure: dict[str, Json] = {"version": commit.seen, "attempts": head.attempts + 1, "error": commit.error}
    write_facts(db, commit.at, event.Fact("lane.summary_failed", "", {"lane": list(commit.lane), **failure}))
    return True


def _movable(db: SqlSession, commit: Summarise | CutContext) -> tuple[int, _Head] | None:
    """The lane and its head, if the head is the one that was seen and may move to where the commit wants it."""
    lane_id = routing.lane_id_of(db, commit.lane)
    if lane_id is None or (head := _head(db, lane_id)).version != commit.seen or commit.last > head.last:
        return None
    reset = isinstance(commit, CutContext) and commit.why is CutReason.RESET
    if commit.last < head.covered or (commit.last == head.covered and not reset):
        return None
    follows = scalar(db, SQL["role_at"], (lane_id, commit.last + 1))
    return None if follows == prompt.Role.TOOL else (lane_id, head)


def due(db: SqlSession, limit: int) -> Sequence[domain.LaneSummary]:
    found = every(db, SQL["copies_due"], (limit, rows.OWN_TOOLS))
    return [domain.LaneSummary(Lane(*row[:4]), _trusted(row[4:11], row[12]), external=bool(row[11])) for row in found]


def of_conversation(db: SqlSession, lane: Lane, keep: int) -> Sequence[domain.LaneSummary]:
    found = every(db, SQL["of_conversation"], (*lane[:3], keep, rows.OWN_TOOLS))
    return [
        domain.LaneSummary(Lane(*lane[:3], key), _trusted(made, trust), messages, chars, bool(external), bool(left))
        for key, *made, messages, chars, external, left, trust in found
    ]


def _trusted(row: Sequence[Any], trust: str) -> domain.Summary:
    return replace(summary_of(row), trust=rows.trust_of(trust))


def copied(db: SqlSession, commit: SummariesCopied) -> int:
    return sum(run(db, SQL["copied"], (routing.lane_id_of(db, lane), version)) for lane, version in commit.copies)
