"""Parts of replies: kept before the first is sent, and each confirmed before the next one begins."""

from __future__ import annotations

from keepsaid.adapters.sql.query import SqlSession, every, load, only, run, scalar, write_rows
from keepsaid.domain import states
from keepsaid.domain.reply import Delivered
from keepsaid.domain.reply_parts import ConfirmPart, KeepParts, NoteUndelivered, ReplyPart

SQL = load("reply_parts")
_HELD = load("outbox")["held"]

_CUT_SHORT = {
    Delivered.RETRY: "retry",
    Delivered.DOUBT: "doubt",
    Delivered.DEAD: "doubt",
    Delivered.REFUSED: "retry",
}
"""The verb that moves the part under way, by how the try of its reply ended."""

UNDELIVERED = "reported undelivered"

_OVER = (Delivered.CONFIRMED, Delivered.REFUSED)
"""After these nothing of a reply is sent again: what was to be sent is kept no longer."""


def keep(db: SqlSession, commit: KeepParts) -> tuple[ReplyPart, ...]:
    if not _is_held(db, commit):
        return ()
    if not (found := _parts(db, commit.reply_id)) and commit.bodies:
        rows = [(commit.reply_id, n, "pending", body) for n, body in enumerate(commit.bodies)]
        write_rows(db, SQL["keep"], rows)
        found = _parts(db, commit.reply_id)
    if (first := next((part for part in found if not part.is_sent), None)) is not None:
        _begin(db, commit.reply_id, first.n)
    return found


def confirm(db: SqlSession, commit: ConfirmPart) -> bool:
    if not _is_held(db, commit):
        return False
    state = states.move("part", only(db, SQL["state"], (commit.reply_id, commit.n))[0], "confirm")
    db.post(SQL["move"], (commit.reply_id, commit.n, state, commit.provider_id))
    if scalar(db, SQL["state"], (commit.reply_id, commit.n + 1)) == "pending":
        _begin(db, commit.reply_id, commit.n + 1)
    return True


def note_undelivered(db: SqlSession, commit: NoteUndelivered) -> bool:
    place = (commit.provider_id, commit.channel, commit.account)
    return run(db, SQL["note_undelivered"], (*place, f"{UNDELIVERED}: {commit.report}")) > 0


def end_try(db: SqlSession, reply_id: int, outcome: str) -> None:
    """Record how the try of a reply ended for the part that was under way."""
    if (verb := _CUT_SHORT.get(Delivered(outcome))) is not None:
        db.post(SQL["cut_short"], (reply_id, states.move("part", "sending", verb), verb == "doubt"))
    if outcome in _OVER:
        db.post(SQL["empty"], (reply_id,))


def _parts(db: SqlSession, reply_id: int) -> tuple[ReplyPart, ...]:
    return tuple(
        ReplyPart(reply_id, n, body, state == "sent", provider_id, bool(doubted))
        for n, body, state, provider_id, doubted in every(db, SQL["parts"], (reply_id,))
    )


def _begin(db: SqlSession, reply_id: int, n: int) -> None:
    db.post(SQL["move"], (reply_id, n, states.move("part", "pending", "take"), None))


def _is_held(db: SqlSession, commit: KeepParts | ConfirmPart) -> bool:
    return bool(scalar(db, _HELD, (commit.reply_id, commit.fence)) == "sending")
