"""Chronicles: a batch with its messages, turns, steps and replies; and where memories come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keepsaid.adapters.sql.operations import intake, rows, views
from keepsaid.adapters.sql.operations.queries import SqlLanes
from keepsaid.adapters.sql.query import Row, SqlReaders, SqlSession, SqlView, every, load, one, only, reads, scalar
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain import memory, route
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.turn import Usage
from keepsaid.domain.views import BatchLife, Chronicle, Decided, ReplyLife, ReplyMove, StepLife, TurnLife

TRAILS = load("trails")
_LOOKUPS = {"message": "said", "reply": "answered", "turn": "answered", "finding": "found"}


def _missing(db: SqlSession, sources: Sequence[memory.Source]) -> frozenset[memory.Source]:
    return frozenset(source for source in sources if not _is_there(db, source))


def _is_there(db: SqlSession, source: memory.Source) -> bool:
    """A source of another kind, or with another name, is not of this store: nothing is known of it here."""
    number = source.ref.partition(":")[0]
    lookup = _LOOKUPS.get(source.kind)
    return lookup is None or not number.isdecimal() or bool(only(db, TRAILS[lookup], (int(number),))[0])


def _shown(db: SqlSession, turns: Sequence[int]) -> Mapping[int, Sequence[int]]:
    found: dict[int, list[int]] = {}
    for turn_id, memory_id in every(db, TRAILS["shown"], (db.numbers((0, *turns)),)):
        found.setdefault(turn_id, []).append(memory_id)
    return found


class SqlTrails(SqlView):
    """What memories were made from; read only."""

    missing = reads(_missing)
    shown = reads(_shown)


CHRONICLE = load("chronicle")


def _of_message(db: SqlSession, message_id: int) -> Chronicle | None:
    if (row := one(db, rows.SQL["message"], (message_id,))) is None:
        return None
    place = only(db, views.SQL["lane_of_message"], (message_id,))
    if (batch_id := scalar(db, views.SQL["batch_of"], place)) is not None:
        return _of_batch(db, batch_id)
    due_at = only(db, CHRONICLE["due_at"], place[:1])[0]
    return Chronicle((rows.message(row),), due_at=due_at, redeliveries=intake.redeliveries(db, [message_id]))


def _of_batch(db: SqlSession, batch_id: int) -> Chronicle | None:
    if (row := one(db, CHRONICLE["known_batch"], (batch_id,))) is None:
        return None
    lane_id, first, first_at, later, ended_at, owner, lease_until, alone, task_id = row
    batch, _ = views.batch_of(db, batch_id)
    ahead_id = scalar(db, CHRONICLE["ahead"], (lane_id, first)) if batch.state == "queued" else None
    ahead = None if ahead_id is None else views.batch_of(db, ahead_id)[0]
    messages = rows.messages_of(db, batch_id)
    return Chronicle(
        messages,
        BatchLife(batch, first_at, bool(later), ended_at, owner, lease_until, bool(alone), ahead),
        tuple(_turn(db, turn) for turn in every(db, CHRONICLE["turns"], (batch_id,))),
        tuple(_reply(db, reply) for reply in rows.replies(db, views.SQL["replies_of_batch"], (batch_id,))),
        views.spawned_task(db, task_id),
        redeliveries=intake.redeliveries(db, [message.id for message in messages]),
    )


def _of_turn(db: SqlSession, turn_id: int) -> Chronicle | None:
    batch_id = scalar(db, CHRONICLE["batch_of_turn"], (turn_id,))
    return None if batch_id is None else _of_batch(db, batch_id)


def _turn(db: SqlSession, row: Row) -> TurnLife:
    steps = (StepLife(*(*step[:5], Usage(*step[5:8]), *step[8:])) for step in every(db, CHRONICLE["steps"], row[:1]))
    return TurnLife(*(*row[:4], Usage(*row[4:7]), *row[7:], tuple(steps)))


def _reply(db: SqlSession, reply: StoredReply) -> ReplyLife:
    moves = tuple(ReplyMove(*move) for move in every(db, CHRONICLE["moves"], (reply.id,)))
    return ReplyLife(reply, *(*only(db, CHRONICLE["reply"], (reply.id,)), moves))


def _decided(db: SqlSession, since: int, before: int, limit: int) -> Sequence[Decided]:
    """Messages received at or after `since` with ids below `before`, newest first, each with its verdict."""
    found = []
    for *message, action, rule, version, reason in every(db, CHRONICLE["decided"], (since, before, limit)):
        verdict = None if action is None else route.Verdict(route.Action(action), rule, version, reason)
        found.append(Decided(rows.message(tuple(message)), verdict, forgotten=message[-1] is not None))
    return found


class SqlChronicles(SqlLanes):
    """The operational store, read only, with every time it keeps; None for an id that names nothing."""

    def __init__(self, readers: SqlReaders, keyring: TombstoneKeyring) -> None:
        super().__init__(readers, keyring)
        self.trails = SqlTrails(readers)

    chronicle_of_message = reads(_of_message)
    chronicle_of_batch = reads(_of_batch)
    chronicle_of_turn = reads(_of_turn)
    decided = reads(_decided)
