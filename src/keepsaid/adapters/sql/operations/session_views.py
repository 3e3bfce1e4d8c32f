"""Views of sessions, contexts and extraction."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepsaid.adapters.sql.operations import context, receipts, rows, sessions, turns
from keepsaid.adapters.sql.operations.collection import COLLECTION, RUN
from keepsaid.adapters.sql.operations.routing import lane_id_of
from keepsaid.adapters.sql.operations.sessions import SESSIONS
from keepsaid.adapters.sql.operations.turns import reminders
from keepsaid.adapters.sql.query import every, one
from keepsaid.adapters.sql.session import Row, SqlReaders, SqlSession
from keepsaid.domain.attachment import in_words
from keepsaid.domain.collection import CollectionLine, Passage, Utterance
from keepsaid.domain.context import LaneSummary, LaneTail, Reminders, Span, Stretch
from keepsaid.domain.focus import Said, Surroundings
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.personality import Personality, scopes_around
from keepsaid.domain.prompt import Role
from keepsaid.domain.session import Quiet, Session
from keepsaid.domain.slot import Slot
from keepsaid.domain.visibility import OWN_TOOLS


class SqlContexts:
    """The contexts of lanes, read only."""

    _readers: SqlReaders

    async def context(self, lane: Lane, limit: int) -> LaneTail:
        """The summary in force and the records after it."""
        return await self._readers.run(context.context, lane, limit)

    async def reminders(self, lane: Lane, turns: int, blocks: int) -> Reminders:
        """What a lane was reminded of."""
        return await self._readers.run(reminders, lane, turns, blocks)

    async def span(self, lane: Lane, after: int, limit: int) -> Span:
        """The oldest records after a position."""
        return await self._readers.run(context.span, lane, after, limit)

    async def past(self, lane: Lane) -> tuple[Stretch, ...]:
        """Every span that left the lane's context."""
        return await self._readers.run(context.past, lane)

    async def summaries_due(self, limit: int) -> Sequence[LaneSummary]:
        """Summaries of which memory has no copy yet."""
        return await self._readers.run(context.due, limit)

    async def summaries_of(self, lane: Lane, keep: int) -> Sequence[LaneSummary]:
        """The summaries a conversation is made of."""
        return await self._readers.run(context.of_conversation, lane, keep)


class SqlSessions:
    """Sessions and slots, read only."""

    def __init__(self, readers: SqlReaders) -> None:
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
        return await self._readers.run(turns.personalities, scopes)


def _sessions(db: SqlSession, lane: Lane, limit: int) -> Sequence[Session]:
    lane_id = lane_id_of(db, lane)
    return [] if lane_id is None else sessions.sessions(db, lane_id, limit)


def _slots(db: SqlSession, lane: Lane, limit: int) -> Sequence[Slot]:
    lane_id = lane_id_of(db, lane)
    return [] if lane_id is None else sessions.slots(db, lane_id, limit)


def surroundings(db: SqlSession, lane: Lane, messages: Sequence[Message]) -> Surroundings:
    """What is asked in a lane, and what these messages reply to in its conversation, in whatever lane that was."""
    lane_id = lane_id_of(db, lane)
    targets = dict.fromkeys(message.inbound.marks.reply_to for message in messages)
    found = (_said(db, lane, target) for target in targets if target is not None)
    asked = () if lane_id is None else sessions.pending(db, lane_id)
    known = tuple(said for said in found if said is not None)
    set_here = turns.personalities(db, scopes_around(lane, messages))
    wrong = frozenset[int]() if lane_id is None else receipts.wrong_here(db, lane_id)
    return Surroundings(asked, known, set_here, turns.calibrations(db), wrong)


def _said(db: SqlSession, lane: Lane, target: str) -> Said | None:
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
            return Said(target, ref, "")
        return Said(target, ref, in_words(message.inbound.content), origin.name or origin.sender, origin.trust)
    reply = one(db, SESSIONS["said_reply"], (*place, lane.key))
    if reply is None:
        return None
    reply_id, turn_id, text, trust = reply
    ref = f"notice:{reply_id}" if turn_id is None else f"reply:{turn_id}"
    return Said(target, ref, text, trust=Trust(trust or Trust.EXTERNAL))


_OWN_TOOLS = json.dumps(sorted(OWN_TOOLS))


class SqlCollections:
    """Marked sessions and their records, read only."""

    _readers: SqlReaders

    async def collections(self, states: Sequence[str], limit: int) -> Sequence[CollectionLine]:
        """Sessions whose collection is in one of these states."""
        return await self._readers.run(_lines, states, limit)

    async def passage(self, session_id: int, after: int, limit: int) -> Passage | None:
        """What was said in a session after a position."""
        return await self._readers.run(_passage, session_id, after, limit)

    async def marked_at(self) -> int | None:
        """When the last run that marked every unread session ended."""
        return await self._readers.run(_marked_at)


def _lines(db: SqlSession, states: Sequence[str], limit: int) -> Sequence[CollectionLine]:
    rows = every(db, COLLECTION["lines"], (json.dumps(list(states)), limit))
    return [CollectionLine(row[0], Lane(*row[1:5]), *row[5:]) for row in rows]


def _passage(db: SqlSession, session_id: int, after: int, limit: int) -> Passage | None:
    extent = one(db, COLLECTION["extent"], (session_id,))
    if extent is None:
        return None
    lane_id, *place, first, last, external = extent
    begins = max(after, first - 1)
    rows = every(db, COLLECTION["utterances"], (lane_id, begins, last, limit, external, first, _OWN_TOOLS))
    ends = rows[-1][0] if len(rows) == limit else last
    return Passage(Lane(*place), begins + 1, ends, tuple(map(_utterance, rows)))


def _utterance(row: Row) -> Utterance:
    position, role, text, ref, speaker, sender, trust, direct, at = row
    believed = Trust(trust) if trust else Trust.EXTERNAL
    return Utterance(position, Role(role), text, ref, speaker, sender, believed, bool(direct), at)


def _marked_at(db: SqlSession) -> int | None:
    row = one(db, COLLECTION["last_run"], (RUN,))
    return None if row is None else row[0]
