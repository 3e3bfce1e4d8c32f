"""Tasks and schedules as JSON, and what somebody asks for as a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from keepsaid.config.services import ScheduleConfig, TargetConfig
from keepsaid.domain.ids import read, show, when
from keepsaid.domain.schedule import NewSchedule, Schedule, ScheduleRun
from keepsaid.domain.task import Task, TaskStory
from keepsaid.domain.timing import Cron, Every, Timing
from keepsaid.interfaces.shapes import Shape, fields_of, lane_shape, times_of
from keepsaid.services.schedules import find_schedule, refused
from keepsaid.text.normal import span_text

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance
    from keepsaid.ports.store_views import ScheduleView

NO_MODEL_YET = "no model is set: it waits until there is one (keepsaid init)"


def task_shape(task: Task) -> Shape:
    terms = task.terms
    return {
        "id": show("task", task.id),
        "key": task.key,
        "kind": str(task.kind),
        "state": task.state,
        "rule": task.rule or None,
        "turn": show("turn", task.turn_id) if task.turn_id is not None else None,
        **fields_of(task, "depth", "description", "messages", "priority"),
        "after": [show("task", one) for one in task.after],
        **fields_of(task, "attempts", "crashes"),
        "status": task.status or None,
        "result": task.result or None,
        "reason": task.reason or None,
        "skill": terms.skill or None,
        "model": terms.model or None,
        "tools": None if terms.tools is None else list(terms.tools),
        "agent": terms.agent or None,
        "notify": str(terms.notify),
        **fields_of(task.usage, "tokens_in", "tokens_out"),
        **times_of(task, "created_at", "started_at", "ended_at"),
        "next_try_at": when(task.ready_at) if task.state == "pending" and task.ready_at else None,
    }


def task_story_shape(story: TaskStory) -> Shape:
    """A task with what its worker did so far, and those that wait for it."""
    steps = [{**fields_of(one, "n", "kind", "subject", "state"), "again": one.repeatable} for one in story.steps]
    waiting = [show("task", one) for one in story.waiting]
    return {**task_shape(story.task), "steps": steps, "waiting": waiting}


VERBS = ("run", "pause", "resume", "cancel")
"""What a person may do with a schedule."""

_RUNS = 20


def render_timing(timing: Timing) -> str:
    """Render a timing in a few words: the cron text with its zone, the interval, or the time."""
    if isinstance(timing, Cron):
        return f"{timing.text} ({timing.zone})"
    return f"every {span_text(timing.ms)}" if isinstance(timing, Every) else f"once, {when(timing.at)}"


def schedule_shape(one: Schedule) -> dict[str, Any]:
    new, target = one.new, one.new.target
    return {
        "id": show("schedule", one.id),
        **fields_of(new, "source", "name"),
        "when": render_timing(new.timing),
        **fields_of(new, "what", "text"),
        "to": None if target is None else lane_shape(target.lane),
        "urgent": new.urgent,
        "state": one.state,
        "next_at": when(one.next_at),
        **fields_of(one, "failures", "reason"),
    }


def run_shape(one: ScheduleRun) -> dict[str, Any]:
    ids = {"message": one.message_id, "reply": one.reply_id, "task": one.task_id}
    refs = {kind: None if number is None else show(kind, number) for kind, number in ids.items()}
    return {**times_of(one, "due_at", "fired_at", "ended_at"), **fields_of(one, "state", "output", "reason"), **refs}


def schedules_shape(schedules: Sequence[Schedule]) -> dict[str, Any]:
    return {"schedules": [schedule_shape(one) for one in schedules]}


_TARGET = {name: {"type": "string"} for name in TargetConfig.model_fields}
SCHEDULE_FIELDS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        **{name: {"type": "string"} for name in ("name", *ScheduleConfig.model_fields)},
        "every_s": {"type": "number", "minimum": 1},
        "urgent": {"type": "boolean"},
        "to": {"type": "object", "properties": _TARGET},
    },
}
"""The fields of a schedule that somebody adds: one of cron, every_s and at; one of say, ask, run and task."""


def parse_schedule(body: Mapping[str, object], zone: str) -> NewSchedule:
    """Parse a schedule from a JSON object. Raises InputError.

    Its keys are those of the config, and `name`.
    """
    given = {key: value for key, value in body.items() if value is not None}
    name = given.pop("name", "")
    unknown = sorted(set(given) - set(ScheduleConfig.model_fields))
    if unknown or not isinstance(name, str):
        raise refused(f"a schedule has no {unknown[0] if unknown else 'name that is not text'}")
    try:
        asked = ScheduleConfig.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        what = first["msg"].removeprefix("Value error, ")
        raise refused(f"{place}: {what}" if place else what) from None
    return replace(asked.schedule(0, name.strip(), zone), source="command")


async def schedule_view_shape(view: ScheduleView, thing: str) -> dict[str, Any]:
    """One schedule and its last runs as JSON. Raises InputError if no schedule has this id or name."""
    one = await find_schedule(view, thing, read("schedule", thing))
    return {**schedule_shape(one), "runs": [run_shape(run) for run in await view.runs(one.id, _RUNS)]}


async def change_schedule(instance: Instance, thing: str, verb: str) -> dict[str, Any]:
    """Run, pause, resume or cancel a schedule. Raises InputError if its state does not allow that."""
    schedules = instance.services.schedules
    one = await schedules.find(thing, read("schedule", thing))
    if not await (schedules.run(one) if verb == "run" else schedules.move(one, verb)):
        why = "it is at work, or comes no more" if verb == "run" else f"it is {one.state}"
        raise refused(f"{thing} cannot {verb} now: {why}", f"keepsaid schedule show {thing}")
    return schedule_shape(await schedules.find(thing, one.id))
