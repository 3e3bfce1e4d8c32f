"""Work: how a task is to be done, whatever it is about."""

from __future__ import annotations

import json
from dataclasses import asdict
from enum import StrEnum

from keepsaid.values import frozen


class TaskKind(StrEnum):
    """Who does a task: a worker sees the task alone, a branch a copy of its lane's history too (seed 001).

    A `call` is one tool call that a turn was refused: it is made as it stands once the owner has approved it.
    """

    WORKER = "worker"
    BRANCH = "branch"
    CALL = "call"


class OnCrash(StrEnum):
    """What becomes of a task that was running when the process died."""

    REQUEUE = "requeue"
    FAIL = "fail"
    REVIEW = "review"


class Notify(StrEnum):
    """Whether the owner is sent a message about the end of a task; it never enters a prompt (seed 000, Isolation)."""

    NONE = "none"
    ON_FAILURE = "on_failure"
    ALWAYS = "always"


@frozen
class WorkTerms:
    """The terms of a task.

    `order` is what the owner's rule asks for, with its places not filled in: the words that count as instructions where
    a description holds those of others. `skill` is a text of the agent's skills that the worker is given, `model` one
    beside the agent's own, `tools` those it may use (None: all that workers may). `timeout_s` 0 is the config's limit.
    A task without `on_crash` is run again, unless a call was under way that must not be repeated: then a person is
    asked. Its own errors are charged; the last of `attempts_max` fails it.
    """

    order: str = ""
    skill: str = ""
    model: str = ""
    tools: tuple[str, ...] | None = None
    timeout_s: int = 0
    notify: Notify = Notify.NONE
    on_crash: OnCrash | None = None
    attempts_max: int = 3


def encoded(terms: WorkTerms) -> str:
    """The terms as JSON, without what is as usual."""
    usual = asdict(WorkTerms())
    return json.dumps({name: value for name, value in asdict(terms).items() if value != usual[name]})


def decoded(text: str) -> WorkTerms:
    """Terms that were encoded."""
    kinds = {"tools": tuple, "notify": Notify, "on_crash": OnCrash}
    read = json.loads(text)
    return WorkTerms(**read | {name: kind(read[name]) for name, kind in kinds.items() if name in read})
