"""Views of sessions, contexts and extraction."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepsaid.adapters.sql.operations import receipts, rows, sessions, turns
from keepsaid.adapters.sql.operations.collection import COLLECTION, RUN
from keepsaid.adapters.sql.operations.routing import lane_id_of
from keepsaid.adapters.sql.query import every, one, scalar
from keepsaid.adapters.sql.session import Row, SqlSession
from keepsaid.domain.focus import ReplyTarget, TurnInputs
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import StoredMessage, Trust, in_words
from keepsaid.domain.personality import scopes_around
from keepsaid.domain.prompt import Role
from keepsaid.domain.session import CollectionLine, Passage, Utterance


def read_turn_inputs(db: SqlSession, lane: Lane, messages: Sequence[StoredMessage]) -> TurnInputs:
    """Read the open questions of a lane, and what these messages reply to in any lane of its conversation."""
    lane_id = lane_id_of(db, lane)
    names = dict.fromkeys(message.inbound.marks.reply_to for message in messages)
    targets = (_reply_target(db, lane, name) for name in names if name is not None)
    questions = () if lane_id is None else sessions.pending(db, lane_id)
    found = tuple(target for target in targets if target is not None)
    personalities = turns.personalities(db, scopes_around(lane, messages))
    flagged = frozenset[int]() if lane_id is None else receipts.list_flagged_memories(db, lane_id)
    return TurnInputs(questions, found, personalities, turns.calibrations(db), flagged)


def _reply_target(db: SqlSession, lane: Lane, target: str) -> ReplyTarget | None:
    """The first message of that name that is whole, else the reply; without an outsider's words of another lane."""
    place = (target, lane.channel, lane.account, lane.conversation)
    named = one(db, sessions.SESSIONS["said_message"], place)
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
    reply = one(db, sessions.SESSIONS["said_reply"], (*place, lane.key))
    if reply is None:
        return None
    reply_id, turn_id, text, trust = reply
    ref = f"notice:{reply_id}" if turn_id is None else f"reply:{turn_id}"
    return ReplyTarget(target, ref, text, trust=Trust(trust or Trust.EXTERNAL))


def collections(db: SqlSession, states: Sequence[str], limit: int) -> Sequence[CollectionLine]:
    rows = every(db, COLLECTION["lines"], (json.dumps(list(states)), limit))
    return [CollectionLine(row[0], Lane(*row[1:5]), *row[5:]) for row in rows]


def passage(db: SqlSession, session_id: int, after: int, limit: int) -> Passage | None:
    extent = one(db, COLLECTION["extent"], (session_id,))
    if extent is None:
        return None
    lane_id, *place, first, last, external = extent
    begins = max(after, first - 1)
    found = every(db, COLLECTION["utterances"], (lane_id, begins, last, limit, external, first, rows.OWN_TOOLS))
    ends = found[-1][0] if len(found) == limit else last
    return Passage(Lane(*place), begins + 1, ends, tuple(map(_utterance, found)))


def marked_at(db: SqlSession) -> int | None:
    return scalar(db, COLLECTION["last_run"], (RUN,))


def _utterance(row: Row) -> Utterance:
    position, role, text, ref, speaker, sender, trust, direct, at = row
    believed = Trust(trust) if trust else Trust.EXTERNAL
    return Utterance(position, Role(role), text, ref, speaker, sender, believed, bool(direct), at)
