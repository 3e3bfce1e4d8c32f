"""Steps: recorded around every outside call of a turn or task; and memory writes staged until their turn ends."""

from __future__ import annotations

import json
import zlib

from pydantic_core import PydanticSerializationError, to_json

from keepsaid.adapters.sql.query import SqlSession, column, load, one, run, scalar
from keepsaid.domain.commits import StepEnd, StepStart
from keepsaid.domain.prompt import Json
from keepsaid.domain.staged import StageMemory, read_back, written
from keepsaid.domain.states import move

STAGING = load("staging")


def stage(db: SqlSession, request: StageMemory, turn_id: int) -> None:
    """Write down a memory request of a turn, or of a branch under its own id."""
    run(db, STAGING["stage"], (turn_id, request.n, written(request)))


def staged(db: SqlSession, turn_id: int | None) -> tuple[StageMemory, ...]:
    """The memory requests of a turn that are not known to be done, in order."""
    return tuple(map(read_back, column(db, STAGING["staged"], (turn_id,))))


def forget_staged(db: SqlSession, turn_id: int) -> int:
    """Delete the memory requests of a turn; returns how many there were."""
    return run(db, STAGING["forget_staged"], (turn_id,))


def done(db: SqlSession, batch_id: int) -> None:
    """Delete the memory requests of the turn that answered a batch, before its episode work is cleared."""
    run(db, STAGING["done"], (batch_id,))


STEPS = load("turns")
TASKS = load("tasks")


def start_step(db: SqlSession, commit: StepStart) -> bool:
    if not _held_turn(db, commit) and not _held_task(db, commit):
        return False
    step = commit.step
    known = scalar(db, STEPS["step_state"], (commit.turn_id, step.n))
    if known == "finished":
        return False
    if commit.trace is not None:
        packed = zlib.compress(trace_bytes(commit.trace), 1)
        db.execute(STEPS["keep_trace"], (commit.turn_id, packed, commit.at))
    if known is None:
        bound = (commit.turn_id, step.n, str(step.kind), step.subject, step.input_hash, step.repeatable, commit.at)
        db.execute(STEPS["start_step"], bound)
        return True
    db.execute(STEPS["start_again"], (commit.turn_id, step.n, step.input_hash, step.subject, step.repeatable))
    return True


def end_step(db: SqlSession, commit: StepEnd) -> bool:
    of_task = not _held_turn(db, commit)
    if of_task and not _held_task(db, commit):
        return False
    if (known := scalar(db, STEPS["step_state"], (commit.turn_id, commit.n))) is None:
        return False
    result, usage = (move("step", known, "finish"), _json(commit.output)), commit.usage
    costs = (usage.tokens_in, usage.tokens_out, usage.cost_micros, commit.at)
    db.execute(STEPS["end_step"], (commit.turn_id, commit.n, *result, *costs))
    if of_task:
        db.execute(TASKS["went_on"], (commit.turn_id,))
    return True


def _held_turn(db: SqlSession, commit: StepStart | StepEnd) -> bool:
    return one(db, STEPS["held_turn"], (commit.turn_id, commit.fence)) is not None


def _held_task(db: SqlSession, commit: StepStart | StepEnd) -> bool:
    """A step of a task has the id of the task for its turn."""
    return one(db, TASKS["held"], (commit.turn_id, commit.fence)) is not None


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def trace_bytes(trace: Json) -> bytes:
    """A trace as JSON. It is the longest text of a turn: what is plain is written by what takes a third of the time."""
    try:
        return to_json(trace, inf_nan_mode="constants")
    except PydanticSerializationError:
        return _json(trace).encode("utf-8", "backslashreplace")  # half of a surrogate pair stands in it
