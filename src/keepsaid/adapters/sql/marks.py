"""Marks that a move leaves in both places, so that nobody works with stores that are half there, or are elsewhere now.

The target is "moving" until each row is there, then "copied" until somebody writes there; the source is "moved".
"""

from __future__ import annotations

from keepsaid.adapters.sql.query import SqlSession, load, one
from keepsaid.errors import StoreError

SCHEMA = load("schema")
MOVING, COPIED, MOVED = "moving", "copied", "moved"


def move_mark(db: SqlSession) -> str:
    """Return the mark of stores that are there; empty if they have none."""
    row = one(db, SCHEMA["marks"])
    return str(row[0]) if row else ""


def set_move_mark(db: SqlSession, mark: str, at: int) -> None:
    """Replace the mark; an empty one removes it."""
    db.execute(SCHEMA["unmark"])
    if mark:
        db.execute(SCHEMA["set_version"], (mark, at))


def check_move_mark(db: SqlSession, place: str) -> None:
    """Raise StoreError for stores that a move has not finished, or has left."""
    mark = move_mark(db)
    if mark == MOVING:
        what, hint = f"the stores are being moved to {place}, and not all of them is there", "set store.url as it was"
        raise StoreError(what, safe="They are whole where they were.", hint=f"{hint}, and move them again")
    if mark == MOVED:
        what = f"the stores were moved elsewhere, and {place} holds what they were then"
        hint = "set store.url to where they are, or move them back with keepsaid data move"
        raise StoreError(what, safe="Nothing was read or written here.", hint=hint)


def end_move(db: SqlSession) -> None:
    """Whoever writes stores that were copied makes them the ones in use."""
    if move_mark(db) == COPIED:
        db.execute(SCHEMA["unmark"])
