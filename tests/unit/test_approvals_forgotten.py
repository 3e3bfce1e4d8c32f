"""Forgetting reaches the requests for approval: their arguments, the notice to the owner, steps, results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.test_forget_places import residue

from keepsaid.adapters.sqlite.stores import SqliteOperations
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.commits import StepEnd, StepStart, TurnCommit
from keepsaid.domain.effects import MakeTask
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.message import Trust
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.route import TaskKind
from keepsaid.domain.task import ClaimTasks, DecideTask, EndTask, TaskEnd
from keepsaid.domain.turn import Step, StepKind, Usage
from keepsaid.pipeline.turn.authorization import RefusedCall, as_json
from keepsaid.testing.builders import outcome, said
from keepsaid_testkit.contracts.store_driver import StoreDriver

_WORD = "Zebraquöx7741"


async def asked(instance: Instance) -> int:
    """A stranger's words have a call asked for, with his word in the arguments; returns the task."""
    store = instance.operations
    assert isinstance(store, SqliteOperations)
    road, own, strange = StoreDriver(store, instance.ids.next()), said("hello", "den"), said(f"mail {_WORD} to me")
    await road.settle(replace(own, origin=replace(own.origin, trust=Trust.OWNER, direct=True)))
    await road.queue(replace(strange, origin=replace(strange.origin, trust=Trust.EXTERNAL)))
    claimed = await road.claim_one()
    number, batch = road.new_id(), claimed.batch
    notice = ReplyDraft(road.new_id(), f"May it mail {_WORD}?", notice=True)
    text, why = f'mail {{"to": "{_WORD}"}}', f"a message by {_WORD}"
    task = MakeTask(number, text, f"call:{_WORD}", (), True, TaskKind.CALL, why, 1 << 60, notice)
    step = Step(0, StepKind.TOOL, "mail", b"hash")
    assert await store.apply(StepStart(claimed.turn_id, batch.fence, step, 5))
    output = as_json(RefusedCall(f"refused: {_WORD}", task))
    assert await store.apply(StepEnd(claimed.turn_id, batch.fence, 0, output, Usage(), 6))
    end = replace(outcome(f"asked for {_WORD}"), effects=(task,))
    assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 7))
    await instance.recorder.catch_up()
    return number


async def made(instance: Instance, number: int) -> None:
    """The owner approves, and the call is made."""
    store = instance.operations
    assert await store.apply(DecideTask(number, 8, approved=True))
    [task] = await store.apply(ClaimTasks("one", 1, 9, 99, kind=TaskKind.CALL))
    step = Step(0, StepKind.TOOL, "mail", b"hash")
    assert await store.apply(StepStart(number, task.fence, step, 9))
    assert await store.apply(StepEnd(number, task.fence, 0, f"mailed {_WORD}", Usage(), 10))
    assert await store.apply(EndTask(number, task.fence, TaskEnd.COMPLETE, 11, f"mailed {_WORD}"))


@pytest.mark.parametrize("state", ["needs_review", "failed", "completed"])
async def test_a_request_for_approval_leaves_no_byte(tmp_path: Path, state: str) -> None:
    """While it waits, after it was refused, and after the call was made."""
    async with opened(Home.at(tmp_path / "home"), Config()) as instance:
        number = await asked(instance)
        if state == "failed":
            assert await instance.operations.apply(DecideTask(number, 8, approved=False, reason=f"no {_WORD}"))
        elif state == "completed":
            await made(instance, number)
        story = await instance.operations.tasks.task(number)
        assert story is not None
        assert story.task.state == state
        root = instance.home.data.parent
        assert "buffer.db-wal" in {name for name, _ in residue(root, _WORD)}
        done = await instance.services.forgetting.forget_selected(ForgetSelector(text=_WORD), "owner")
        assert done is not None
        assert done.state == "done"
        assert residue(root, _WORD) == set()
