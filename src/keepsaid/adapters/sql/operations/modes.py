"""Modes: a paused conversation keeps its messages waiting; nothing that is said in incognito reaches memory."""

from __future__ import annotations

from keepsaid.adapters.sql.operations import routing, rows
from keepsaid.adapters.sql.query import SqlSession, column, every, load, only, scalar
from keepsaid.domain import effects, views
from keepsaid.domain.command import command_in
from keepsaid.domain.message import Lane

MODES = load("modes")


def apply_effect(db: SqlSession, effect: effects.SetPaused, lane_id: int, at: int) -> None:
    """Pause the conversation of a lane or resume it; its batches that hold commands can be claimed all the time."""
    if effect.paused:
        db.post(MODES["pause"], (lane_id, at))
    else:
        db.post(MODES["resume"], (lane_id,))
    if not (lanes := column(db, MODES["lanes_of"], (lane_id,))):
        return
    queued = column(db, MODES["queued"], (db.numbers(lanes),)) if effect.paused else []
    commands = [one for one in queued if any(command_in(message) for message in rows.messages_of(db, one))]
    if commands:
        db.post(MODES["commands_apart"], (db.numbers(commands),))
    routing.refresh_ready(db, *lanes)


def set_incognito(db: SqlSession, effect: effects.SetIncognito, lane_id: int, batch_id: int) -> None:
    """Begin incognito in a lane with the messages of a batch, or end it after them."""
    db.post(MODES["begin_incognito" if effect.on else "end_incognito"], (lane_id, batch_id))


def is_incognito_on(db: SqlSession, lane_id: int) -> bool:
    """Whether what is said in a lane from now on is said in incognito."""
    return bool(scalar(db, MODES["is_incognito_on"], (lane_id,)))


def is_paused(db: SqlSession, lane: Lane) -> bool:
    """Whether the conversation of a lane is paused."""
    return bool(only(db, MODES["is_paused"], lane[:3])[0])


def paused(db: SqlSession) -> tuple[views.PausedConversation, ...]:
    """Paused conversations, the one first that was paused first."""
    return tuple(views.PausedConversation(*row) for row in every(db, MODES["paused"]))
