"""Steps: recorded around every outside call of a turn, or of a task."""

from __future__ import annotations

import json
from dataclasses import replace

from keepsaid.adapters.ram.state import State
from keepsaid.adapters.ram.step_row import StepRow
from keepsaid.domain.commits import StepEnd, StepStart
from keepsaid.domain.states import move


def start_step(state: State, commit: StepStart) -> bool:
    """Record a call about to be made."""
    steps = state.held_steps(commit.turn_id, commit.fence)
    if steps is None:
        return False
    known = steps.get(commit.step.n)
    if known is not None and known.step.state == "finished":
        return False
    if commit.trace is not None and commit.turn_id in state.turns:
        state.turns[commit.turn_id].trace = json.dumps(commit.trace)
    if known is None:
        steps[commit.step.n] = StepRow(replace(commit.step, state="started"))
    else:
        step = commit.step
        known.step = replace(known.step, subject=step.subject, input_hash=step.input_hash, repeatable=step.repeatable)
        known.tries += 1
    return True


def end_step(state: State, commit: StepEnd) -> bool:
    """Record what a call returned."""
    row = (state.held_steps(commit.turn_id, commit.fence) or {}).get(commit.n)
    if row is None:
        return False
    finished = move("step", row.step.state, "finish")
    row.output = json.dumps(commit.output)
    row.step = replace(row.step, state=finished, usage=commit.usage)
    if (task := state.held_task(commit.turn_id, commit.fence)) is not None:
        task.put(crashes=0)
    return True
