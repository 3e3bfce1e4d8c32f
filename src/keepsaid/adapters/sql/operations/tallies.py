"""Tallies: how many messages came, and how many of them are nowhere (short: metrics show these two numbers)."""

from __future__ import annotations

from keepsaid.adapters.sql.query import SqlSession, every, load, scalar

SQL = load("views")
_LOOKED_AT_MAX = 10_000
"""Open batches, and lanes that wait, whose newest message is looked up; others are counted alone."""


def received(db: SqlSession) -> dict[str, int]:
    return dict(every(db, SQL["received"]))


def lost(db: SqlSession) -> int:
    """Messages that were counted as they came and that no lane has, and those that wait without a row of theirs."""
    return int(scalar(db, SQL["lost"], (_LOOKED_AT_MAX,)) or 0)
