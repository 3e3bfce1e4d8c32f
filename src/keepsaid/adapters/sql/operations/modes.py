"""Modes of conversations: a paused one keeps its messages waiting, and only its commands are read."""

from __future__ import annotations

from keepsaid.adapters.sql.operations import routing, rows
from keepsaid.adapters.sql.query import SqlSession, column, every, load, only
from keepsaid.domain import effects, views
from keepsaid.domain.command import command_in
from keepsaid.domain.message import Lane

MODES = load("modes")


def apply_effect(db: SqlSession, effect: effects.SetPaused, lane_id: int, at: int) -> None:
    """Pause the conversation of a lane or resume it; its batches that hold commands can be claimed all the time."""
    if effect.paused:
        db.execute(MODES["pause"], (lane_id, at))
    else:
        db.execute(MODES["resume"], (lane_id,))
    if not (lanes := column(db, MODES["lanes_of"], (lane_id,))):
        return
    queued = column(db, MODES["queued"], (db.numbers(lanes),)) if effect.paused else []
    commands = [one for one in queued if any(command_in(message) for message in rows.messages_of(db, one))]
    if commands:
        db.execute(MODES["commands_apart"], (db.numbers(commands),))
    routing.refresh_ready(db, *lanes)


def is_paused(db: SqlSession, lane: Lane) -> bool:
    """Whether the conversation of a lane is paused."""
    return bool(only(db, MODES["is_paused"], lane[:3])[0])


def paused(db: SqlSession) -> tuple[views.PausedConversation, ...]:
    """Paused conversations, the one first that was paused first."""
    return tuple(views.PausedConversation(*row) for row in every(db, MODES["paused"]))
