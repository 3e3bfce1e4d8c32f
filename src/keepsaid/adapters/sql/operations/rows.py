"""Rows of the operational store as values, and the events that tell of tasks."""

from __future__ import annotations

import json
import logging
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from keepsaid.adapters.sql.operations import journal
from keepsaid.adapters.sql.query import SqlSession, every, every_replaced, load, one
from keepsaid.adapters.sql.tombstones import is_intact
from keepsaid.domain import visibility
from keepsaid.domain.batch import StoredBatch
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, StoredMessage, Trust
from keepsaid.domain.prompt import Json, Record, Role, ToolCall
from keepsaid.domain.reply import ReplyDraft, StoredReply
from keepsaid.domain.route import Action, Verdict
from keepsaid.domain.task import Task, happened
from keepsaid.domain.turn import Step, StepKind, Usage
from keepsaid.domain.work import TaskKind, decoded
from keepsaid.errors import MessageDamaged

SQL = load("rows")
OWN_TOOLS = json.dumps(sorted(visibility.OWN_TOOLS))
WITHHELD = "[withheld: what is on disk is not what was stored; see keepsaid doctor --deep]"
"""Stands for a text whose row does not match its checksum."""

_log = logging.getLogger("keepsaid.store")
Row = Sequence[Any]


def batch(row: Row) -> StoredBatch:
    """A row of the statement `batch`."""
    verdict = Verdict(Action(row[8]), row[9], row[10], row[11])
    numbers = {"priority": row[12], "fence": row[13], "attempts": row[14], "crashes": row[15]}
    numbers |= {"deferrals": row[16], "created_at": row[17], "ready_at": row[22], "pruned_at": row[23]}
    numbers |= {"deferred_from": row[24], "trial_after_ms": row[25], "survived": row[26]}
    return StoredBatch(row[0], Lane(*row[1:5]), row[5], row[6], row[7], verdict, error=row[21], **numbers)


def message(row: Row) -> StoredMessage:
    """A row of the statements that read messages."""
    lane = Lane(*row[1:5])
    origin = _origin((*row[1:4], *row[6:10]))
    content = Content(row[16], row[17], row[15])
    marks = ProviderMarks(row[10], row[11], row[12])
    inbound = Inbound(origin, content, marks, row[18], topic=row[13], reply_url=row[14])
    if row[22] is None and not is_intact(inbound, row[19], row[20], row[21]):
        emptied = replace(inbound, content=Content(b"", "", content.event), reply_url=None)
        return StoredMessage(row[0], lane, row[5], emptied, row[19], damaged=True)
    return StoredMessage(row[0], lane, row[5], inbound, row[19])


@lru_cache(maxsize=1_024)
def _origin(named: tuple[str, str, str, str, str, int, str]) -> Origin:
    channel, account, conversation, sender, name, direct, trust = named
    return Origin(channel, account, conversation, sender, name, bool(direct), Trust(trust))


def messages_of(db: SqlSession, batch_id: int) -> tuple[StoredMessage, ...]:
    """The messages of a batch, in order."""
    return tuple(message(row) for row in every_replaced(db, SQL["range"], (batch_id,)))


def step(row: Row) -> Step:
    """A row of the statement `steps`."""
    output = None if row[5] is None else json.loads(row[5])
    return Step(row[0], StepKind(row[1]), row[2], row[3], row[4], output, Usage(row[6], row[7], row[8]), bool(row[9]))


def replies(db: SqlSession, sql: str, bound: Sequence[object]) -> list[StoredReply]:
    """The replies that a statement finds; one that is not what was written has WITHHELD for its text."""
    found = every_replaced(db, sql, bound)
    damaged = db.altered("reply", [row[0] for row in found])
    for reply_id in (row[0] for row in found if row[0] in damaged):
        _log.error("reply %d is not what was stored: it is withheld", reply_id, extra={"code": MessageDamaged.code})
    return [reply((*row[:7], WITHHELD, *row[8:]) if row[0] in damaged else row) for row in found]


def records(db: SqlSession, lane_id: int, found: Sequence[Row]) -> tuple[Record, ...]:
    """Rows of `records_after` of one lane; one that is not what was written has WITHHELD for its text."""
    damaged = db.altered("transcript", [row[7] for row in found], lane_id)
    for position in (row[7] for row in found if row[7] in damaged):
        message = "record %d of lane %d is not what was stored: it is withheld"
        _log.error(message, position, lane_id, extra={"code": MessageDamaged.code})
    return tuple(record((row[0], WITHHELD, *row[2:]) if row[7] in damaged else row) for row in found)


def reply(row: Row) -> StoredReply:
    """A row of the statements that read replies."""
    draft = ReplyDraft(row[0], row[7], bool(row[8]), row[9], row[10])
    return StoredReply(row[0], Lane(*row[1:5]), row[5], row[6], draft, row[11], row[12], bool(row[13]), *row[14:16])


def record(row: Row) -> Record:
    """A row of the statements that read records, whose last column (of nine) is the trust, where they read it."""
    calls = tuple(ToolCall(*call) for call in json.loads(row[2])) if row[2] else ()
    trust = Trust(row[8]) if len(row) > 8 and row[8] else None
    return Record(Role(row[0]), row[1], calls, row[3], row[4], attached=row[5], trust=trust)


def trace(db: SqlSession, turn_id: int) -> Json:
    """What is recorded of a turn's context and memory; None before its first step."""
    row = one(db, SQL["trace"], (turn_id,))
    unpacked: Json = json.loads(zlib.decompress(row[0])) if row else None
    return unpacked


def calls_text(of: Record) -> str:
    """The calls of a record as stored; empty when it has none."""
    return json.dumps([[call.id, call.name, call.arguments] for call in of.calls]) if of.calls else ""


TASKS = load("tasks")
_COLUMNS: tuple[str, ...] = ("id", "key", "kind", "state", "turn_id", "depth", "rule", "description", "terms")
_COLUMNS += ("outside", "messages", "priority", "ready_at", "fence", "attempts", "crashes", "deferrals")
_COLUMNS += ("deferred_from", "status", "result", "reason", "created_at", "started_at", "ended_at", "expires_at")


def task_of(row: Row) -> Task:
    """A row of the columns of a task: the usage after its reason, what it waits for and its lane at the end."""
    columns = dict(zip(_COLUMNS, (*row[:21], *row[24:28]), strict=True))
    columns |= {"kind": TaskKind(row[2]), "terms": decoded(row[8]), "outside": bool(row[9])}
    lane = None if row[29] is None else Lane(*row[29:])
    return Task(**columns, lane=lane, usage=Usage(*row[21:24]), after=tuple(json.loads(row[28])))


def tasks_of(db: SqlSession, ids: Sequence[int]) -> tuple[Task, ...]:
    """These tasks, by id; those that do not exist are left out."""
    return tuple(task_of(row) for row in every(db, TASKS["of"], (db.numbers(tuple(ids)),))) if ids else ()


def task_or_none(db: SqlSession, task_id: int) -> Task | None:
    return next(iter(tasks_of(db, (task_id,))), None)


def write_task_event(db: SqlSession, what: str, task_id: int, at: int, **more: Json) -> None:
    journal.write_facts(db, at, happened(what, task_id, **more))
