"""Routes for tasks and schedules."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keepsaid.app.instance import Instance
from keepsaid.app.work import one_of
from keepsaid.domain.ids import read, show
from keepsaid.domain.schedule import LIVE
from keepsaid.domain.task import ENDED, OPEN, NewTask, TaskFilter
from keepsaid.errors import InputError
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.responses import BadRequest, NotFound, guarded, read_limit, render_in_thread
from keepsaid.interfaces.task_shapes import (
    VERBS,
    change_schedule,
    parse_schedule,
    schedule_shape,
    schedule_view_shape,
    schedules_shape,
    task_shape,
    task_story_shape,
)

_BODY_BYTES_MAX = 200_000
_DEFAULT_ROWS = 20


class TaskRoutes:
    """The owner's routes for tasks."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._working = instance.working
        self._gate = gate

    async def find(self, request: Request) -> Response:
        """Tasks, newest first."""
        self._gate.operator(request)
        query = request.query_params
        state, limit = query.get("state"), read_limit(request, _DEFAULT_ROWS)
        if state is not None and state not in (*OPEN, *ENDED):
            raise BadRequest(f"state must be one of {', '.join((*OPEN, *ENDED))}")
        found = await self._working.view.find(TaskFilter(state, query.get("key"), limit=limit))
        return await render_in_thread(lambda: {"tasks": [task_shape(task) for task in found]})

    async def get(self, request: Request) -> Response:
        """One task."""
        story = await self._working.view.task(self._named(request))
        if story is None:
            raise NotFound("there is no such task", hint="keepsaid task ls")
        return await render_in_thread(lambda: task_story_shape(story))

    async def create(self, request: Request) -> Response:
        """Make a task by the owner's word."""
        self._gate.operator(request)
        fields = await fields_of(request, _BODY_BYTES_MAX)
        text, after = _text(fields, "task"), fields.get("after", [])
        if not text.strip():
            raise BadRequest("say in `task` what is to be done")
        known = [read("task", one) for one in after if isinstance(one, str)] if isinstance(after, list) else [None]
        earlier = tuple(one for one in known if one is not None)
        if len(earlier) != len(known):
            raise BadRequest("after must be a list of tasks: tsk_...")
        made = await self._working.create(NewTask(0, text, _text(fields, "key"), outside=False, after=earlier))
        return JSONResponse({"id": show("task", made)}, 201)

    async def cancel(self, request: Request) -> Response:
        """End a task that has not ended."""
        task_id, fields = await self._read_request(request)
        done = await self._working.cancel(task_id, _text(fields, "reason") or "cancelled by the owner")
        return JSONResponse({"done": done})

    async def run(self, request: Request) -> Response:
        """Make a pending task due at once."""
        task_id, _ = await self._read_request(request)
        return JSONResponse({"done": await self._working.run(task_id)})

    async def approve(self, request: Request) -> Response:
        """Let a parked task go on; `result` is what its unfinished call came to, where the owner knows."""
        task_id, fields = await self._read_request(request)
        result = _text(fields, "result") if fields.get("result") is not None else None
        return JSONResponse({"done": await self._working.decide(task_id, approved=True, result=result)})

    async def reject(self, request: Request) -> Response:
        """Let a parked task fail."""
        task_id, fields = await self._read_request(request)
        reason = _text(fields, "reason") or "refused by the owner"
        return JSONResponse({"done": await self._working.decide(task_id, approved=False, reason=reason)})

    async def _read_request(self, request: Request) -> tuple[int, dict[str, object]]:
        task_id = self._named(request)
        return task_id, await fields_of(request, _BODY_BYTES_MAX)

    def _named(self, request: Request) -> int:
        self._gate.operator(request)
        task_id = read("task", request.path_params["id"])
        if task_id is None:
            raise NotFound("there is no such task", hint="keepsaid task ls")
        return task_id


def _text(fields: dict[str, object], name: str) -> str:
    given = fields.get(name) or ""
    if not isinstance(given, str):
        raise BadRequest(f"{name} must be text")
    return given


def task_routes(instance: Instance, gate: Gate) -> list[Route]:
    """Every route for tasks."""
    tasks = TaskRoutes(instance, gate)
    words = {"run": tasks.run, "cancel": tasks.cancel, "approve": tasks.approve, "reject": tasks.reject}
    return [
        Route("/v1/tasks", guarded(tasks.find), methods=["GET"]),
        Route("/v1/tasks", guarded(tasks.create), methods=["POST"]),
        Route("/v1/tasks/{id}", guarded(tasks.get), methods=["GET"]),
        *(Route(f"/v1/tasks/{{id}}/{word}", guarded(said), methods=["POST"]) for word, said in words.items()),
    ]


_SCHEDULE_BYTES_MAX = 100_000
_SCHEDULE_ROWS = 100
_STATES = (*LIVE, "done", "cancelled")


class ScheduleRoutes:
    """Schedules, for the owner."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._instance = instance
        self._gate = gate

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/v1/schedules", guarded(self.ls), methods=["GET"]),
            Route("/v1/schedules", guarded(self.add), methods=["POST"]),
            Route("/v1/schedules/{id}", guarded(self.show), methods=["GET"]),
            Route("/v1/schedules/{id}/{verb}", guarded(self.do), methods=["POST"]),
        ]

    async def ls(self, request: Request) -> Response:
        """Those that live, by id; with `?all=1` those that are over as well, with `?after=ID` what follows."""
        self._gate.operator(request)
        states, named = _STATES if request.query_params.get("all") else LIVE, request.query_params.get("after")
        after = 0 if named is None else read("schedule", named)
        if after is None:
            raise BadRequest("after must name a schedule: sch_...")
        found = await self._instance.scheduling.listed(states, read_limit(request, _SCHEDULE_ROWS), after)
        return await render_in_thread(lambda: schedules_shape(found))

    async def add(self, request: Request) -> Response:
        """Add one."""
        self._gate.operator(request)
        body = await fields_of(request, _SCHEDULE_BYTES_MAX)
        new = parse_schedule(body, self._instance.config.schedules.timezone)
        return JSONResponse(schedule_shape(await self._instance.scheduling.add(new)), 201)

    async def show(self, request: Request) -> Response:
        """One, with its last runs."""
        self._gate.operator(request)
        return JSONResponse(await schedule_view_shape(self._instance.scheduling.view, await self._known(request)))

    async def do(self, request: Request) -> Response:
        """Run, pause, resume or cancel one."""
        self._gate.operator(request)
        verb = request.path_params["verb"]
        if verb not in VERBS:
            raise NotFound(f"a schedule cannot {verb}; it can {', '.join(VERBS)}")
        return JSONResponse(await change_schedule(self._instance, await self._known(request), verb))

    async def _known(self, request: Request) -> str:
        thing = str(request.path_params["id"])
        try:
            await one_of(self._instance.scheduling.view, thing, read("schedule", thing))
        except InputError as error:
            raise NotFound(error.what, safe=error.safe, hint=error.hint) from None
        return thing
