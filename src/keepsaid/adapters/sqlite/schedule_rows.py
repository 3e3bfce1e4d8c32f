"""Rows of schedules and runs, as the domain knows them."""

from __future__ import annotations

from keepsaid.adapters.sqlite.query import Row
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Trust
from keepsaid.domain.schedule import NewSchedule, Run, Schedule, Target, What
from keepsaid.domain.timing import timing_of, written

_NOWHERE = (None, None, None, None, None, False)


def schedule_of(row: Row) -> Schedule:
    """A schedule of the columns that `parts.sql` names."""
    number, source, name, timing, what, text = row[:6]
    trust, urgent, whenever, state, next_at, failures, reason, created_at = row[12:]
    asked = number, source, name, timing_of(timing), What(what), text
    new = NewSchedule(*asked, _target(row[6:12]), Trust(trust), bool(urgent), bool(whenever))
    return Schedule(new, state, next_at, failures, reason, created_at)


def run_of(row: Row) -> Run:
    """A run of the columns that `parts.sql` names."""
    message_id, reply_id, reason, fired_at, ended_at, task_id = row[11:]
    schedule_id, due_at, state, ready_at, output = row[:5]
    heard = output, _target(row[5:11]), message_id, reply_id
    return Run(schedule_id, due_at, state, ready_at, *heard, reason, fired_at, ended_at, task_id)


def _target(row: Row) -> Target | None:
    channel, account, conversation, key, url, direct = row
    return None if channel is None else Target(Lane(channel, account, conversation, key), url, bool(direct))


def place_of(target: Target | None) -> tuple[object, ...]:
    """The columns of who hears of it."""
    return _NOWHERE if target is None else (*target.lane, target.url, target.direct)


def content_of(new: NewSchedule) -> tuple[object, ...]:
    """The columns of what is asked for, from `what` to `whenever`."""
    asked = str(new.what), written(new.timing), new.text
    return (*asked, *place_of(new.target), str(new.trust), new.urgent, new.whenever)
