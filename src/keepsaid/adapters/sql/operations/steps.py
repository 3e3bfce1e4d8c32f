"""Steps: recorded around every outside call of a turn or task; and memory writes staged until their turn ends."""

from __future__ import annotations

import json
import zlib

from pydantic_core import PydanticSerializationError, to_json

from keepsaid.adapters.sql.query import every, load, one, run
from keepsaid.adapters.sql.session import SqlSession
from keepsaid.domain.commits import StepEnd, StepStart
from keepsaid.domain.prompt import Json
from keepsaid.domain.staged import StageMemory, read_back, written
from keepsaid.domain.states import move

SQL = load("staging")


def stage(db: SqlSession, deed: StageMemory, turn_id: int) -> None:
    """Write down what a turn, or a branch under its own id, asked memory to do."""
    run(db, SQL["stage"], (turn_id, deed.n, written(deed)))


def staged(db: SqlSession, turn_id: int | None) -> tuple[StageMemory, ...]:
    """What a turn asked memory to do and is not known to be done, in order."""
    return tuple(read_back(text) for (text,) in every(db, SQL["staged"], (turn_id,)))


def forget_staged(db: SqlSession, turn_id: int) -> int:
    """Nothing is staged any more; returns how many deeds were."""
    return run(db, SQL["forget_staged"], (turn_id,))


def done(db: SqlSession, batch_id: int) -> None:
    """The turn that answered a batch has nothing staged any more; before its episode work is cleared."""
    run(db, SQL["done"], (batch_id,))


STEPS = load("turns")
TASKS = load("tasks")
_TURN, _TASK = "turn", "task"


def start_step(db: SqlSession, commit: StepStart) -> bool:
    """Record a call about to be made."""
    if _holder(db, commit.turn_id, commit.fence) is None:
        return False
    step = commit.step
    known = one(db, STEPS["step_state"], (commit.turn_id, step.n))
    if known is not None and known[0] == "finished":
        return False
    if commit.trace is not None:
        _keep_trace(db, commit.turn_id, commit.trace, commit.at)
    if known is None:
        bound = (commit.turn_id, step.n, str(step.kind), step.subject, step.input_hash, step.repeatable, commit.at)
        db.execute(STEPS["start_step"], bound)
        return True
    db.execute(STEPS["start_again"], (commit.turn_id, step.n, step.input_hash, step.subject, step.repeatable))
    return True


def end_step(db: SqlSession, commit: StepEnd) -> bool:
    """Record what a call returned."""
    holder = _holder(db, commit.turn_id, commit.fence)
    if holder is None:
        return False
    known = one(db, STEPS["step_state"], (commit.turn_id, commit.n))
    if known is None:
        return False
    state = move("step", known[0], "finish")
    usage = commit.usage
    costs = (usage.tokens_in, usage.tokens_out, usage.cost_micros)
    db.execute(STEPS["end_step"], (commit.turn_id, commit.n, state, _json(commit.output), *costs, commit.at))
    if holder == _TASK:
        db.execute(TASKS["went_on"], (commit.turn_id,))
    return True


def _holder(db: SqlSession, turn_id: int, fence: int) -> str | None:
    """What is held under this fence: an open turn, or a running task, whose id stands for its turn."""
    if one(db, STEPS["held_turn"], (turn_id, fence)) is not None:
        return _TURN
    return _TASK if one(db, TASKS["held"], (turn_id, fence)) is not None else None


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _keep_trace(db: SqlSession, turn_id: int, trace: Json, at: int) -> None:
    db.execute(STEPS["keep_trace"], (turn_id, zlib.compress(trace_bytes(trace), 1), at))


def trace_bytes(trace: Json) -> bytes:
    """A trace as JSON. It is the longest text of a turn: what is plain is written by what takes a third of the time."""
    try:
        return to_json(trace, inf_nan_mode="constants")
    except PydanticSerializationError:
        return _json(trace).encode("utf-8", "backslashreplace")  # half of a surrogate pair stands in it
