"""Collection: sessions that are marked are claimed, read under a fence, and their marks cleared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keepsaid.adapters.ram.session_row import FindingRow, SessionRow
from keepsaid.adapters.ram.sessions import invalidate
from keepsaid.adapters.ram.state import LaneRow, State
from keepsaid.domain.collection import (
    RIPE,
    ClaimCollection,
    Collected,
    Collecting,
    CollectionFailed,
    CollectionLine,
    Invalidate,
    KeepFinding,
    Left,
    Marked,
    MarkUnprocessed,
    Passage,
    RequeueCollection,
    Utterance,
)
from keepsaid.domain.fact import read_to, unreadable
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Role
from keepsaid.domain.states import move
from keepsaid.domain.turn import NO_MODEL
from keepsaid.domain.visibility import from_outside

Place = tuple[LaneRow, SessionRow]


def claim(state: State, commit: ClaimCollection) -> Collecting | None:
    """Claim the session that is due for longest; one that has to wait is not due any more."""
    due = sorted(
        (
            (session.collect_at, session.id, lane, session)
            for lane, session in _all(state)
            if session.collect_at is not None and session.collect_at <= commit.at
        ),
        key=lambda one: one[:2],
    )
    for _, _, lane, session in due:
        found = _claimable(state, commit, (lane, session))
        if found is not None:
            session.collection = move("collection", session.collection, "claim")
            session.collect_at, session.owner, session.fence = commit.lease_until, commit.owner, found.fence
            return found
        session.collection, session.collect_at = move("collection", session.collection, "wait"), None
    return None


def _claimable(state: State, commit: ClaimCollection, place: Place) -> Collecting | None:
    lane, session = place
    last, done = _last(place), max(session.processed_until or 0, session.first - 1)
    after = done if commit.thorough else max(done, session.ruled_until)
    row = _due(state, session.id)
    fit = row is not None or (_fit(place, done) if commit.thorough else last > after)
    if not fit:
        return None
    marked, reason = session.invalidated_at or 0, session.invalidated_reason
    finding = None if row is None else row.finding
    fence = session.fence + 1
    return Collecting(session.id, lane.lane, fence, after, marked, reason, session.attempts, finding, after == done)


def _fit(place: Place, done: int) -> bool:
    """Whether a thorough reader takes a session: its mark is firm, or holds six records, or nothing any more."""
    lane, session = place
    last = _last(place)
    said = sum(entry.record.role is not Role.TOOL for entry in lane.transcript[done:last])
    return session.firm_until > (session.processed_until or 0) or last <= done or said >= RIPE


def keep_finding(state: State, commit: KeepFinding) -> bool:
    """Keep what was found, one finding of a session at a time."""
    found = commit.finding
    if _held(state, found.session_id, commit.fence) is None or _due(state, found.session_id) is not None:
        return False
    state.findings[found.id] = FindingRow(found)
    return True


def collected(state: State, commit: Collected) -> Left:
    """What was read is done with; the mark goes with the last record."""
    place = _held(state, commit.session_id, commit.fence)
    if place is None:
        return Left.REFUSED
    if commit.finding_id is not None:
        state.findings[commit.finding_id].applied_at = commit.at
    session, last = place[1], _last(place)
    if commit.thorough:
        session.processed_until = max(session.processed_until or 0, commit.until)
    session.ruled_until = max(session.ruled_until, commit.until)
    session.owner, session.attempts, session.error = "", 0, ""
    if (session.processed_until or 0) < last:
        session.collection = move("collection", session.collection, "leave")
        session.invalidated_at, session.collect_at = max(session.invalidated_at or 0, last), commit.at
        return Left.MARKED
    session.collection = move("collection", session.collection, "finish")
    session.invalidated_at, session.invalidated_reason, session.collect_at = None, "", None
    state.told(commit.at, read_to(session.id, session.processed_until or 0))
    return Left.CLEARED


def failed(state: State, commit: CollectionFailed) -> bool:
    """A reading came to nothing."""
    place = _held(state, commit.session_id, commit.fence)
    if place is None:
        return False
    session, parked = place[1], commit.next_at is None
    session.collection = move("collection", session.collection, "park" if parked else "fail")
    session.collect_at, session.error, session.owner = commit.next_at, commit.error, ""
    session.attempts += commit.charged
    if parked:
        state.told(commit.at, unreadable(session.id, commit.error))
    return True


def requeue(state: State, commit: RequeueCollection) -> bool:
    """Read a parked session again."""
    place = _find(state, commit.session_id)
    if place is None or place[1].collection != "parked":
        return False
    session = place[1]
    session.collection = move("collection", session.collection, "requeue")
    session.collect_at, session.firm_until = commit.at, session.invalidated_at or 0
    session.attempts, session.error = 0, ""
    return True


def mark_one(state: State, commit: Invalidate) -> bool:
    """Mark one session."""
    place = _find(state, commit.session_id)
    if place is None or not place[1].first <= commit.record <= _last(place):
        return False
    return invalidate(place[1], commit.record, commit.reason, commit.at)


def mark_unprocessed(state: State, commit: MarkUnprocessed) -> Marked:
    """Mark some of the sessions that have unread records."""
    unread = (one for one in _all(state) if one[1].collection != "clean" or one[1].ended_at is None)
    found = sorted((one for one in unread if one[1].id > commit.after), key=lambda one: one[1].id)[: commit.limit]
    count = 0
    for place in found:
        session, last = place[1], _last(place)
        processed = session.processed_until or 0
        if last >= session.first and last > (processed if commit.thorough else max(processed, session.ruled_until)):
            count += invalidate(session, last, commit.reason, commit.at)
    if len(found) == commit.limit:
        return Marked(count, found[-1][1].id)
    state.unread_marked_at = commit.at
    return Marked(count, None)


def void(state: State, owner: str, at: int) -> None:
    """At start: what others had claimed is due, and what waits for a time."""
    for _, session in _all(state):
        if session.collection == "claimed" and session.owner != owner:
            session.collection = move("collection", session.collection, "leave")
            session.collect_at, session.owner = at, ""
        if session.collection == "marked" and session.collect_at is not None:
            session.collect_at = min(session.collect_at, at)


class RamCollections:
    """Marked sessions and their records, read only."""

    _state: State

    async def collections(self, states: Sequence[str], limit: int) -> Sequence[CollectionLine]:
        """Sessions whose collection is in one of these states."""
        found = [one for one in _all(self._state) if one[1].collection in states and one[1].collection != "clean"]
        found.sort(key=lambda one: (one[1].collect_at is None, one[1].collect_at or 0, one[1].id))
        return [_line(self._state, place) for place in found[:limit]]

    async def passage(self, session_id: int, after: int, limit: int) -> Passage | None:
        """What was said in a session after a position."""
        place = _find(self._state, session_id)
        if place is None:
            return None
        lane, session = place
        begins, last = max(after, session.first - 1), _last(place)
        heard = list(_utterances(self._state, lane, (session.first, begins, last)))[:limit]
        ends = heard[-1].position if len(heard) == limit else last
        return Passage(lane.lane, begins + 1, ends, tuple(heard))

    async def marked_at(self) -> int | None:
        """When the last run that marked every unread session ended."""
        return self._state.unread_marked_at


def _utterances(state: State, lane: LaneRow, between: tuple[int, int, int]) -> Iterator[Utterance]:
    external = lane.external_from is not None or any(
        one is not None and one.inbound.origin.trust is Trust.EXTERNAL for one in lane.messages
    )
    consulted = {entry.turn_id for entry in lane.transcript if entry.record.role is Role.TOOL}
    first, after, last = between
    outside = from_outside(entry.record for entry in lane.transcript[first - 1 : after])
    for position, entry in enumerate(lane.transcript[after:last], after + 1):
        record, turn = entry.record, state.turns.get(entry.turn_id)
        outside = outside or from_outside((record,))
        said = record.role is Role.ASSISTANT
        silent = turn is not None and turn.model == NO_MODEL
        if record.role is Role.TOOL or entry.unprompted or (said and silent):
            continue
        strange = external or outside or entry.turn_id in consulted
        known = Trust.EXTERNAL if strange else record.trust or Trust.KNOWN
        trust = known if said else entry.trust
        place = position, record.role, record.text, entry.ref, record.speaker, entry.sender
        yield Utterance(*place, trust, entry.direct, entry.created_at)


def _line(state: State, place: Place) -> CollectionLine:
    lane, one = place
    many = sum(row.finding.session_id == one.id for row in state.findings.values())
    stands = one.collection, one.invalidated_reason, one.invalidated_at, one.processed_until
    read = max(one.ruled_until, one.processed_until or 0)
    return CollectionLine(one.id, lane.lane, *stands, read, one.collect_at, one.attempts, one.error, many)


def _all(state: State) -> Iterator[Place]:
    return ((lane, session) for lane in state.lanes.values() for session in lane.sessions)


def _find(state: State, session_id: int) -> Place | None:
    return next((place for place in _all(state) if place[1].id == session_id), None)


def _held(state: State, session_id: int, fence: int) -> Place | None:
    place = _find(state, session_id)
    held = place is not None and place[1].collection == "claimed" and place[1].fence == fence
    return place if held else None


def _last(place: Place) -> int:
    lane, session = place
    return len(lane.transcript) if session.last is None else session.last


def _due(state: State, session_id: int) -> FindingRow | None:
    rows = state.findings.values()
    return next((row for row in rows if row.finding.session_id == session_id and row.applied_at is None), None)


def read_anew(lane: LaneRow, at: int) -> None:
    """Refuse what is being read in a lane now: it was begun before what it reads was forgotten."""
    for session in lane.sessions:
        if session.collection == "claimed":
            session.collection = move("collection", session.collection, "leave")
            session.collect_at, session.owner = at, ""
