"""Tasks: made, claimed, decided and ended; those that wait for others."""

from __future__ import annotations

import json
from collections import deque

from keepsaid.adapters.sql.operations import outbox, routing
from keepsaid.adapters.sql.operations.rows import TASKS, task_or_none, tasks_of, write_task_event
from keepsaid.adapters.sql.query import SqlSession, column, every, one, only, run
from keepsaid.domain import effects, ids, relay, route
from keepsaid.domain import task as domain
from keepsaid.domain.message import Lane
from keepsaid.domain.states import move
from keepsaid.domain.turn import Usage

_LOST = ("failed", "cancelled")


def create(db: SqlSession, commit: domain.CreateTasks) -> str:
    ordered, refused = domain.planned(commit.tasks)
    if refused:
        return refused
    made = {task.id for task in ordered}
    for task in ordered:
        others = [number for number in task.after if number not in made]
        known = {found.id: found.state for found in tasks_of(db, others)}
        for number in others:
            if (state := known.get(number)) is None or state in _LOST:
                return f"{ids.show('task', number)} {'does not exist' if state is None else f'is {state}'}"
    for task in ordered:
        keep(db, task, commit.at)
    return ""


def keep(db: SqlSession, task: domain.NewTask, at: int, *, relays: bool = True) -> None:
    """Write one down: it is pending, blocked while it waits for others, or failed with one of them, or too deep.

    What a turn asked for in its lane comes back there by itself, unless it is not to (`relays`). A call that waits for
    approval is not made where the same one waits or runs already.
    """
    if task.review and task.kind is route.TaskKind.CALL and one(db, TASKS["same_call"], (task.key,)) is not None:
        return
    states = dict.fromkeys(task.after, "failed") | {found.id: found.state for found in tasks_of(db, task.after)}
    lost = next((number for number, state in states.items() if state in _LOST), None)
    waits = any(state != "completed" for state in states.values())
    reason = "" if lost is None else f"{ids.show('task', lost)}, which it waits for, came to nothing"
    reason = domain.TOO_DEEP if task.depth > domain.DEPTH_MAX else reason
    state = "failed" if reason else "needs_review" if task.review else "blocked" if waits else "pending"
    reason = reason or task.review
    at_end = at if state == "failed" else None
    lane_id = None if task.lane is None else routing.lane_id_of(db, task.lane)
    place = (task.id, task.key or ids.show("task", task.id), str(task.kind), state, lane_id, task.turn_id, task.depth)
    what = (task.description, route.encoded(task.terms), task.outside, task.priority)
    is_relayed = relays and lane_id is not None and task.turn_id is not None
    db.post(TASKS["keep"], (*place, *what, reason, at, at_end, is_relayed, task.expires_at))
    if task.after:
        db.post(TASKS["keep_after"], (task.id, db.numbers(task.after)))
    write_task_event(db, "created", task.id, at, kind=str(task.kind), after=len(task.after))
    if state == "failed":
        write_task_event(db, "failed", task.id, at, attempts=0, **({} if lost is None else {"upstream": lost}))
    elif state == "needs_review":
        write_task_event(db, state, task.id, at, attempts=0)
        if task.notice is not None:
            outbox.keep_for_owner(db, task.notice, at, task.id)


def end(db: SqlSession, commit: domain.EndTask) -> str:
    if (task := task_or_none(db, commit.task_id)) is None or task.fence != commit.fence or task.state != "running":
        return ""
    if commit.ending is not None and not outbox.end_step(db, commit.ending):
        return ""
    now = domain.settled(task, commit)
    counts = (now.attempts, now.crashes, now.ready_at, now.deferrals, now.deferred_from)
    db.post(TASKS["end"], (task.id, now.state, now.result, now.reason, *counts, now.ended_at))
    if commit.how is not domain.TaskEnd.RELEASE:
        _spend(db, task.id, now.usage)
    for effect in commit.effects if now.state == "completed" else ():
        if isinstance(effect, effects.MakeTask):
            keep(db, domain.made_of(effect, task.lane, task.turn_id, task.depth + 1), commit.at)
        else:
            outbox.stage(db, effect, task.id)
            db.post(TASKS["to_remember"], (task.id,))
    if now.state != "pending":
        write_task_event(db, now.state, task.id, commit.at, attempts=now.attempts)
        ended(db, task.id, now.state, now.reason, commit.at)
        if commit.notice is not None and now.notifies_owner:
            outbox.keep_for_owner(db, commit.notice, commit.at, task.id)
        if commit.answer is not None and now.state == "completed":
            outbox.keep_for_task(db, task.id, commit.answer, commit.at)
    return now.state


