"""(short: two statements) Cursors: how far the messages of an account have been read, kept once they are stored."""

from __future__ import annotations

from collections.abc import Mapping

from keepsaid.adapters.sql.query import SqlSession, every, load
from keepsaid.domain.line import MoveCursors

SQL = load("cursors")


def move(db: SqlSession, commit: MoveCursors) -> None:
    for one in commit.cursors:
        db.post(SQL["keep"], (commit.channel, one.account, one.name, one.value, commit.at))


def of_account(db: SqlSession, channel: str, account: str) -> Mapping[str, str]:
    return dict(every(db, SQL["of_account"], (channel, account)))
