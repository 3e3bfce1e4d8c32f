"""The operator's routes for schedules: what comes, what came of it, and a person's word on it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keepsaid.app.instance import Instance
from keepsaid.app.scheduling import one_of
from keepsaid.domain.ids import read
from keepsaid.domain.schedule import LIVE
from keepsaid.errors import InputError
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import BadRequest, NotFound, guarded, rows_asked, written_aside
from keepsaid.interfaces.scheduling import VERBS, asked_for, done, schedule_shape, schedules_shape, shown

_BODY_BYTES_MAX = 100_000
_DEFAULT_ROWS = 100
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
        found = await self._instance.scheduling.listed(states, rows_asked(request, _DEFAULT_ROWS), after)
        return await written_aside(lambda: schedules_shape(found))

    async def add(self, request: Request) -> Response:
        """Add one."""
        self._gate.operator(request)
        body = await fields_of(request, _BODY_BYTES_MAX)
        new = asked_for(body, self._instance.config.schedules.timezone)
        return JSONResponse(schedule_shape(await self._instance.scheduling.add(new)), 201)

    async def show(self, request: Request) -> Response:
        """One, with its last runs."""
        self._gate.operator(request)
        return JSONResponse(await shown(self._instance.scheduling.view, await self._known(request)))

    async def do(self, request: Request) -> Response:
        """Run, pause, resume or cancel one."""
        self._gate.operator(request)
        verb = request.path_params["verb"]
        if verb not in VERBS:
            raise NotFound(f"a schedule cannot {verb}; it can {', '.join(VERBS)}")
        return JSONResponse(await done(self._instance, await self._known(request), verb))

    async def _known(self, request: Request) -> str:
        thing = str(request.path_params["id"])
        try:
            await one_of(self._instance.scheduling.view, thing, read("schedule", thing))
        except InputError as error:
            raise NotFound(error.what, hint=error.hint) from None
        return thing
