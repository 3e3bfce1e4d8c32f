"""Rows of the operational store as values, and the events of tasks."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from keepsaid.adapters.sql.operations import journal
from keepsaid.adapters.sql.query import Row, SqlSession, every, every_replaced, load, log, one
from keepsaid.adapters.sql.tombstones import is_intact
from keepsaid.domain import route, task, turn, visibility
from keepsaid.domain.batch import StoredBatch
from keepsaid.domain.message import Content, Inbound, Lane, Origin, ProviderMarks, StoredMessage, Trust
from keepsaid.domain.prompt import Json, Record, Role, ToolCall
from keepsaid.domain.reply import ReplyDraft, StoredReply
from keepsaid.domain.turn_files import TurnFile
from keepsaid.errors import MessageDamaged

SQL = load("rows")
FILES = load("turn_files")
OWN_TOOLS = json.dumps(sorted(visibility.OWN_TOOLS))
WITHHELD = "[withheld: what is on disk is not what was stored; see keepsaid doctor --deep]"
"""Replaces a text whose row does not match its checksum."""


def batch(row: Row) -> StoredBatch:
    """Read a row of the statement `batch` in `claims.sql`: lane_id, task_id, then the fields of the value, in order."""
    own = row[2:]
    verdict = route.Verdict(route.Action(own[8]), *own[9:12])
    return StoredBatch(own[0], Lane(*own[1:5]), *(*own[5:8], verdict, *own[12:]))


def message(row: Row) -> StoredMessage:
    """A row of the statements that read messages."""
    content, marks = Content(row[16], row[17], row[15]), ProviderMarks(*row[10:13])
    inbound = Inbound(_origin((*row[1:4], *row[6:10])), content, marks, row[18], *row[13:15])
    damaged = row[22] is None and not is_intact(inbound, *row[19:22])
    if damaged:
        inbound = replace(inbound, content=Content(b"", "", content.event), reply_url=None)
    return StoredMessage(row[0], Lane(*row[1:5]), row[5], inbound, row[19], damaged=damaged)


@lru_cache(maxsize=1_024)
def _origin(named: tuple[str, str, str, str, str, int, str]) -> Origin:
    channel, account, conversation, sender, name, direct, trust = named
    return Origin(channel, account, conversation, sender, name, bool(direct), Trust(trust))


def messages_of(db: SqlSession, batch_id: int) -> tuple[StoredMessage, ...]:
    """The messages of a batch, in order."""
    return tuple(map(message, every_replaced(db, SQL["range"], (batch_id,))))


def step(row: Row) -> turn.Step:
    """A row of the statement `steps`."""
    result = (json.loads(row[5] or "null"), turn.Usage(*row[6:9]), bool(row[9]))
    return turn.Step(row[0], turn.StepKind(row[1]), *(*row[2:5], *result))


def replies(db: SqlSession, sql: str, bound: Sequence[object]) -> list[StoredReply]:
    """The replies that a statement finds; one that is not what was written has WITHHELD for its text."""
    found = every_replaced(db, sql, bound)
    damaged = db.altered("reply", [row[0] for row in found])
    for reply_id in (row[0] for row in found if row[0] in damaged):
        log.error("reply %d is not what was stored: it is withheld", reply_id, extra={"code": MessageDamaged.code})
    return with_files(db, [reply((*row[:7], WITHHELD, *row[8:]) if row[0] in damaged else row) for row in found])


def with_files(db: SqlSession, found: Sequence[StoredReply]) -> list[StoredReply]:
    """Replies with the files of their turns."""
    turns = {one.turn_id for one in found if one.turn_id is not None}
    brought = attached_files(db, tuple(turns)) if turns else ()
    return [replace(one, files=tuple(file for file in brought if file.turn_id == one.turn_id)) for one in found]


def attached_files(db: SqlSession, turn_ids: Sequence[int]) -> tuple[TurnFile, ...]:
    """The files that go with the replies of some turns, in order."""
    return tuple(map(turn_file, every(db, FILES["attached"], (db.numbers(turn_ids),))))


def turn_file(row: Row) -> TurnFile:
    """A row of the statements that read files of turns."""
    turn_id, n, name, kind, size, attached, source = row
    return TurnFile(turn_id, n, name, kind, size, bool(attached), source)


def records(db: SqlSession, lane_id: int, found: Sequence[Row]) -> tuple[Record, ...]:
    """Rows of `records_after` of one lane; one that is not what was written has WITHHELD for its text."""
    damaged = db.altered("transcript", [row[7] for row in found], lane_id)
    for position in (row[7] for row in found if row[7] in damaged):
        message = "record %d of lane %d is not what was stored: it is withheld"
        log.error(message, position, lane_id, extra={"code": MessageDamaged.code})
    return tuple(record((row[0], WITHHELD, *row[2:]) if row[7] in damaged else row) for row in found)


def reply(row: Row) -> StoredReply:
    """A row of the statements that read replies."""
    draft = ReplyDraft(row[0], row[7], bool(row[8]), row[9], row[10])
    return StoredReply(row[0], Lane(*row[1:5]), row[5], row[6], draft, row[11], row[12], bool(row[13]), *row[14:16])


def record(row: Row) -> Record:
    """A row of the statements that read records, whose last column (of nine) is the trust, where they read it."""
    calls = tuple(ToolCall(*call) for call in json.loads(row[2])) if row[2] else ()
    return Record(Role(row[0]), row[1], calls, row[3], row[4], attached=row[5], trust=trust_of(*row[8:9]))


def trust_of(text: str | None = None) -> Trust | None:
    """A trust as it is stored; None where none is."""
    return Trust(text) if text else None


def trace(db: SqlSession, turn_id: int) -> Json:
    """What is recorded of a turn's context and memory; None before its first step."""
    row = one(db, SQL["trace"], (turn_id,))
    unpacked: Json = json.loads(zlib.decompress(row[0])) if row else None
    return unpacked


def calls_text(of: Record) -> str:
    """The calls of a record as stored; empty when it has none."""
    return json.dumps([[call.id, call.name, call.arguments] for call in of.calls]) if of.calls else ""


TASKS = load("tasks")


def task_of(row: Row) -> task.Task:
    """A row of the columns of a task: the usage after its reason, what it waits for and its lane at the end."""
    lane = None if row[29] is None else Lane(*row[29:])
    of = (row[3], row[7], route.TaskKind(row[2]), lane, *row[4:7], route.decoded(row[8]), bool(row[9]), *row[10:21])
    return task.Task(*(*row[:2], *of, turn.Usage(*row[21:24]), *row[24:27], tuple(json.loads(row[28])), row[27]))


def tasks_of(db: SqlSession, ids: Sequence[int]) -> tuple[task.Task, ...]:
    """These tasks, by id; those that do not exist are left out."""
    return tuple(map(task_of, every(db, TASKS["of"], (db.numbers(tuple(ids)),)))) if ids else ()


def task_or_none(db: SqlSession, task_id: int) -> task.Task | None:
    return next(iter(tasks_of(db, (task_id,))), None)


def write_task_event(db: SqlSession, what: str, task_id: int, at: int, **more: Json) -> None:
    journal.write_facts(db, at, task.happened(what, task_id, **more))
