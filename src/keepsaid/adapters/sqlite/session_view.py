"""What readers see of sessions, pending questions, and what messages refer to."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite import receipts, rows, sessions, slots, standing
from keepsaid.adapters.sqlite.query import one
from keepsaid.adapters.sqlite.readers import Readers
from keepsaid.adapters.sqlite.routing import lane_id_of
from keepsaid.adapters.sqlite.sessions import SQL
from keepsaid.domain.attachment import in_words
from keepsaid.domain.focus import Said, Surroundings
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.personality import Personality, scopes_around
from keepsaid.domain.session import Quiet, Session
from keepsaid.domain.slot import Slot


class SqliteSessions:
    """Sessions and slots, read only."""

    def __init__(self, readers: Readers) -> None:
        self._readers = readers

    async def sessions(self, lane: Lane, limit: int) -> Sequence[Session]:
        """The newest sessions of a lane."""
        return await self._readers.run(_sessions, lane, limit)

    async def slots(self, lane: Lane, limit: int) -> Sequence[Slot]:
        """The newest questions of a lane."""
        return await self._readers.run(_slots, lane, limit)

    async def quiet_since(self) -> Quiet:
        """Since when the longest quiet lanes are."""
        return await self._readers.run(sessions.quiet_since)

    async def personalities(self, scopes: Sequence[str]) -> tuple[Personality, ...]:
        """What is set for these scopes."""
        return await self._readers.run(standing.personalities, scopes)


def _sessions(db: apsw.Connection, lane: Lane, limit: int) -> Sequence[Session]:
    lane_id = lane_id_of(db, lane)
    return [] if lane_id is None else sessions.sessions(db, lane_id, limit)


def _slots(db: apsw.Connection, lane: Lane, limit: int) -> Sequence[Slot]:
    lane_id = lane_id_of(db, lane)
    return [] if lane_id is None else slots.slots(db, lane_id, limit)


def surroundings(db: apsw.Connection, lane: Lane, messages: Sequence[Message]) -> Surroundings:
    """What is asked in a lane, and what these messages reply to in its conversation, in whatever lane that was."""
    lane_id = lane_id_of(db, lane)
    targets = dict.fromkeys(message.inbound.marks.reply_to for message in messages)
    found = (_said(db, lane, target) for target in targets if target is not None)
    asked = () if lane_id is None else slots.pending(db, lane_id)
    known = tuple(said for said in found if said is not None)
    set_here = standing.personalities(db, scopes_around(lane, messages))
    wrong = frozenset[int]() if lane_id is None else receipts.wrong_here(db, lane_id)
    return Surroundings(asked, known, set_here, standing.calibrations(db), wrong)


def _said(db: apsw.Connection, lane: Lane, target: str) -> Said | None:
    """The first message of that name that is whole, else the reply; without an outsider's words of another lane."""
    place = (target, lane.channel, lane.account, lane.conversation)
    named = one(db, SQL["said_message"], place)
    row = None if named is None else one(db, rows.SQL["message"], named)
    if row is not None:
        message = rows.message(row)
        origin = message.inbound.origin
        ref = f"message:{message.id}"
        if message.damaged:
            return None
        if message.lane != lane and origin.trust is Trust.EXTERNAL:
            return Said(target, ref, "")
        return Said(target, ref, in_words(message.inbound.content), origin.name or origin.sender, origin.trust)
    reply = one(db, SQL["said_reply"], (*place, lane.key))
    if reply is None:
        return None
    reply_id, turn_id, text, trust = reply
    ref = f"notice:{reply_id}" if turn_id is None else f"reply:{turn_id}"
    return Said(target, ref, text, trust=Trust(trust or Trust.EXTERNAL))
