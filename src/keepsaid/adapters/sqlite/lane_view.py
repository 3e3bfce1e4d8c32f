"""What readers see of lanes, turns and the outbox."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import apsw

from keepsaid.adapters.sqlite import rows
from keepsaid.adapters.sqlite.buffer_view import SQL, batch_of, placed
from keepsaid.adapters.sqlite.busy import steered as steered_into
from keepsaid.adapters.sqlite.claims import SQL as CLAIMS
from keepsaid.adapters.sqlite.leases import SQL as LEASES
from keepsaid.adapters.sqlite.query import every, one, only
from keepsaid.adapters.sqlite.receipts import feedback_of_turn
from keepsaid.adapters.sqlite.routing import lane_id_of
from keepsaid.adapters.sqlite.session_view import surroundings
from keepsaid.domain.lane import Lane
from keepsaid.domain.reply import Reply
from keepsaid.domain.turn import Claimed, Lease, Usage
from keepsaid.domain.views import TurnStory


def claimed(db: apsw.Connection, lease: Lease) -> Claimed | None:
    """What a lease is for."""
    batch, turn_id = lease.batch, lease.turn_id
    if one(db, LEASES["held"], (batch.id, batch.fence)) is None:
        return None
    messages = rows.messages_of(db, batch.id)
    if not lease.continued:
        around = surroundings(db, batch.lane, messages)
        return Claimed(batch, turn_id, messages, (), lease.alone, around=around)
    steps = tuple(rows.step(step) for step in every(db, CLAIMS["steps"], (turn_id,)))
    trace, joined = rows.trace(db, turn_id), steered_into(db, turn_id)
    claimed = Claimed(batch, turn_id, messages, steps, lease.alone, trace, joined)
    return replace(claimed, around=surroundings(db, batch.lane, claimed.heard))


def turn(db: apsw.Connection, turn_id: int) -> TurnStory | None:
    """One turn with all that is recorded of it."""
    row = one(db, SQL["turn"], (turn_id,))
    if row is None:
        return None
    batch_id, state, reason, tokens_in, tokens_out, cost, started_at, ended_at = row
    batch, _ = batch_of(db, batch_id)
    before = one(db, SQL["turn_before"], (turn_id,))
    steered = (joined[0] for joined in every(db, SQL["steered"], (turn_id,)))
    messages = tuple(message for one in (batch_id, *steered) for message in rows.messages_of(db, one))
    return TurnStory(
        turn_id,
        state,
        batch,
        messages,
        tuple(rows.step(step) for step in every(db, CLAIMS["steps"], (turn_id,))),
        tuple(rows.record(record) for record in every(db, SQL["records"], (turn_id,))),
        tuple(rows.replies(db, SQL["replies_of_batch"], (batch_id,))),
        rows.trace(db, turn_id),
        Usage(tokens_in, tokens_out, cost),
        started_at,
        ended_at,
        reason,
        rows.trace(db, before[0]) if before else None,
        placed(db, messages),
        feedback_of_turn(db, turn_id),
    )


def last_turn(db: apsw.Connection, lane: Lane | None) -> int | None:
    """The newest settled turn."""
    row = one(db, SQL["last_turn_of_lane"], (lane_id_of(db, lane),)) if lane else one(db, SQL["last_turn"])
    return row[0] if row else None


def next_ready(db: apsw.Connection) -> int | None:
    """When the next queued batch may be claimed."""
    at: int | None = only(db, SQL["next_ready"])[0]
    return at


def next_trial(db: apsw.Connection) -> int | None:
    """Return the age of the process at which a trial may begin."""
    after_ms: int | None = only(db, SQL["next_trial"])[0]
    return after_ms


def unseen(db: apsw.Connection, channel: str, conversation: str, limit: int) -> Sequence[Reply]:
    """The first replies that nobody has pulled yet."""
    return rows.replies(db, SQL["unseen"], (channel, conversation, limit))


def last_id(db: apsw.Connection) -> int:
    """The largest id of all messages, batches, replies and tasks."""
    return int(only(db, SQL["last_id"])[0])


def next_send(db: apsw.Connection, channels: tuple[str, ...]) -> int | None:
    """When the next reply may be pushed."""
    at: int | None = only(db, SQL["next_send"], (json.dumps(channels),))[0]
    return at
