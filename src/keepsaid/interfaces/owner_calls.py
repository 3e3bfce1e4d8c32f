"""Calls of the owner's own agents and programs: tasks, schedules, the status, and the files of the personality."""

from __future__ import annotations

from collections.abc import Mapping

from keepsaid.app.agent import identity_texts
from keepsaid.app.instance import Instance
from keepsaid.domain import ids, schedule
from keepsaid.domain.message import Trust
from keepsaid.domain.principal import Principal
from keepsaid.domain.task import ENDED, OPEN, TaskFilter
from keepsaid.errors import InputError, NotAllowed
from keepsaid.interfaces import task_shapes
from keepsaid.interfaces.agent_fields import ROWS, ROWS_MAX
from keepsaid.interfaces.fields import bounded_field, text_field
from keepsaid.interfaces.shapes import Shape
from keepsaid.interfaces.status_shape import status_shape
from keepsaid.text.normal import cut

_SAFE = "Nothing was changed."

Fields = Mapping[str, object]


async def tasks(here: Instance, who: Principal, fields: Fields) -> Shape:
    """Tasks, newest first, of a `state` or a `key`; `limit` at most."""
    _check_operator(who)
    state, key = (text_field(fields, name, "") or None for name in ("state", "key"))
    if state is not None and state not in (*OPEN, *ENDED):
        raise InputError(f"state must be one of {', '.join((*OPEN, *ENDED))}", safe=_SAFE)
    limit = bounded_field(fields, "limit", (1, ROWS_MAX), ROWS)
    found = await here.services.tasks.find(TaskFilter(state, key, limit=limit))
    return {"tasks": [task_shapes.task_shape(task) for task in found]}


async def run_task(here: Instance, who: Principal, fields: Fields) -> Shape:
    """Make the pending task `id` due now; `done` says whether its state allowed it."""
    _check_operator(who)
    return {"done": await here.services.tasks.run(_id(fields, "task"))}


async def approve_task(here: Instance, who: Principal, fields: Fields) -> Shape:
    """Continue the task `id` that waits for review; `result` is that of its unfinished call, where it is known."""
    _check_operator(who)
    result = None if fields.get("result") is None else text_field(fields, "result")
    return {"done": await here.services.tasks.decide(_id(fields, "task"), approved=True, result=result)}


async def schedules(here: Instance, who: Principal, fields: Fields) -> Shape:
    """Schedules that are not over, by id; `limit` at most, of those after the schedule `after`."""
    _check_operator(who)
    limit = bounded_field(fields, "limit", (1, ROWS_MAX), ROWS)
    after = _id(fields, "schedule", "after") if fields.get("after") else 0
    return task_shapes.schedules_shape(await here.services.schedules.list(schedule.LIVE, limit, after))


async def add_schedule(here: Instance, who: Principal, fields: Fields) -> Shape:
    """Add a schedule: one of cron, every_s and at; one of say, ask, run and task."""
    _check_operator(who)
    new = task_shapes.parse_schedule(fields, here.config.schedules.timezone)
    return task_shapes.schedule_shape(await here.services.schedules.add(new))


async def status(here: Instance, who: Principal, _fields: Fields) -> Shape:
    """What waits, what is remembered and what is beyond its limit."""
    _check_operator(who)
    found = await here.services.status.read()
    return {"sentence": found.describe("Running", works=True), **status_shape(found)}


async def identity(here: Instance, who: Principal, fields: Fields) -> Shape:
    """The text of a `file` of the personality; without one, the names of those that are there."""
    if not (who.operates or who.trust is Trust.OWNER):
        raise NotAllowed("only the owner reads the files of the personality")
    name = text_field(fields, "file", "")
    texts = await identity_texts(here.home, here.config)
    if not name:
        return {"files": list(texts)}
    if (text := texts.get(name)) is None:
        raise InputError(f"there is no file {cut(name, 80)!r} of the personality", safe=_SAFE)
    return {"file": name, "text": text}


def _check_operator(who: Principal) -> None:
    if not who.operates:
        raise NotAllowed("this needs the operator's token: no scope of a key opens it")


def _id(fields: Fields, kind: str, name: str = "id") -> int:
    number = ids.read(kind, text_field(fields, name))
    if number is None:
        raise InputError(f"{name} must name a {kind}: {ids.PREFIXES[kind]}_...", safe=_SAFE)
    return number
