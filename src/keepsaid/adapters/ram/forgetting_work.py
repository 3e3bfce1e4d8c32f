"""What a wish reaches of tasks, schedules and what turns wrote in the RAM store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence

from keepsaid.adapters.ram import schedules
from keepsaid.adapters.ram.state import ReplyRow, State
from keepsaid.domain.forgetting import Wish, Work
from keepsaid.domain.ids import show
from keepsaid.domain.message import RESULT
from keepsaid.domain.prompt import Role
from keepsaid.domain.relay import told_by

_ASKED_FOR = ("agent", "command")


def work_named(state: State, wish: Wish) -> Work:
    """Tasks, schedules and turns in whose words the text of a wish stands, and schedules into its conversation."""
    known = [row for row in state.schedules.values() if row.new.source in _ASKED_FOR]
    into = [row.new.id for row in known if row.new.target and row.new.target.lane.conversation == wish.conversation]
    found = into if wish.conversation else []
    if not wish.text:
        return _work(state, (), found)
    text = wish.text.casefold()

    def holds(*words: str) -> bool:
        return text in " ".join(words).casefold()

    found += [row.new.id for row in known if holds(row.new.name, row.new.text, row.reason)]
    tasks = [
        one.id
        for one in state.tasks.values()
        if holds(one.key, one.task.description, one.task.status, one.task.result, one.task.reason)
    ]
    outputs = ((turn.id, json.dumps(one.output)) for turn in state.turns.values() for one in turn.steps.values())
    return _work(state, tasks, found, _wrote(state, holds), [turn for turn, output in outputs if holds(output)])


def _wrote(state: State, holds: Callable[..., bool]) -> Iterator[int]:
    for lane in state.lanes.values():
        for entry in lane.transcript:
            calls = " ".join(str(call.arguments) for call in entry.record.calls)
            if entry.record.role is not Role.USER and holds(entry.record.text, calls):
                yield entry.turn_id
    for reply in state.replies.values():
        if reply.turn_id is not None and holds(reply.draft.text):
            yield reply.turn_id


def work_made(state: State, messages: Sequence[int], turns: Sequence[int]) -> Work:
    """Tasks that were made of these messages or by these turns, and schedules that the turns asked for."""
    tasks = [one.id for one in state.tasks.values() if one.task.turn_id in turns]
    for number in messages:
        message = state.messages.get(number)
        batch = None if message is None else state.lanes[message.lane].batch_of(message.number)
        tasks += [batch.task_id] if batch is not None and batch.task_id is not None else []
    return _work(state, tasks, [one for one, row in state.schedules.items() if row.turn_id in turns])


def notices_of(state: State, task_id: int) -> list[ReplyRow]:
    """The notices to the owner that name a task."""
    name = show("task", task_id)
    unasked = (one for one in state.replies.values() if one.turn_id is None and one.draft.notice)
    return [one for one in unasked if name in one.draft.text]


def _work(
    state: State,
    tasks: Iterable[int],
    known: Iterable[int],
    turns: Iterable[int] = (),
    traces: Iterable[int] = (),
) -> Work:
    done, named, wrote = (tuple(dict.fromkeys(ids)) for ids in (tasks, known, turns))
    asked = tuple(message for one in named for message in schedules.asked_by(state, one))
    results = (one for one in state.messages.values() if one.inbound.content.event == RESULT)
    asked += tuple(one.id for one in results if told_by(one.inbound.marks.external_id) in done)
    held = tuple(one for one in dict.fromkeys(traces) if one not in wrote)
    return Work(done, named, asked, wrote, held)
