"""What readers see of the buffer: waiting lanes, messages and what became of them, counts."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite import rows
from keepsaid.adapters.sqlite.leases import SQL as LEASES
from keepsaid.adapters.sqlite.query import Row, every, one, only
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.batch import Batch, Group
from keepsaid.domain.lane import Lane
from keepsaid.domain.states import message_state
from keepsaid.domain.turn import Usage
from keepsaid.domain.views import ChannelDepth, EpisodeWork, MessageFilter, Overview, Story

SQL = load("views")
_GROUP_MAX = 100
_COUNTED = ("batches", "replies", "tasks")


def due(db: apsw.Connection, at: int, limit: int) -> tuple[Group, ...]:
    """Lanes whose window has closed, with their waiting messages."""
    groups = []
    for lane_id, *identity, batched in every(db, SQL["due"], (at, limit)):
        waiting = every(db, SQL["waiting"], (lane_id, _GROUP_MAX))
        groups.append(Group(Lane(*identity), batched, tuple(rows.message(row) for row in waiting)))
    return tuple(groups)


def next_due(db: apsw.Connection) -> int | None:
    """When the next window closes."""
    at: int | None = only(db, SQL["next_due"])[0]
    return at


def story(db: apsw.Connection, message_id: int) -> Story | None:
    """One message and what became of it."""
    row = one(db, rows.SQL["message"], (message_id,))
    if row is None:
        return None
    message = rows.message(row)
    found = one(db, SQL["batch_of"], only(db, SQL["lane_of_message"], (message_id,)))
    if found is None:
        return Story(message, message_state(None))
    batch, stored = batch_of(db, found[0])
    turn = one(db, SQL["turn_of_batch"], (batch.id,))
    replies = tuple(rows.reply(reply) for reply in every(db, SQL["replies_of_batch"], (batch.id,)))
    return Story(message, message_state(batch.state), batch, turn[0] if turn else None, stored[19], replies)


def batch_of(db: apsw.Connection, batch_id: int) -> tuple[Batch, Row]:
    """A batch, and its row."""
    row = only(db, LEASES["batch"], (batch_id,))
    return rows.batch(row), row


def find(db: apsw.Connection, wanted: MessageFilter) -> Sequence[Story]:
    """Messages, newest first."""
    bound = (wanted.channel, wanted.conversation, wanted.state, wanted.limit)
    found = [story(db, row[0]) for row in every(db, SQL["find"], bound)]
    return [one_story for one_story in found if one_story is not None]


def overview(db: apsw.Connection) -> Overview:
    """Counts over the whole store."""
    depths = {row[0]: ChannelDepth(row[0], 0, None) for row in every(db, SQL["channels"])}
    depths |= {row[0]: ChannelDepth(*row) for row in every(db, SQL["depth"])}
    turns = every(db, SQL["turns"])
    usage = sum((Usage(row[2] or 0, row[3] or 0, row[4]) for row in turns), Usage())
    episodes_due, messages = only(db, SQL["totals"])
    batches, replies, tasks = ({row[0]: row[1] for row in every(db, SQL[name])} for name in _COUNTED)
    states = {row[0]: row[1] for row in turns}
    return Overview(tuple(depths.values()), batches, replies, tasks, states, usage, episodes_due, messages)


def episode_work(db: apsw.Connection, limit: int, conversation: str | None) -> Sequence[EpisodeWork]:
    """Batches whose episodes may not be in memory yet."""
    work = []
    for batch_id, turn_id in every(db, SQL["work"], (conversation, limit)):
        messages = rows.messages_of(db, batch_id)
        answer = one(db, SQL["answer"], (turn_id,)) if turn_id is not None else None
        reply, replied_at = answer or ("", 0)
        work.append(EpisodeWork(batch_id, messages, turn_id, reply, replied_at))
    return work
