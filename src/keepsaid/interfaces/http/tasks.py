"""Routes for tasks and schedules."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.app.work import one_of
from keepsaid.domain.ids import read, show
from keepsaid.domain.schedule import LIVE
from keepsaid.domain.task import ENDED, OPEN, NewTask, TaskFilter
from keepsaid.errors import InputError
from keepsaid.interfaces import task_shapes
from keepsaid.interfaces.fields import Shape
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute, no_such
from keepsaid.interfaces.http.responses import BadRequest, NotFound, read_limit, render_in_thread

_TASK_ROWS = 20
_SCHEDULE_ROWS = 100
_STATES = (*LIVE, "done", "cancelled")


async def find_tasks(instance: Instance, call: OwnerCall) -> Response:
    """Tasks, newest first."""
    query = call.request.query_params
    state, limit = query.get("state"), read_limit(call.request, _TASK_ROWS)
    if state is not None and state not in (*OPEN, *ENDED):
        raise BadRequest(f"state must be one of {', '.join((*OPEN, *ENDED))}")
    found = await instance.working.view.find(TaskFilter(state, query.get("key"), limit=limit))
    return await render_in_thread(lambda: {"tasks": [task_shapes.task_shape(task) for task in found]})


async def get_task(instance: Instance, call: OwnerCall) -> Response:
    """One task."""
    story = await instance.working.view.task(call.id_of("task"))
    if story is None:
        raise no_such("task")
    return await render_in_thread(lambda: task_shapes.task_story_shape(story))


async def create_task(instance: Instance, call: OwnerCall) -> Response:
    """Make a task by the owner's word."""
    text = call.text("task")
    if not text.strip():
        raise BadRequest("say in `task` what is to be done")
    new = NewTask(0, text, call.text("key"), outside=False, after=tuple(call.ids("after", "task")))
    return JSONResponse({"id": show("task", await instance.working.create(new))}, 201)


async def cancel_task(instance: Instance, call: OwnerCall) -> Shape:
    """End a task that has not ended."""
    reason = call.text("reason") or "cancelled by the owner"
    return {"done": await instance.working.cancel(call.id_of("task"), reason)}


async def run_task(instance: Instance, call: OwnerCall) -> Shape:
    """Make a pending task due at once."""
    return {"done": await instance.working.run(call.id_of("task"))}


async def approve_task(instance: Instance, call: OwnerCall) -> Shape:
    """Let a parked task go on; `result` is what its unfinished call came to, where the owner knows."""
    result = call.text("result") if call.fields.get("result") is not None else None
    return {"done": await instance.working.decide(call.id_of("task"), approved=True, result=result)}


async def reject_task(instance: Instance, call: OwnerCall) -> Shape:
    """Let a parked task fail."""
    reason = call.text("reason") or "refused by the owner"
    return {"done": await instance.working.decide(call.id_of("task"), approved=False, reason=reason)}


async def list_schedules(instance: Instance, call: OwnerCall) -> Response:
    """Those that live, by id; with `?all=1` those that are over as well, with `?after=ID` those that follow."""
    query = call.request.query_params
    states, name = _STATES if query.get("all") else LIVE, query.get("after")
    after = 0 if name is None else read("schedule", name)
    if after is None:
        raise BadRequest("after must name a schedule: sch_...")
    found = await instance.scheduling.listed(states, read_limit(call.request, _SCHEDULE_ROWS), after)
    return await render_in_thread(lambda: task_shapes.schedules_shape(found))


async def add_schedule(instance: Instance, call: OwnerCall) -> Response:
    """Add one."""
    new = task_shapes.parse_schedule(call.fields, instance.config.schedules.timezone)
    return JSONResponse(task_shapes.schedule_shape(await instance.scheduling.add(new)), 201)


async def get_schedule(instance: Instance, call: OwnerCall) -> Shape:
    """One, with its last runs."""
    return await task_shapes.schedule_view_shape(instance.scheduling.view, await _schedule(instance, call))


async def change_schedule(instance: Instance, call: OwnerCall) -> Shape:
    """Run, pause, resume or cancel one."""
    verb = call.request.path_params["verb"]
    if verb not in task_shapes.VERBS:
        raise NotFound(f"a schedule cannot {verb}; it can {', '.join(task_shapes.VERBS)}")
    return await task_shapes.change_schedule(instance, await _schedule(instance, call), verb)


async def _schedule(instance: Instance, call: OwnerCall) -> str:
    name = str(call.request.path_params["id"])
    try:
        await one_of(instance.scheduling.view, name, read("schedule", name))
    except InputError as error:
        raise NotFound(error.what, safe=error.safe, hint=error.hint) from None
    return name


ROUTES = (
    OwnerRoute("GET", "/v1/tasks", find_tasks),
    OwnerRoute("POST", "/v1/tasks", create_task, 200_000),
    OwnerRoute("GET", "/v1/tasks/{id}", get_task),
    OwnerRoute("POST", "/v1/tasks/{id}/run", run_task, 200_000),
    OwnerRoute("POST", "/v1/tasks/{id}/cancel", cancel_task, 200_000),
    OwnerRoute("POST", "/v1/tasks/{id}/approve", approve_task, 200_000),
    OwnerRoute("POST", "/v1/tasks/{id}/reject", reject_task, 200_000),
    OwnerRoute("GET", "/v1/schedules", list_schedules),
    OwnerRoute("POST", "/v1/schedules", add_schedule, 100_000),
    OwnerRoute("GET", "/v1/schedules/{id}", get_schedule),
    OwnerRoute("POST", "/v1/schedules/{id}/{verb}", change_schedule),
)
