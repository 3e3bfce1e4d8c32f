"""`keepsaid task`: work that was written down: listed, shown, made, run, cancelled, approved and refused."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

import typer

from keepsaid.domain.ids import read, when
from keepsaid.domain.ids import show as name
from keepsaid.domain.task import ENDED, OPEN, Task, TaskFilter, TaskStory
from keepsaid.domain.turn import NO_MODEL
from keepsaid.interfaces.cli.console import (
    Limit,
    Table,
    age_ms,
    check_choice,
    duration,
    facts,
    id_of,
    one_line,
    refused,
    say,
    session,
    show,
)
from keepsaid.interfaces.cli.failure import Misused
from keepsaid.interfaces.cli.remote import post
from keepsaid.interfaces.task_shapes import NO_MODEL_YET, task_shape, task_story_shape

app = typer.Typer(help="Work that workers do beside the conversation.", rich_markup_mode=None)
_STATES = (*OPEN, *ENDED)
_TEXT_CHARS = 60
_LS = "keepsaid task ls"

Named = Annotated[str, typer.Argument(metavar="ID", help="A task: tsk_...")]


@app.command("ls")
def ls(
    state: Annotated[str | None, typer.Option(help=f"Only tasks that are {', '.join(_STATES)}.")] = None,
    key: Annotated[str | None, typer.Option(help="Only tasks with this key.")] = None,
    limit: Limit = 20,
) -> None:
    """List tasks, newest first."""
    check_choice("--state", state, _STATES)
    found = session().read(lambda stores: stores.views.tasks.find(TaskFilter(state, key, limit=limit))) or ()
    rows = tuple(_row(task) for task in found)
    headings = ("ID", "AGE", "STATE", "RULE", "TRIES", "TASK")
    show({"tasks": [task_shape(task) for task in found]}, Table(headings, rows))
    if not found:
        say("there is no task")
    if any(task.state == "pending" for task in found) and _no_model():
        say(NO_MODEL_YET)


def _row(task: Task) -> tuple[str, ...]:
    told = one_line(task.status or task.description)[:_TEXT_CHARS]
    age = duration(age_ms(task.created_at))
    return name("task", task.id), age, task.state, task.rule or "-", str(task.attempts), told


def _no_model() -> bool:
    from keepsaid.app.models import model_named  # noqa: PLC0415 - only where something waits

    return model_named(session().config()) == NO_MODEL


@app.command("show")
def show_one(task: Named) -> None:
    """Show one task: what it is about, what its worker did, what came of it."""
    number = _number(task)
    story = session().read(lambda stores: stores.views.tasks.task(number))
    if story is None:
        raise refused(f"there is no task {task}", _LS)
    show(task_story_shape(story), f"{name('task', number)} is {story.task.state}", facts(_lines(story)))


def _lines(story: TaskStory) -> list[tuple[str, str]]:
    task = story.task
    waits = NO_MODEL_YET if task.state == "pending" and not task.reason and _no_model() else task.reason
    told = [
        ("task", task.description),
        ("rule", task.rule),
        ("key", task.key),
        ("made", when(task.created_at) or ""),
        ("after", ", ".join(name("task", one) for one in task.after)),
        ("waiting", ", ".join(name("task", one) for one in story.waiting)),
        ("status", task.status),
        *(("step", f"{one.n} {one.kind} {one.subject}: {one.state}") for one in story.steps),
        ("attempts", str(task.attempts) if task.attempts else ""),
        ("ended", when(task.ended_at) or ""),
        ("reason", waits),
        ("result", task.result),
    ]
    return [(what, text) for what, text in told if text]


@app.command("run")
def run(
    task: Annotated[str | None, typer.Argument(metavar="[ID]", help="A task that waits: tsk_...")] = None,
    text: Annotated[str, typer.Option("--text", help="In place of an id: what a new task is to do.")] = "",
    key: Annotated[str, typer.Option(help="What the new task is called, so that others can refer to it.")] = "",
) -> None:
    """Have a task that waits done at once; or make a new one."""
    if (task is None) == (not text.strip()):
        raise Misused("name a task that waits, or say with --text what is to be done", hint="keepsaid task run --help")
    if task is not None:
        if read("task", task) is None:
            what = f"{task!r} names no task; what a new one is to do is said with --text"
            raise refused(what, f"keepsaid task run --text {quote(task)}")
        _decided(task, "run", {}, "does not wait")
        return
    told, up = post("/v1/tasks", {"task": text, "key": key})
    number = told["id"]
    show({"task": number, "made": True}, f"{number}  written down")
    if not up:
        say("no runtime is up: the next one does it (keepsaid serve)")


@app.command("cancel")
def cancel(task: Named, reason: Annotated[str, typer.Option(help="Why.")] = "cancelled by the owner") -> None:
    """End a task that has not ended; what waits for it fails."""
    _decided(task, "cancel", {"reason": reason}, "has ended")


@app.command("approve")
def approve(
    task: Named,
    result: Annotated[str | None, typer.Option(help="What its unfinished call came to; it is not made again.")] = None,
) -> None:
    """Let a task that needs review go on: its unfinished call is made again, or came to what you say."""
    _decided(task, "approve", {"result": result}, "does not need review")


@app.command("reject")
def reject(task: Named, reason: Annotated[str, typer.Option(help="Why.")] = "refused by the owner") -> None:
    """Let a task that needs review fail, and what waits for it."""
    _decided(task, "reject", {"reason": reason}, "does not need review")


def _decided(task: str, verb: str, fields: dict[str, str | None], unless: str) -> None:
    """Say a word on a task."""
    number = _number(task)
    told, up = post(f"/v1/tasks/{name('task', number)}/{verb}", fields)
    if not told["done"]:
        found = session().read(lambda stores: stores.views.tasks.task(number))
        why = f"there is no task {task}" if found is None else f"{task} {unless}: it is {found.task.state}"
        raise refused(why, _LS)
    show({"task": name("task", number), verb: True}, f"{name('task', number)}  {_DONE[verb]}")
    if not up and verb in ("run", "approve"):
        say("no runtime is up: the next one does it (keepsaid serve)")


_DONE = {"run": "is due now", "cancel": "cancelled", "approve": "goes on", "reject": "refused: it has failed"}


def _number(task: str) -> int:
    return id_of("task", task, _LS, f"{task!r} names no task")
