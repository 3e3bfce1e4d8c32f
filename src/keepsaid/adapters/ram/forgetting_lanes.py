"""Names of lanes in the RAM store: a conversation that is forgotten as a whole loses its name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from keepsaid.adapters.ram.state import OPEN_REPLIES, LaneRow, State
from keepsaid.domain.forgetting import Wanted
from keepsaid.domain.lane import FORGOTTEN, Lane, forgotten_lane
from keepsaid.domain.message import Message
from keepsaid.domain.personality import session_scope
from keepsaid.domain.schedule import LIVE


def touched(state: State, wanted: Wanted) -> set[LaneRow]:
    """The lanes of the messages and turns that a forgetting is about."""
    messages = (state.messages[one].lane for one in wanted.messages if one in state.messages)
    turns = {state.turns[one].batch.lane for one in wanted.turns if one in state.turns}
    return {state.lanes[lane] for lane in messages} | turns


def unname(state: State, rows: Iterable[LaneRow]) -> int:
    """Take away the names of these lanes, and of others of their conversations, where nothing stays in them.

    Returns how many lost theirs.
    """
    return sum(_conversation(state, row.lane) for row in rows)


def _conversation(state: State, lane: Lane) -> int:
    beside = [row for name, row in state.lanes.items() if name[:3] == lane[:3] and not name.key.startswith(FORGOTTEN)]
    empty = [row for row in beside if not _lives(state, row)]
    first = _number(state)
    for number, row in enumerate(empty, first):
        _rename(state, row, forgotten_lane(row.lane, first, number))
    return len(empty)


def _number(state: State) -> int:
    return 1 + sum(lane.key.startswith(FORGOTTEN) for lane in state.lanes)


def _lives(state: State, row: LaneRow) -> bool:
    """Whether anything is said in a lane, waits, is at work, comes later or can come back."""
    lane = row.lane
    stays = any(one is not None and one.id not in state.forgotten for one in row.messages)
    works = bool(row.open) or any(one.state == "open" and one.batch.lane is row for one in state.turns.values())
    records = (entry.record for entry in row.transcript)
    said = any(record.text or record.attached or record.calls for record in records)
    leaves = any(one.lane == lane and one.state in OPEN_REPLIES for one in state.replies.values())
    tasks = any(one.task.lane == lane and one.task.ended_at is None for one in state.tasks.values())
    held = any(row in rows for rows in state.lanes_aside.values())
    return stays or row.batched < row.head or works or said or leaves or tasks or held or _comes(state, lane)


def _comes(state: State, lane: Lane) -> bool:
    schedules = (one for one in state.schedules.values() if one.state in LIVE)
    runs = (one.run for one in state.runs.values())
    busy = (one for one in runs if one.state in ("due", "running") or one.output in ("asked", "waiting"))
    targets = [*(one.new.target for one in schedules), *(one.target for one in busy)]
    return any(target is not None and target.lane == lane for target in targets)


def _rename(state: State, row: LaneRow, after: Lane) -> None:
    before, row.lane = row.lane, after
    state.lanes[after] = state.lanes.pop(before)
    row.messages = [None if one is None else _moved(one, after) for one in row.messages]
    state.messages |= {one.id: one for one in row.messages if one is not None and one.id in state.messages}
    for reply in state.replies.values():
        reply.lane = after if reply.lane == before else reply.lane
    for finding in state.findings.values():
        if finding.finding.lane == before:
            finding.finding = replace(finding.finding, lane=after)
    for task in state.tasks.values():
        if task.task.lane == before:
            task.put(lane=after)
    state.named = {target: found for target, found in state.named.items() if found[2] != before}
    state.feedback = {at: (after if lane == before else lane, one) for at, (lane, one) in state.feedback.items()}
    state.personalities.pop(session_scope(before), None)
    state.summaries_due.pop(before, None)
    _untarget(state, before, after)


def _untarget(state: State, before: Lane, after: Lane) -> None:
    for schedule in state.schedules.values():
        if schedule.new.target is not None and schedule.new.target.lane == before:
            schedule.new = replace(schedule.new, target=replace(schedule.new.target, lane=after))
    for one in state.runs.values():
        if one.run.target is not None and one.run.target.lane == before:
            one.run = replace(one.run, target=replace(one.run.target, lane=after))


def _moved(message: Message, lane: Lane) -> Message:
    origin = replace(message.inbound.origin, conversation=lane.conversation)
    return replace(message, lane=lane, inbound=replace(message.inbound, origin=origin))
