"""Tasks as JSON, the same by command, over HTTP and in the library."""

from __future__ import annotations

from typing import Any

from keepsaid.domain.ids import show, when
from keepsaid.domain.task import Task, TaskStory

Shape = dict[str, Any]

NO_MODEL_YET = "no model is set: it waits until there is one (keepsaid init)"


def task_shape(task: Task) -> Shape:
    """A task as it stands."""
    terms = task.terms
    return {
        "id": show("task", task.id),
        "key": task.key,
        "kind": str(task.kind),
        "state": task.state,
        "rule": task.rule or None,
        "turn": show("turn", task.turn_id) if task.turn_id is not None else None,
        "depth": task.depth,
        "description": task.description,
        "messages": task.messages,
        "priority": task.priority,
        "after": [show("task", one) for one in task.after],
        "attempts": task.attempts,
        "crashes": task.crashes,
        "status": task.status or None,
        "result": task.result or None,
        "reason": task.reason or None,
        "skill": terms.skill or None,
        "model": terms.model or None,
        "tools": None if terms.tools is None else list(terms.tools),
        "notify": str(terms.notify),
        "tokens_in": task.usage.tokens_in,
        "tokens_out": task.usage.tokens_out,
        "created_at": when(task.created_at),
        "started_at": when(task.started_at),
        "ended_at": when(task.ended_at),
        "next_try_at": when(task.ready_at) if task.state == "pending" and task.ready_at else None,
    }


def task_story_shape(story: TaskStory) -> Shape:
    """A task with what its worker did so far, and those that wait for it."""
    steps = [
        {"n": one.n, "kind": str(one.kind), "subject": one.subject, "state": one.state, "again": one.repeatable}
        for one in story.steps
    ]
    waiting = [show("task", one) for one in story.waiting]
    return {**task_shape(story.task), "steps": steps, "waiting": waiting}
