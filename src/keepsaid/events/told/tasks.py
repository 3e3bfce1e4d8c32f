"""What is told of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.domain.work import TaskKind
from keepsaid.events.schema import Schema, an_id, number, word

_TASK = an_id("task", "its id")
_ATTEMPTS = number("attempts that were charged to it")

TASKS: Mapping[str, Schema] = MappingProxyType(
    {
        "task.created": Schema(
            "Work was written down, by a rule or by somebody's word.",
            "task",
            {
                "task": _TASK,
                "kind": word("who is to do it", *TaskKind),
                "after": number("how many tasks must be completed first"),
            },
        ),
        "task.started": Schema(
            "Somebody began to work on it, or began again.",
            "task",
            {"task": _TASK, "attempt": number("which attempt that is, from 1; what is not charged does not count")},
        ),
        "task.completed": Schema("It was done; its result is on disk.", "task", {"task": _TASK, "attempts": _ATTEMPTS}),
        "task.failed": Schema(
            "It came to nothing, or what it waits for did.",
            "task",
            {"task": _TASK, "attempts": _ATTEMPTS, "upstream": an_id("task", "the one that failed before it").if_any()},
        ),
        "task.cancelled": Schema("Somebody ended it.", "task", {"task": _TASK}),
        "task.needs_review": Schema(
            "It waits for a person's word: a call that must not be repeated may have been made.",
            "task",
            {"task": _TASK, "attempts": _ATTEMPTS},
        ),
    }
)
"""Topics that begin with `task.`."""
