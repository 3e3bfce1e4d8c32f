"""Forks: lanes that leave another one after a message of it, and begin with what was said up to there."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.sql.operations import routing, sessions
from keepsaid.adapters.sql.query import Row, SqlSession, SqlView, as_json, column, every, load, one, only, reads, scalar
from keepsaid.domain.client_history import VERSIONS_MAX, ChainedMessage
from keepsaid.domain.commits import Arrival
from keepsaid.domain.compaction import CutReason
from keepsaid.domain.context import TAIL_MAX
from keepsaid.domain.message import Lane

SQL = load("forks")


def begin(db: SqlSession, lane: Lane, lane_id: int, arrival: Arrival) -> None:
    """Begin a new lane: in incognito if its first message asks for it, and as a fork if that names a message before.

    A fork has the context of another lane of its conversation, as it was after that message. It gets the summary and
    the records, which belong to the same messages and replies as before and to no session of the lane: nothing collects
    them again. A fork after a message in incognito is in incognito too. To any other fork, what was said in incognito
    stays behind, as what is altered on disk always does.
    """
    after, incognito = arrival.inbound.forks_after, arrival.inbound.incognito
    home = None if after is None else one(db, SQL["home"], (after, *lane[:3]))
    incognito = incognito or (home is not None and routing.is_incognito(db, home[0], home[2], home[2]))
    if incognito:
        db.post(SQL["begin_incognito"], (lane_id,))
    if after is None or home is None:
        return
    parent_id, length, _ = home
    until = _answered_until(db, parent_id, after) or length
    covered, version = _covered(db, parent_id, until)
    span = (parent_id, max(covered, until - TAIL_MAX), until)
    positions = column(db, SQL["between"], span)
    altered = db.altered("transcript", positions, parent_id) if positions else ()
    db.post(SQL["copy_records"], (lane_id, *span, db.numbers([0, *sorted(altered)]), incognito))
    db.post(SQL["count_records"], (lane_id,))
    secret = scalar(db, sessions.SQL["incognito_between"], (parent_id, 1, covered))
    if version is not None and not secret and not db.altered("lane_summary", [version], parent_id):
        text, kind, model, messages, chars, made_at, trust = only(db, SQL["summary"], (parent_id, version))
        made = (text, kind, model, made_at, messages, chars, trust)
        db.post(sessions.SQL["keep_summary"], (lane_id, 1, 1, 0, *made))
        db.post(sessions.SQL["set_head"], (lane_id, 1, 0, 0, 0, 1, arrival.at))


def placing(arrival: Arrival) -> list[Row]:
    """The rows that say why a new message is in its lane, and what it changes for others."""
    return [(message_id or arrival.id, reason) for message_id, reason in arrival.inbound.placing]


def _answered_until(db: SqlSession, lane_id: int, message_id: int) -> int | None:
    """The last record of what a message got as its answer; None for one that no turn has answered.

    The records of a request for another answer show the message that it answers.
    """
    shown = one(db, SQL["shown_at"], (lane_id, message_id)) or one(db, SQL["shown_again"], (lane_id, message_id))
    if shown is None:
        return None
    position, turn_id = shown
    until: int = only(db, SQL["answered_until"], (lane_id, turn_id, position))[0]
    return until


def _covered(db: SqlSession, lane_id: int, until: int) -> tuple[int, int | None]:
    """Up to where a lane's context was covered when it ended at a position, and the version of its summary then."""
    covered, summary = 0, None
    for version, _, last, how, _ in every(db, sessions.SQL["past"], (lane_id,)):
        if last > until:
            continue
        covered = max(covered, last)
        if how != CutReason.GUARD:
            summary = None if how == CutReason.RESET else version
    return covered, summary


def _chained(db: SqlSession, place: tuple[str, str, str], places: Sequence[str]) -> Sequence[ChainedMessage]:
    if not places:
        return ()
    return [_message(row) for row in every(db, SQL["chained"], (as_json(places), *place))]


def _versions(db: SqlSession, place: tuple[str, str, str], hashed: str) -> Sequence[ChainedMessage]:
    return [_message(row) for row in every(db, SQL["versions"], (hashed, *place, VERSIONS_MAX))]


def _newest(db: SqlSession, place: tuple[str, str, str]) -> ChainedMessage | None:
    return next(map(_message, every(db, SQL["newest"], place)), None)


def _chained_one(db: SqlSession, message_id: int, channel: str, account: str) -> ChainedMessage | None:
    return next(map(_message, every(db, SQL["chained_one"], (message_id, channel, account))), None)


def _message(row: Row) -> ChainedMessage:
    message_id, *lane, number, head, place, external_id, at = row
    return ChainedMessage(message_id, Lane(*lane), number, head, place or "", external_id, at)


class SqlHistories(SqlView):
    """Messages by their places in the histories of clients; read only."""

    chained = reads(_chained)
    versions = reads(_versions)
    newest = reads(_newest)
    chained_one = reads(_chained_one)