def _spend(db: SqlSession, task_id: int, usage: Usage) -> None:
    """Record the usage of a task so far, and count what is new of it in the totals of the store."""
    spent = task_id, usage.tokens_in, usage.tokens_out, usage.cost_micros
    for statement in ("count_spent", "spent"):
        db.post(TASKS[statement], spent)


def ended(db: SqlSession, task_id: int, state: str, reason: str, at: int) -> None:
    """Unblock the tasks that waited for a completed task; those that waited for a lost one fail with it."""
    if state == "completed":
        for waiting, before in every(db, TASKS["freed"], (task_id,)):
            db.post(TASKS["go"], (waiting, move("task", before, "unblock"), "", None))
        return
    why = f"{ids.show('task', task_id)}, which it waits for, was {state}: {reason}"
    lost = deque([task_id] if state in _LOST else [])
    while lost:
        for waiting, before in every(db, TASKS["waiting"], (lost.popleft(),)):
            db.post(TASKS["go"], (waiting, move("task", before, "cascade"), why, at))
            write_task_event(db, "failed", waiting, at, attempts=0, upstream=task_id)
            lost.append(waiting)


def void(db: SqlSession, owner: str, at: int, *, at_once: bool) -> None:
    """Count a crash for each task that a dead owner ran; its terms decide what follows.

    `at_once`, what waits for a time is due.
    """
    for task in tasks_of(db, column(db, TASKS["in_flight"], (owner,))):
        left = one(db, TASKS["call_left"], (task.id,)) is not None
        _spend(db, task.id, Usage(*only(db, TASKS["spent_in_steps"], (task.id,))))
        verb, reason = domain.verb_after_crash(task, call_left=left)
        state = move("task", task.state, verb)
        ended_at = at if state == "failed" else None
        db.post(TASKS["crashed"], (task.id, state, task.crashes + 1, reason, at, ended_at))
        if state != "pending":
            write_task_event(db, state, task.id, at, attempts=task.attempts)
            ended(db, task.id, state, reason, at)
    if at_once:
        db.post(TASKS["all_soon"], (at,))


def give_back(db: SqlSession, statement: str, bound: object, verb: str) -> int:
    """Queue again the tasks that are `expired` at a time or `owned` by an owner; returns how many."""
    found = column(db, TASKS[statement], (bound,))
    for task_id in found:
        db.post(TASKS["back"], (task_id, move("task", "running", verb)))
    return len(found)


def claim(db: SqlSession, commit: domain.ClaimTasks) -> tuple[domain.Task, ...]:
    """Lease tasks that are due; of one key only one at a time."""
    found = column(db, TASKS["due"], (str(commit.kind), commit.at, commit.limit))
    known = {task.id: task for task in tasks_of(db, found)}
    first: dict[str, domain.Task] = {}
    for task in (known[task_id] for task_id in found):
        if first.setdefault(task.key, task) is task:
            state = move("task", task.state, "start")
            db.post(TASKS["claim"], (task.id, state, commit.owner, commit.lease_until, commit.at))
            write_task_event(db, "started", task.id, commit.at, attempt=task.attempts + 1)
    taken = {task.id: task for task in tasks_of(db, [task.id for task in first.values()])}
    return tuple(taken[task.id] for task in first.values())


def renew(db: SqlSession, commit: domain.RenewTask) -> bool:
    return run(db, TASKS["renew"], (commit.task_id, commit.fence, commit.lease_until)) == 1


