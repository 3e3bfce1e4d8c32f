"""Names of lanes: a conversation that is forgotten as a whole loses its name; a new message of it opens a new lane."""

from __future__ import annotations

from collections.abc import Iterable

import apsw

from keepsaid.adapters.sqlite.query import every, one
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.lane import Lane, forgotten_lane
from keepsaid.domain.personality import session_scope

SQL = load("forgetting")


def touched(db: apsw.Connection, number: int) -> tuple[int, ...]:
    """The lanes of the messages and turns that a forgetting is about."""
    return tuple(int(row[0]) for row in every(db, SQL["lanes_of_request"], (number,)))


def hold(db: apsw.Connection, number: int) -> None:
    """Let the lanes that a forgetting is about keep their names while it can be undone."""
    db.executemany(SQL["keep_item"], [(number, "lane", lane_id) for lane_id in touched(db, number)])


def unname(db: apsw.Connection, lanes: Iterable[int]) -> int:
    """Take away the names of these lanes, and of others of their conversations, where nothing stays in them.

    A lane in which anything is left, waits, is at work, comes later or can come back keeps its name. Returns how many
    lost theirs.
    """
    return sum(_conversation(db, lane_id) for lane_id in lanes)


def _conversation(db: apsw.Connection, lane_id: int) -> int:
    named = [(int(row[0]), Lane(*row[1:])) for row in every(db, SQL["beside_of_lane"], (lane_id,))]
    empty = [(number, lane) for number, lane in named if one(db, SQL["life_of_lane"], (number,)) is None]
    for number, lane in empty:
        after = forgotten_lane(lane, empty[0][0], number)
        db.execute(SQL["forget_manner"], (session_scope(lane),))
        db.execute(SQL["unname_lane"], (number, after.conversation))
        db.execute(SQL["unname_replies_of_lane"], (number, after.conversation))
        for statement in ("unname_schedules_of_lane", "unname_runs_of_lane"):
            db.execute(SQL[statement], (*lane, after.conversation, after.key))
    return len(empty)
