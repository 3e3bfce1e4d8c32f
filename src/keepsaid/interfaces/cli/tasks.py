"""`keepsaid inbox tasks`: work that was written down: listed, shown, made, run, cancelled, approved and refused."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

import typer

from keepsaid.domain import ids, turn
from keepsaid.domain.task import ENDED, OPEN, Task, TaskFilter, TaskStory
from keepsaid.interfaces.cli import console, program, remote
from keepsaid.interfaces.task_shapes import NO_MODEL_YET, task_shape, task_story_shape

app = typer.Typer(help="Manage background tasks.", rich_markup_mode=None)
_STATES = (*OPEN, *ENDED)
_TEXT_CHARS = 60
_LS = "keepsaid inbox tasks ls"

Named = Annotated[str, typer.Argument(metavar="ID", help="A task: tsk_...")]


@app.command("ls")
def ls(
    state: Annotated[str | None, typer.Option(help=f"Only tasks that are {', '.join(_STATES)}.")] = None,
    key: Annotated[str | None, typer.Option(help="Only tasks with this key.")] = None,
    limit: console.Limit = 20,
) -> None:
    """List tasks, newest first."""
    console.check_choice("--state", state, _STATES)
    found = console.session().read(lambda stores: stores.views.tasks.find(TaskFilter(state, key, limit=limit))) or ()
    headings, rows = ("ID", "AGE", "STATE", "RULE", "TRIES", "TASK"), tuple(map(_row, found))
    console.show({"tasks": [task_shape(task) for task in found]}, console.Table(headings, rows))
    if not found:
        console.say("there is no task")
    if any(task.state == "pending" for task in found) and _no_model():
        console.say(NO_MODEL_YET)


def _row(task: Task) -> tuple[str, ...]:
    told = console.one_line(task.status or task.description)[:_TEXT_CHARS]
    about = ids.show("task", task.id), console.age(task.created_at), task.state, task.rule or "-"
    return (*about, str(task.attempts), told)


def _no_model() -> bool:
    from keepsaid.app.models import model_named  # noqa: PLC0415 - only where something waits

    return model_named(console.session().config()) == turn.NO_MODEL


@app.command("show")
def show_one(task: Named) -> None:
    """Show one task: its description, what its worker did, and its result."""
    explain_task(task)


def explain_task(task: str) -> None:
    """Print one task: its description, its steps, what it cost, and its result."""
    number = _number(task)
    story = console.session().need(lambda stores: stores.views.tasks.task(number), f"there is no task {task}", _LS)
    heading = f"{ids.show('task', number)} is {story.task.state}"
    console.show(task_story_shape(story), heading, console.facts(_lines(story)))


def _lines(story: TaskStory) -> list[tuple[str, str]]:
    task, usage = story.task, story.task.usage
    waits = NO_MODEL_YET if task.state == "pending" and not task.reason and _no_model() else task.reason
    told = [
        ("task", task.description),
        ("rule", task.rule),
        ("agent", task.terms.agent),
        ("key", task.key),
        ("made", ids.when(task.created_at) or ""),
        ("after", ", ".join(ids.show("task", one) for one in task.after)),
        ("waiting", ", ".join(ids.show("task", one) for one in story.waiting)),
        ("status", task.status),
        *(("step", f"{one.n} {one.kind} {one.subject}: {one.state}") for one in story.steps),
        ("attempts", str(task.attempts) if task.attempts else ""),
        ("tokens", f"in {usage.tokens_in:,}   out {usage.tokens_out:,}" if usage.tokens_in else ""),
        ("ended", ids.when(task.ended_at) or ""),
        ("reason", waits),
        ("result", task.result),
    ]
    return [(what, text) for what, text in told if text]


@app.command("run")
def run(
    task: Annotated[str | None, typer.Argument(metavar="[ID]", help="A task that waits: tsk_...")] = None,
    text: Annotated[str, typer.Option("--text", help="Instead of an id: description of a new task.")] = "",
    key: Annotated[str, typer.Option(help="Key of the new task, by which other tasks can refer to it.")] = "",
    tools: Annotated[str, typer.Option(help="The only tools of the new task, separated by commas.")] = "",
) -> None:
    """Run a waiting task now, or create a new one."""
    if (task is None) == (not text.strip()):
        what = "name a task that waits, or say with --text what is to be done"
        raise program.Misused(what, hint="keepsaid inbox tasks run --help")
    if task is not None:
        if ids.read("task", task) is None:
            what = f"{task!r} names no task; what a new one is to do is said with --text"
            raise console.refused(what, f"keepsaid inbox tasks run --text {quote(task)}")
        _decided(task, "run", {}, "does not wait")
        return
    told, up = remote.post(
        "/v1/tasks", {"task": text, "key": key, "tools": [one.strip() for one in tools.split(",")] if tools else None}
    )
    number = told["id"]
    console.show({"task": number, "made": True}, f"{number}  written down")
    if not up:
        console.say("no runtime is up: the next one does it (keepsaid serve)")


@app.command("cancel")
def cancel(task: Named, reason: Annotated[str, typer.Option(help="Reason.")] = "cancelled by the owner") -> None:
    """Cancel a task; tasks that depend on it fail."""
    _decided(task, "cancel", {"reason": reason}, "has ended")


@app.command("approve")
def approve(
    task: Named,
    result: Annotated[
        str | None, typer.Option(help="Result of its unfinished call, which is then not repeated.")
    ] = None,
) -> None:
    """Approve a task under review: its unfinished call is repeated, or gets the result you supply."""
    _decided(task, "approve", {"result": result}, "does not need review")


@app.command("reject")
def reject(task: Named, reason: Annotated[str, typer.Option(help="Reason.")] = "refused by the owner") -> None:
    """Reject a task under review; it fails, and so do tasks that depend on it."""
    _decided(task, "reject", {"reason": reason}, "does not need review")


def _decided(task: str, verb: str, fields: dict[str, str | None], unless: str) -> None:
    """Say a word on a task."""
    number = _number(task)
    name = ids.show("task", number)
    told, up = remote.post(f"/v1/tasks/{name}/{verb}", fields)
    if not told["done"]:
        found = console.session().read(lambda stores: stores.views.tasks.task(number))
        why = f"there is no task {task}" if found is None else f"{task} {unless}: it is {found.task.state}"
        raise console.refused(why, _LS)
    console.show({"task": name, verb: True}, f"{name}  {_DONE[verb]}")
    if not up and verb in ("run", "approve"):
        console.say("no runtime is up: the next one does it (keepsaid serve)")


_DONE = {"run": "is due now", "cancel": "cancelled", "approve": "goes on", "reject": "refused: it has failed"}


def _number(task: str) -> int:
    return console.id_of("task", task, _LS, f"{task!r} names no task")