def status(db: SqlSession, commit: domain.TellStatus) -> bool:
    return run(db, TASKS["status"], (commit.task_id, commit.fence, commit.text)) == 1


def run_now(db: SqlSession, commit: domain.RunTask) -> bool:
    return run(db, TASKS["soon"], (commit.task_id, commit.at)) == 1


def cancel(db: SqlSession, commit: domain.CancelTask) -> bool:
    if (task := task_or_none(db, commit.task_id)) is None or task.state in domain.ENDED:
        return False
    db.post(TASKS["go"], (task.id, move("task", task.state, "cancel"), commit.reason, commit.at))
    write_task_event(db, "cancelled", task.id, commit.at)
    ended(db, task.id, "cancelled", commit.reason, commit.at)
    return True


def expire_tasks(db: SqlSession, commit: domain.ExpireTasks) -> int:
    overdue = column(db, TASKS["overdue"], (commit.at,))
    for task_id in overdue:
        decide(db, domain.DecideTask(task_id, commit.at, False, domain.CALL_EXPIRED))
    return len(overdue)


def decide(db: SqlSession, commit: domain.DecideTask) -> bool:
    if (task := task_or_none(db, commit.task_id)) is None or task.state != "needs_review":
        return False
    if commit.approved and task.expires_at is not None and task.expires_at <= commit.at:
        return False
    if not commit.approved:
        db.post(TASKS["go"], (task.id, move("task", task.state, "fail"), commit.reason, commit.at))
        write_task_event(db, "failed", task.id, commit.at, attempts=task.attempts)
        ended(db, task.id, "failed", commit.reason, commit.at)
        return True
    left = one(db, TASKS["call_left"], (task.id,))
    if left is not None and commit.result is None:
        db.post(TASKS["forget_call"], (task.id, left[0]))
    elif left is not None:
        state = move("step", "started", "finish")
        db.post(TASKS["end_call"], (task.id, left[0], state, json.dumps(commit.result), commit.at))
    db.post(TASKS["anew"], (task.id, move("task", task.state, "approve"), commit.at))
    return True


def apply_effect(db: SqlSession, effect: effects.OfTask, lane: Lane, made_by: tuple[int, int]) -> None:
    """Apply what a turn requested of tasks; `made_by` is the id of the turn and the time (milliseconds UTC)."""
    turn_id, at = made_by
    match effect:
        case effects.MakeTask():
            keep(db, domain.made_of(effect, lane, turn_id, 1), at)
        case effects.StopTask():
            cancel(db, domain.CancelTask(effect.task_id, at, effect.reason))
        case effects.JudgeTask():
            decide(db, domain.DecideTask(effect.task_id, at, effect.approved, effect.reason))
        case effects.RelayTask():
            db.post(TASKS["relay"], (effect.task_id, routing.lane_id_of(db, lane)))


def mark_tasks_reported(db: SqlSession, commit: relay.MarkTasksReported) -> int:
    return run(db, TASKS["tell_back"], (db.numbers(commit.task_ids), commit.at))


def kept(db: SqlSession, commit: domain.ResultsKept) -> int:
    for task_id in commit.task_ids:
        outbox.forget_staged(db, task_id)
    return run(db, TASKS["remembered"], (db.numbers(commit.task_ids),))


def scrub(db: SqlSession, task_id: int, at: int) -> bool:
    """Forget the words of a task and of its steps; one that has not ended is cancelled. False when there were none."""
    if (task := task_or_none(db, task_id)) is None or not task.description:
        return False
    cancel(db, domain.CancelTask(task_id, at, domain.FORGOTTEN))
    for statement in ("scrub", "forget_steps"):
        db.post(TASKS[statement], (task_id,))
    outbox.forget_staged(db, task_id)
    return True


def scrub_made_by(db: SqlSession, turn_id: int, at: int) -> int:
    return sum(scrub(db, task_id, at) for task_id in column(db, TASKS["made_by"], (turn_id,)))
