"""Bodies of signed deliveries: finds the message that a body was stored as, and notes its other delivery ids."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite.query import every, numbers, one
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.commits import Arrival
from keepsaid.domain.views import Redelivery

SQL = load("bodies")

_EXPIRED_EACH = 8
"""Expired rows that one delivery removes: more than it adds, so that the table shrinks to what counts."""


def first_with(db: apsw.Connection, arrival: Arrival) -> int | None:
    """The id of the message that was stored with this body and still counts; None for a new body or none."""
    if arrival.body is None:
        return None
    row = one(db, SQL["first"], (arrival.body.hash, arrival.at))
    return None if row is None else int(row[0])


def keep(db: apsw.Connection, arrival: Arrival) -> None:
    """Keep the body of a new message, if it has one, and remove some that expired."""
    if arrival.body is not None:
        db.execute(SQL["expire"], (arrival.at, _EXPIRED_EACH))
        db.execute(SQL["keep"], (arrival.body.hash, arrival.id, arrival.body.until))


def note(db: apsw.Connection, message_id: int, arrival: Arrival) -> None:
    """Note that a message was delivered under another id, unless there are too many notes already."""
    marks, content = arrival.inbound.marks, arrival.inbound.content
    db.execute(SQL["note"], (message_id, marks.external_id or "", content.event, arrival.at, Redelivery.NOTED_MAX))


def redeliveries(db: apsw.Connection, message_ids: Sequence[int]) -> tuple[Redelivery, ...]:
    """The other deliveries of some messages, oldest first."""
    if not message_ids:
        return ()
    return tuple(Redelivery(*row) for row in every(db, SQL["redeliveries"], (numbers(tuple(message_ids)),)))
