"""Pairing: codes that people were sent, and who was let in by them."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.sql.operations import outbox
from keepsaid.adapters.sql.query import Row, SqlSession, SqlView, column, every, load, one, reads, run, scalar
from keepsaid.domain import states
from keepsaid.domain.message import LOOP
from keepsaid.domain.pairing import PENDING_MAX, LetIn, LetInResult, Pairing, PairingState, SendCode, ShutOut
from keepsaid.domain.visibility import Identity

SQL = load("pairing")
_LANE_OF = load("views")["lane_of_message"]
_DROPPED_MAX = 20
_LOOKED_THROUGH = 200
"""Messages of a conversation, the newest, among which those of one sender are looked for."""


def send_code(db: SqlSession, commit: SendCode) -> bool:
    db.post(SQL["over"], (commit.at,))
    if one(db, SQL["standing"], commit.who) is not None:
        return False
    if int(scalar(db, SQL["pending"], commit.who[:2]) or 0) >= PENDING_MAX:
        return False
    if (lane_id := scalar(db, _LANE_OF, (commit.message_id,))) is None:
        return False
    row = (*commit.who, str(PairingState.PENDING), commit.code, commit.message_id, commit.at, commit.until)
    db.post(SQL["keep"], row)
    outbox.keep_reply(db, lane_id, (None, None), commit.notice, commit.at)
    return True


def let_in(db: SqlSession, commit: LetIn) -> LetInResult | None:
    who = commit.who or _with_code(db, commit)
    if who is None:
        return None
    state = PairingState.OWNER if commit.as_owner else PairingState.KNOWN
    if (found := one(db, SQL["standing"], who)) is None:
        db.post(SQL["keep"], (*who, str(state), None, None, commit.at, 0))
    elif found[0] != state:
        moved = states.move("pairing", found[0], "own" if commit.as_owner else "admit")
        db.post(SQL["decide"], (*who, moved, commit.at))
    if (asked := one(db, SQL["asked_by"], who)) is None:
        return LetInResult(who, state)
    lane_id, name = asked
    return LetInResult(who, state, name, tuple(column(db, SQL["dropped"], (lane_id, who.sender, _DROPPED_MAX))))


def shut_out(db: SqlSession, commit: ShutOut) -> bool:
    return run(db, SQL["remove"], commit.who) > 0


def _with_code(db: SqlSession, commit: LetIn) -> Identity | None:
    row = one(db, SQL["coded"], (commit.code, commit.at)) if commit.code else None
    return None if row is None else Identity(*row)


def standing(db: SqlSession, who: Identity) -> PairingState | None:
    found = scalar(db, SQL["standing"], who)
    return None if found is None else PairingState(found)


def everybody(db: SqlSession, limit: int) -> Sequence[Pairing]:
    return [_pairing(row) for row in every(db, SQL["everybody"], (limit,))]


def _pairing(row: Row) -> Pairing:
    return Pairing(Identity(*row[:3]), PairingState(row[3]), *row[4:])


def recent_times(db: SqlSession, who: Identity, conversation: str, limit: int) -> Sequence[int]:
    place = (who.channel, who.account, conversation)
    return column(db, SQL["recent_times"], (*place, who.sender, LOOP, _LOOKED_THROUGH, limit))


class SqlPairings(SqlView):
    """Reads who was paired."""

    standing = reads(standing)
    everybody = reads(everybody)
    recent_times = reads(recent_times)
