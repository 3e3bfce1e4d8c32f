"""Chronicles: a batch with its messages, turns, steps and replies; and where memories come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keepsaid.adapters.sql.operations import intake, rows
from keepsaid.adapters.sql.operations.queries import SqlLanes
from keepsaid.adapters.sql.operations.views import SQL as VIEWS
from keepsaid.adapters.sql.operations.views import batch_of
from keepsaid.adapters.sql.query import every, load, one, only, reads
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.domain.memory import Source
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.route import Action, Verdict
from keepsaid.domain.turn import Usage
from keepsaid.domain.views import BatchLife, Chronicle, Decided, ReplyLife, ReplyMove, Spawned, StepLife, TurnLife

SQL = load("trails")
_LOOKUPS = {"message": "said", "reply": "answered", "turn": "answered", "finding": "found"}


class SqlTrails:
    """What memories were made from; read only."""

    def __init__(self, readers: SqlReaders) -> None:
        self._readers = readers

    async def missing(self, sources: Sequence[Source]) -> frozenset[Source]:
        """Those of the messages, replies, turns and findings that are there no more."""
        return await self._readers.run(_missing, frozenset(sources))

    async def shown(self, turns: Sequence[int]) -> Mapping[int, Sequence[int]]:
        """The memories that these turns were shown."""
        return await self._readers.run(_shown, tuple(turns))


def _missing(db: SqlSession, sources: frozenset[Source]) -> frozenset[Source]:
    return frozenset(one for one in sources if not _is_there(db, one))


def _is_there(db: SqlSession, source: Source) -> bool:
    """What is of another kind, or named otherwise, came from elsewhere: nothing is known of it here."""
    number = source.ref.partition(":")[0]
    lookup = _LOOKUPS.get(source.kind)
    return lookup is None or not number.isdecimal() or bool(only(db, SQL[lookup], (int(number),))[0])


def _shown(db: SqlSession, turns: tuple[int, ...]) -> Mapping[int, Sequence[int]]:
    found: dict[int, list[int]] = {}
    for turn_id, memory_id in every(db, SQL["shown"], (db.numbers((0, *turns)),)):
        found.setdefault(turn_id, []).append(memory_id)
    return found


CHRONICLE = load("chronicle")


def _of_message(db: SqlSession, message_id: int) -> Chronicle | None:
    """What became of a message."""
    row = one(db, rows.SQL["message"], (message_id,))
    if row is None:
        return None
    place = only(db, VIEWS["lane_of_message"], (message_id,))
    batch = one(db, VIEWS["batch_of"], place)
    if batch is not None:
        return _of_batch(db, batch[0])
    due_at = only(db, CHRONICLE["due_at"], place[:1])[0]
    return Chronicle((rows.message(row),), due_at=due_at, redeliveries=intake.redeliveries(db, [message_id]))


def _of_batch(db: SqlSession, batch_id: int) -> Chronicle | None:
    """What became of a batch."""
    row = one(db, CHRONICLE["known_batch"], (batch_id,))
    if row is None:
        return None
    lane_id, first, first_at, later, ended_at, owner, lease_until, alone, task_id = row
    batch, _ = batch_of(db, batch_id)
    ahead = one(db, CHRONICLE["ahead"], (lane_id, first)) if batch.state == "queued" else None
    task = one(db, VIEWS["task"], (task_id,))
    replies = rows.replies(db, VIEWS["replies_of_batch"], (batch_id,))
    messages = rows.messages_of(db, batch_id)
    return Chronicle(
        messages,
        BatchLife(
            batch,
            first_at,
            bool(later),
            ended_at,
            owner,
            lease_until,
            bool(alone),
            batch_of(db, ahead[0])[0] if ahead else None,
        ),
        tuple(_turn(db, *turn) for turn in every(db, CHRONICLE["turns"], (batch_id,))),
        tuple(_reply(db, reply) for reply in replies),
        Spawned(*task) if task else None,
        redeliveries=intake.redeliveries(db, [message.id for message in messages]),
    )


def _of_turn(db: SqlSession, turn_id: int) -> Chronicle | None:
    """What became of the batch a turn answers."""
    row = one(db, CHRONICLE["batch_of_turn"], (turn_id,))
    return None if row is None else _of_batch(db, row[0])


def _decided(db: SqlSession, since: int, before: int, limit: int) -> Sequence[Decided]:
    """Messages received at or after `since` with ids below `before`, newest first, each with its verdict."""
    found = every(db, CHRONICLE["decided"], (since, before, limit))
    return [_judged(*row) for row in found]


class SqlChronicles(SqlLanes):
    """The operational store, read only, with every time it keeps; None for an id that names nothing."""

    @property
    def trails(self) -> SqlTrails:
        """Where memories come from."""
        return SqlTrails(self._readers)

    chronicle_of_message = reads(_of_message)
    chronicle_of_batch = reads(_of_batch)
    chronicle_of_turn = reads(_of_turn)
    decided = reads(_decided)


def _turn(db: SqlSession, turn_id: int, *columns: Any) -> TurnLife:
    state, reason, model, tokens_in, tokens_out, cost, started_at, ended_at = columns
    steps = tuple(_step(*step) for step in every(db, CHRONICLE["steps"], (turn_id,)))
    usage = Usage(tokens_in, tokens_out, cost)
    return TurnLife(turn_id, state, reason, model, usage, started_at, ended_at, steps)


def _step(*columns: Any) -> StepLife:
    n, kind, subject, state, tries, tokens_in, tokens_out, cost, started_at, ended_at = columns
    return StepLife(n, kind, subject, state, tries, Usage(tokens_in, tokens_out, cost), started_at, ended_at)


def _reply(db: SqlSession, reply: StoredReply) -> ReplyLife:
    next_at, ended_at, provider_id = only(db, CHRONICLE["reply"], (reply.id,))
    moves = tuple(ReplyMove(*move) for move in every(db, CHRONICLE["moves"], (reply.id,)))
    return ReplyLife(reply, next_at, ended_at, provider_id, moves)


def _judged(*columns: Any) -> Decided:
    *stored, forgotten_at, action, rule, version, reason = columns
    message = rows.message((*stored, forgotten_at))
    verdict = None if action is None else Verdict(Action(action), rule, version, reason)
    return Decided(message, verdict, forgotten=forgotten_at is not None)
