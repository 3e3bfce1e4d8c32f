"""Tasks over HTTP: listed, made, run, cancelled, approved and refused by the owner."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import read, show
from keepsaid.domain.task import ENDED, OPEN, NewTask, TaskFilter
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import BadRequest, NotFound, guarded, rows_asked, written_aside
from keepsaid.interfaces.tasks import task_shape, task_story_shape

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
        state, limit = query.get("state"), rows_asked(request, _DEFAULT_ROWS)
        if state is not None and state not in (*OPEN, *ENDED):
            raise BadRequest(f"state must be one of {', '.join((*OPEN, *ENDED))}")
        found = await self._working.view.find(TaskFilter(state, query.get("key"), limit=limit))
        return await written_aside(lambda: {"tasks": [task_shape(task) for task in found]})

    async def get(self, request: Request) -> Response:
        """One task."""
        story = await self._working.view.task(self._named(request))
        if story is None:
            raise NotFound("there is no such task", hint="keepsaid task ls")
        return await written_aside(lambda: task_story_shape(story))

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
        task_id, fields = await self._asked(request)
        done = await self._working.cancel(task_id, _text(fields, "reason") or "cancelled by the owner")
        return JSONResponse({"done": done})

    async def run(self, request: Request) -> Response:
        """Make a pending task due at once."""
        task_id, _ = await self._asked(request)
        return JSONResponse({"done": await self._working.run(task_id)})

    async def approve(self, request: Request) -> Response:
        """Let a parked task go on; `result` is what its unfinished call came to, where the owner knows."""
        task_id, fields = await self._asked(request)
        result = _text(fields, "result") if fields.get("result") is not None else None
        return JSONResponse({"done": await self._working.decide(task_id, approved=True, result=result)})

    async def reject(self, request: Request) -> Response:
        """Let a parked task fail."""
        task_id, fields = await self._asked(request)
        reason = _text(fields, "reason") or "refused by the owner"
        return JSONResponse({"done": await self._working.decide(task_id, approved=False, reason=reason)})

    async def _asked(self, request: Request) -> tuple[int, dict[str, object]]:
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
