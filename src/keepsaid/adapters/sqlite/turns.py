"""Turns: the one commit that settles a turn."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite import rows, sessions, steps
from keepsaid.adapters.sqlite.busy import SQL as BUSY
from keepsaid.adapters.sqlite.context import begin_anew
from keepsaid.adapters.sqlite.effects import leave
from keepsaid.adapters.sqlite.outbox import keep_reply
from keepsaid.adapters.sqlite.query import Row, every, numbers, one, only
from keepsaid.adapters.sqlite.routing import SQL as ROUTING
from keepsaid.adapters.sqlite.routing import refresh_ready
from keepsaid.adapters.sqlite.statements import chunks, flat, load, many
from keepsaid.adapters.sqlite.telling import tell
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.fact import answered
from keepsaid.domain.lane import Lane
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.receipt import How
from keepsaid.domain.states import move

SQL = load("turns")
_RECORD_ROW = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INJECTION_ROW = "(?, ?, ?, ?)"


def commit_turn(db: apsw.Connection, commit: TurnCommit) -> bool:
    """Settle a turn in one piece."""
    held = one(db, SQL["held_turn"], (commit.turn_id, commit.fence))
    steered = every(db, BUSY["steered"], (commit.turn_id,))
    if held is None or held[1] != commit.batch_id or tuple(row[0] for row in steered) != commit.steered:
        return False
    if commit.ending is not None and not steps.end_step(db, commit.ending):
        return False
    lane_id, before = only(db, SQL["lane_of_batch"], (commit.batch_id,))
    outcome, usage = commit.outcome, commit.outcome.usage
    db.execute(SQL["finish_batch"], (commit.batch_id, move("batch", before, "commit"), commit.at))
    settled = (move("turn", held[0], "commit"), outcome.model, usage.tokens_in, usage.tokens_out, usage.cost_micros)
    db.execute(SQL["commit_turn"], (commit.turn_id, *settled, commit.at))
    if outcome.begins_anew:
        begin_anew(db, lane_id, Lane(*only(db, SQL["lane"], (lane_id,))), commit.at)
    _keep_records(db, commit, lane_id)
    leave(db, commit, lane_id)
    if commit.reply is not None:
        keep_reply(db, lane_id, (commit.turn_id, commit.batch_id), commit.reply, commit.at)
    shown = [(How.INJECTED, memory_id) for memory_id in outcome.chosen]
    shown += [(How.OPENED, memory_id) for memory_id in outcome.opened]
    for run in chunks([(commit.turn_id, memory_id, rank, str(how)) for rank, (how, memory_id) in enumerate(shown, 1)]):
        db.execute(many(SQL["keep_injections"], _INJECTION_ROW, len(run)), flat(run))
    tell(db, commit.at, *answered(commit))
    db.execute(ROUTING["episodes_due"], (commit.batch_id, lane_id, commit.turn_id))
    for batch_id, _, _, _, _, waiting in steered:
        db.execute(SQL["finish_batch"], (batch_id, move("batch", waiting, "steer"), commit.at))
        db.execute(ROUTING["episodes_due"], (batch_id, lane_id, None))
    refresh_ready(db, lane_id)
    return True


def _keep_records(db: apsw.Connection, commit: TurnCommit, lane_id: int) -> None:
    said = every(db, SQL["speakers"], (commit.batch_id,))
    commands = {one.message_id for one in commit.outcome.obeyed}
    attached = dict(commit.outcome.attached)
    records: list[tuple[Record, str, int]] = [
        (Record(Role.USER, text, speaker=speaker, attached=attached.get(message_id, "")), f"message:{message_id}", at)
        for message_id, speaker, text, at, *_ in said
        if message_id not in commands
    ]
    records += [(record, record.ref, commit.at) for record in commit.outcome.records]
    if records and records[-1][0].role is Role.ASSISTANT:
        records[-1] = (records[-1][0], f"reply:{commit.turn_id}", commit.at)
    if commands and not records:
        return
    start = only(db, SQL["extend_transcript"], (lane_id, len(records)))[0]
    session = sessions.enter(db, commit, sessions.Grown(lane_id, start, records[0][2] if records else commit.at))
    origins = _origins(db, said, records)
    table: list[tuple[object, ...]] = [
        (lane_id, position, session[0], commit.turn_id, *_row(record), ref, at, *(origins.get(ref) or _origin(record)))
        for position, (record, ref, at) in enumerate(records, start + 1)
    ]
    for run in chunks(table):
        db.execute(many(SQL["keep_records"], _RECORD_ROW, len(run)), flat(run))
    sessions.mark_if_many(db, lane_id, session, (start + len(records), commit.at))


def _row(one: Record) -> tuple[object, ...]:
    return str(one.role), one.speaker, one.text, one.attached, rows.calls_text(one), one.call_id


def _origin(record: Record) -> tuple[object, ...]:
    """What is stored of a record that shows no message: nobody said it, and its trust is its own."""
    return "", "" if record.trust is None else str(record.trust), 0


def _origins(
    db: apsw.Connection, said: Sequence[Row], records: Sequence[tuple[Record, str, int]]
) -> dict[str, tuple[object, ...]]:
    """Who said the messages that records show: of those that joined the turn they are read."""
    origins: dict[str, tuple[object, ...]] = {f"message:{row[0]}": tuple(row[4:]) for row in said}
    joined = [ref for one, ref, _ in records if one.role is Role.USER and ref.startswith("message:")]
    missing = [int(ref.removeprefix("message:")) for ref in joined if ref not in origins]
    if missing:
        found = every(db, SQL["origins"], (numbers(missing),))
        origins.update({f"message:{row[0]}": tuple(row[1:]) for row in found})
    return origins
