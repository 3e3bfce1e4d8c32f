"""The operator's routes for people: joined, split, and what they said let be heard more widely."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import read, show
from keepsaid.interfaces import people
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import BadRequest, NotFound
from keepsaid.interfaces.shapes import person_shape, widened_shape

_BODY_BYTES_MAX = 100_000


class PeopleRoutes:
    """Who is who, and who hears what, by the owner's word."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._instance = instance
        self._gate = gate

    async def join(self, request: Request) -> Response:
        """Make one person of several identities."""
        self._gate.operator(request)
        names = (await fields_of(request, _BODY_BYTES_MAX)).get("names")
        if not isinstance(names, list):
            raise BadRequest("names must be a list of texts: CHANNEL:ACCOUNT:SENDER, or owner")
        told = [name for name in names if isinstance(name, str)]
        if len(told) < len(names):
            raise BadRequest("names must be texts: CHANNEL:ACCOUNT:SENDER, or owner")
        return JSONResponse({"person": person_shape(await people.join(self._instance, told))})

    async def split(self, request: Request) -> Response:
        """Let one identity be a person alone again."""
        self._gate.operator(request)
        name = (await fields_of(request, _BODY_BYTES_MAX)).get("name")
        if not isinstance(name, str):
            raise BadRequest("name must be text: CHANNEL:ACCOUNT:SENDER, or owner")
        return JSONResponse({"split": await people.split(self._instance, name)})

    async def widen(self, request: Request) -> Response:
        """Let a memory be heard more widely."""
        self._gate.operator(request)
        fields = await fields_of(request, _BODY_BYTES_MAX)
        memory_id, to, reason = read("memory", request.path_params["id"]), fields.get("to"), fields.get("reason")
        if memory_id is None:
            raise NotFound("there is no such memory", hint="keepsaid memory ls")
        if not isinstance(to, str) or not isinstance(reason, str):
            raise BadRequest("say how far as `to` and why as `reason`, both as text")
        done = await people.widen(self._instance, memory_id, to, reason)
        return JSONResponse({"memory": show("memory", memory_id), "widened": widened_shape(done)})
