"""Graphs of tasks: each ends once, what waits follows, and a circle is refused with nothing made."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.domain.process import VoidLeases
from keepsaid.domain.task import ENDED, CancelTask, Cycle, EndTask, NewTask, TaskEnd, waves
from keepsaid_testkit.contracts.store_driver import ContractStore
from keepsaid_testkit.contracts.tasks import TaskDriver

_FATES = ("complete", "complete", "complete", "fail", "retry", "crash", "cancel", "release")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[NewTask, ...]:
    """Tasks that wait for some that were drawn before them, in any order."""
    count = draw(st.integers(1, 9))
    made = []
    for number in range(1, count + 1):
        after = draw(st.sets(st.integers(1, number - 1), max_size=3)) if number > 1 else set()
        made.append(NewTask(number, f"do {number}", after=tuple(after), priority=draw(st.sampled_from((10, 50)))))
    return tuple(draw(st.permutations(made)))


@given(graphs(), st.lists(st.sampled_from(_FATES), min_size=60, max_size=60))
@settings(max_examples=60, deadline=None)
def test_every_task_of_a_graph_ends_once_in_memory(tasks: tuple[NewTask, ...], fates: list[str]) -> None:
    asyncio.run(_played(InMemoryOperations(), tasks, fates))


@given(graphs(), st.lists(st.sampled_from(_FATES), min_size=60, max_size=60))
@settings(max_examples=12, deadline=None)
def test_every_task_of_a_graph_ends_once_on_disk(tasks: tuple[NewTask, ...], fates: list[str]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(_on_disk(Path(folder), tasks, fates))


async def _on_disk(folder: Path, tasks: tuple[NewTask, ...], fates: list[str]) -> None:
    store = await open_operations(folder / "buffer.db")
    try:
        await _played(store, tasks, fates)
    finally:
        await store.close()


async def _played(store: ContractStore, tasks: tuple[NewTask, ...], fates: list[str]) -> None:
    desk, left = TaskDriver(store), iter(fates)
    assert await desk.make(*tasks) == ""
    while taken := await desk.claim(limit=1):
        [task] = taken
        states = await desk.states()
        assert all(states[one] == "completed" for one in task.after)
        fate = next(left, "complete")
        if fate == "crash":
            await store.apply(VoidLeases("one more", 0, "died", ()))
            if (await desk.now(task.id)).state == "needs_review":
                await store.apply(CancelTask(task.id, 0, "enough"))
        elif fate == "cancel":
            await store.apply(CancelTask(task.id, 0, "not wanted"))
            assert await desk.end(task) == ""
        else:
            await store.apply(EndTask(task.id, task.fence, TaskEnd(fate), 0, fate))
    states = await desk.states()
    assert set(states.values()) <= set(ENDED)
    told = Counter((one.correlation_id, one.topic) for one in await store.journal.events(0, 9_000))
    ends = Counter({key: n for key, n in told.items() if key[1].removeprefix("task.") in ENDED})
    assert ends == {(str(number), f"task.{state}"): 1 for number, state in states.items()}
    for new in tasks:
        lost = [one for one in new.after if states[one] != "completed"]
        reason = (await desk.now(new.id)).reason
        assert not lost or (states[new.id] == "failed" and "which it waits for" in reason)


@given(graphs(), st.data())
def test_a_circle_is_refused(tasks: tuple[NewTask, ...], data: st.DataObject) -> None:
    order = [task for wave in waves(tasks) for task in wave]
    assert {task.id for task in order} == {task.id for task in tasks}
    known = {task.id: set(task.after) for task in tasks}
    first, last = data.draw(st.sampled_from(tasks)), data.draw(st.sampled_from(tasks))
    if last.id in _reached(known, first.id):
        closed = [NewTask(t.id, "x", after=(*t.after, *((first.id,) if t is last else ()))) for t in tasks]
        with pytest.raises(Cycle) as circle:
            waves(closed)
        path = circle.value.path
        assert path[0] == path[-1]
        waits_for = {one.id: one.after for one in closed}
        assert all(later in waits_for[earlier] for earlier, later in pairwise(path))
        assert "wait for one another" in _run(TaskDriver(InMemoryOperations()).make(*closed))


def _reached(known: dict[int, set[int]], start: int) -> set[int]:
    """The task itself, and all it waits for."""
    found, left = set[int](), [start]
    while left:
        one = left.pop()
        if one not in found:
            found.add(one)
            left += known[one]
    return found


def _run(work: Coroutine[object, object, str]) -> str:
    return asyncio.run(work)
