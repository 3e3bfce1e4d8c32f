"""Views of sessions, contexts and extraction."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepsaid.adapters.sql.operations import context as contexts
from keepsaid.adapters.sql.operations import receipts, rows, turns
from keepsaid.adapters.sql.operations import sessions as epochs
from keepsaid.adapters.sql.operations.collection import COLLECTION, RUN
from keepsaid.adapters.sql.operations.routing import lane_id_of
from keepsaid.adapters.sql.operations.sessions import SESSIONS
from keepsaid.adapters.sql.operations.turns import reminders
from keepsaid.adapters.sql.query import every, one, reads
from keepsaid.adapters.sql.session import Row, SqlReaders, SqlSession
from keepsaid.domain.focus import ReplyTarget, TurnInputs
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import StoredMessage, Trust, in_words
from keepsaid.domain.personality import scopes_around
from keepsaid.domain.prompt import Role
from keepsaid.domain.session import CollectionLine, Passage, Session, Utterance
from keepsaid.domain.slot import Slot
from keepsaid.domain.visibility import OWN_TOOLS


class SqlContexts:
    """The contexts of lanes, read only."""

    _readers: SqlReaders

    context = reads(contexts.context)
    reminders = reads(reminders)
    span = reads(contexts.span)
    past = reads(contexts.past)
    summaries_due = reads(contexts.due)
    summaries_of = reads(contexts.of_conversation)


def _sessions(db: SqlSession, lane: Lane, limit: int) -> Sequence[Session]:
    """The newest sessions of a lane."""
    lane_id = lane_id_of(db, lane)
    return [] if lane_id is None else epochs.sessions(db, lane_id, limit)


def _slots(db: SqlSession, lane: Lane, limit: int) -> Sequence[Slot]:
    """The newest questions of a lane."""
    lane_id = lane_id_of(db, lane)
    return [] if lane_id is None else epochs.slots(db, lane_id, limit)


class SqlSessions:
    """Sessions and slots, read only."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    sessions = reads(_sessions)
    slots = reads(_slots)
    quiet_since = reads(epochs.quiet_since)
    personalities = reads(turns.personalities)


def read_turn_inputs(db: SqlSession, lane: Lane, messages: Sequence[StoredMessage]) -> TurnInputs:
    """Read the open questions of a lane, and what these messages reply to in any lane of its conversation."""
    lane_id = lane_id_of(db, lane)
    targets = dict.fromkeys(message.inbound.marks.reply_to for message in messages)
    found = (_said(db, lane, target) for target in targets if target is not None)
    asked = () if lane_id is None else epochs.pending(db, lane_id)
    known = tuple(said for said in found if said is not None)
    set_here = turns.personalities(db, scopes_around(lane, messages))
    wrong = frozenset[int]() if lane_id is None else receipts.list_flagged_memories(db, lane_id)
    return TurnInputs(asked, known, set_here, turns.calibrations(db), wrong)


def _said(db: SqlSession, lane: Lane, target: str) -> ReplyTarget | None:
    """The first message of that name that is whole, else the reply; without an outsider's words of another lane."""
    place = (target, lane.channel, lane.account, lane.conversation)
    named = one(db, SESSIONS["said_message"], place)
    row = None if named is None else one(db, rows.SQL["message"], named)
    if row is not None:
        message = rows.message(row)
        origin = message.inbound.origin
        ref = f"message:{message.id}"
        if message.damaged:
            return None
        if message.lane != lane and origin.trust is Trust.EXTERNAL:
            return ReplyTarget(target, ref, "")
        return ReplyTarget(target, ref, in_words(message.inbound.content), origin.name or origin.sender, origin.trust)
    reply = one(db, SESSIONS["said_reply"], (*place, lane.key))
    if reply is None:
        return None
    reply_id, turn_id, text, trust = reply
    ref = f"notice:{reply_id}" if turn_id is None else f"reply:{turn_id}"
    return ReplyTarget(target, ref, text, trust=Trust(trust or Trust.EXTERNAL))


_OWN_TOOLS = json.dumps(sorted(OWN_TOOLS))


def _lines(db: SqlSession, states: Sequence[str], limit: int) -> Sequence[CollectionLine]:
    """Sessions whose collection is in one of these states."""
    rows = every(db, COLLECTION["lines"], (json.dumps(list(states)), limit))
    return [CollectionLine(row[0], Lane(*row[1:5]), *row[5:]) for row in rows]


def _passage(db: SqlSession, session_id: int, after: int, limit: int) -> Passage | None:
    """What was said in a session after a position."""
    extent = one(db, COLLECTION["extent"], (session_id,))
    if extent is None:
        return None
    lane_id, *place, first, last, external = extent
    begins = max(after, first - 1)
    rows = every(db, COLLECTION["utterances"], (lane_id, begins, last, limit, external, first, _OWN_TOOLS))
    ends = rows[-1][0] if len(rows) == limit else last
    return Passage(Lane(*place), begins + 1, ends, tuple(map(_utterance, rows)))


def _marked_at(db: SqlSession) -> int | None:
    """When the last run that marked every unread session ended."""
    row = one(db, COLLECTION["last_run"], (RUN,))
    return None if row is None else row[0]


class SqlCollections:
    """Marked sessions and their records, read only."""

    _readers: SqlReaders

    collections = reads(_lines)
    passage = reads(_passage)
    marked_at = reads(_marked_at)


def _utterance(row: Row) -> Utterance:
    position, role, text, ref, speaker, sender, trust, direct, at = row
    believed = Trust(trust) if trust else Trust.EXTERNAL
    return Utterance(position, Role(role), text, ref, speaker, sender, believed, bool(direct), at)
