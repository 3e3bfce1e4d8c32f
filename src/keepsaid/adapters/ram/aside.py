"""Aside in the RAM store: what a forgetting that can be undone took away, row by row."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from keepsaid.adapters.ram.state import LaneRow, State
from keepsaid.domain.forgetting import DropAside

Rows = dict[Any, Any]


def _images(state: State) -> dict[str, Rows]:
    """Every row that forgetting may change, by table and key."""
    records = {(lane, at): one for lane, row in state.lanes.items() for at, one in enumerate(row.transcript)}
    turns = {one.id: (one.reason, dict(one.steps), one.trace, one.chosen, one.opened) for one in state.turns.values()}
    return {
        "message": dict(state.messages),
        "redaction": dict(state.redactions),
        "record": {**records},
        "turn": {**turns},
        "feedback": {**state.feedback},
        "finding": {number: row.finding for number, row in state.findings.items()},
        "task": {number: (row.task, row.steps, row.remembered) for number, row in state.tasks.items()},
        "personality": dict(state.personalities),
        "note": dict(state.notes),
        "schedule": {number: (row.new, row.state, row.reason) for number, row in state.schedules.items()},
    }


@contextmanager
def kept_aside(state: State, number: int) -> Iterator[None]:
    """Keep what the block takes away, where the forgetting can be undone."""
    row = state.forgettings.get(number)
    if row is None or row.undo_until is None:
        yield
        return
    before, tombs = _images(state), set(state.tombs)
    yield
    after = _images(state)
    gone = {
        name: {key: was for key, was in rows.items() if after[name].get(key) != was} for name, rows in before.items()
    }
    state.aside.setdefault(number, []).append((gone, frozenset(state.tombs - tombs)))


def put_back(state: State, number: int) -> dict[int, tuple[LaneRow, int]]:
    """Put back what was kept, the last first; returns the lanes, each with the first position that came back."""
    first: dict[int, tuple[LaneRow, int]] = {}
    for images, tombs in reversed(state.aside.pop(number, [])):
        for message_id, message in images["message"].items():
            if message_id in state.messages:
                state.messages[message_id] = state.lanes[message.lane].messages[message.number - 1] = message
                state.forgotten.pop(message_id, None)
        for (lane, at), entry in images["record"].items():
            row = state.lanes[lane]
            row.transcript[at] = entry
            first[id(row)] = row, min(at + 1, first.get(id(row), (row, at + 1))[1])
        for turn_id, was in images["turn"].items():
            if turn_id in state.turns:
                turn = state.turns[turn_id]
                turn.reason, turn.steps, turn.trace, turn.chosen, turn.opened = was
        for finding_id, finding in images["finding"].items():
            state.findings[finding_id].finding = finding
        _put_back_work(state, images)
        state.redactions |= images["redaction"]
        state.feedback |= images["feedback"]
        state.personalities |= images["personality"]
        state.notes |= images["note"]
        state.tombs -= tombs
    for_good(state, number)
    return first


def _put_back_work(state: State, images: dict[str, Rows]) -> None:
    for task_id, was in images["task"].items():
        if task_id in state.tasks:
            task = state.tasks[task_id]
            task.task, task.steps, task.remembered = was
    for schedule_id, was in images["schedule"].items():
        if schedule_id in state.schedules:
            schedule = state.schedules[schedule_id]
            schedule.new, schedule.state, schedule.reason = was


def for_good(state: State, number: int) -> None:
    """Nothing of it can be undone any more."""
    row = state.forgettings.get(number)
    if row is not None:
        state.forgettings[number] = replace(row, undo_until=None)


def drop_rows(state: State, commit: DropAside) -> bool:
    """Delete what was kept aside; known to be gone once the logs are empty."""
    if commit.emptied:
        for_good(state, commit.id)
    return bool(state.aside.pop(commit.id, []))
