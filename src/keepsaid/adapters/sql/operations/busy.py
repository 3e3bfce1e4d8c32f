"""Batches that join a running turn, replace it, or are dropped by a person."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.sql.operations import rows
from keepsaid.adapters.sql.operations.journal import tell
from keepsaid.adapters.sql.operations.routing import SQL as ROUTING
from keepsaid.adapters.sql.operations.routing import lane_row, refresh_ready
from keepsaid.adapters.sql.query import every, load, one
from keepsaid.adapters.sql.session import SqlSession
from keepsaid.domain.busy import INTERRUPTED, JOINED_DOUBT, Interrupt, Steer, may_join
from keepsaid.domain.commits import Drop
from keepsaid.domain.event import Over, abandoned, dropped, ended
from keepsaid.domain.states import move
from keepsaid.domain.turn import Steered

SQL = load("busy")


def interrupt(db: SqlSession, commit: Interrupt) -> int | None:
    """Begin the batch at work anew, with the next one in it."""
    lane_id = lane_row(db, commit.lane)[0]
    held = one(db, SQL["at_work"], (lane_id,))
    newer = None if held is None else one(db, SQL["next_open"], (lane_id, held[3]))
    if held is None or newer is None or one(db, SQL["unrepeatable"], (held[0],)) is not None:
        return None
    batch_id, _, first, last, chars, *rule, state = held
    newer_id, newer_first, newer_last, last_id, newer_chars, *newer_rule, priority = newer
    if newer_first != last + 1 or newer_rule != rule or one(db, SQL["has_turns"], (newer_id,)) is not None:
        return None
    if newer_last - first + 1 > commit.window.count_max or chars + newer_chars > commit.window.chars_max:
        return None
    db.execute(SQL["interrupt"], (batch_id, move("batch", state, "interrupt")))
    abandon(db, batch_id, (INTERRUPTED, Over.INTERRUPTED), commit.at)
    db.execute(SQL["forget_batch"], (newer_id,))
    db.execute(ROUTING["extend_batch"], (batch_id, newer_last, newer_chars, priority, last_id))
    refresh_ready(db, lane_id)
    return int(batch_id)


def abandon(db: SqlSession, batch_id: int, over: tuple[str, Over], at: int) -> Sequence[int]:
    """End the open turn of a batch, for a reason; what was steered into it waits for a turn of its own.

    But what the turn was shown before it began something that must not be repeated is parked: a turn of its own
    might ask for the same again. Returns what is parked.
    """
    doubtful = every(db, SQL["in_doubt"], (batch_id,))
    for joined_id, state in doubtful:
        parked = move("batch", state, "park")
        db.execute(SQL["park"], (joined_id, parked, JOINED_DOUBT, at))
        tell(db, at, ended(joined_id, parked))
    db.execute(SQL["unsteer"], (batch_id,))
    reason, why = over
    for (turn_id,) in every(db, SQL["abandon"], (batch_id, reason, at)):
        tell(db, at, abandoned(turn_id, batch_id, why))
    return [joined_id for joined_id, _ in doubtful]


def steer(db: SqlSession, commit: Steer) -> tuple[Steered, ...]:
    """Offer a running turn what waits next."""
    turn = one(db, SQL["steered_turn"], (commit.turn_id, commit.batch_id, commit.fence))
    if turn is None:
        return ()
    last, count, chars, lane_id = turn
    for joined in every(db, SQL["steered"], (commit.turn_id,)):
        last, count, chars = joined[2], count + joined[3], chars + joined[4]
    held = rows.messages_of(db, commit.batch_id)
    taken: list[Steered] = []
    while (row := one(db, SQL["next_open"], (lane_id, last))) is not None:
        batch_id, first, last, _, more_chars, *_ = row
        count, chars = count + last - first + 1, chars + more_chars
        if count > commit.window.count_max or chars > commit.window.chars_max:
            break
        messages = rows.messages_of(db, batch_id)
        if not may_join(held, messages):
            break
        db.execute(SQL["steer"], (batch_id, commit.turn_id, commit.n))
        taken.append(Steered(batch_id, commit.n, messages))
    return tuple(taken)


def leave_unseen(db: SqlSession, turn_id: int) -> None:
    """What no recorded step of an open turn was shown is left to itself again."""
    db.execute(SQL["unseen"], (turn_id,))


def steered(db: SqlSession, turn_id: int) -> tuple[Steered, ...]:
    """What the steps of an open turn were shown beside its own messages."""
    return tuple(Steered(row[0], row[1], rows.messages_of(db, row[0])) for row in every(db, SQL["steered"], (turn_id,)))


DROP = load("drop")


def drop(db: SqlSession, commit: Drop) -> bool:
    """Drop a queued batch that no turn was shown; a turn that an earlier attempt left open is over."""
    row = one(db, DROP["waiting"], (commit.batch_id,))
    if row is None:
        return False
    state, lane_id, messages = row
    db.execute(DROP["drop"], (commit.batch_id, move("batch", state, "drop"), commit.reason, commit.at))
    tell(db, commit.at, dropped(commit.batch_id, messages))
    abandon(db, commit.batch_id, (commit.reason, Over.DROPPED), commit.at)
    refresh_ready(db, lane_id)
    return True
