"""The operator's routes for collection: read what is unread, read a parked session again."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import read
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import NotFound

_BODY_BYTES_MAX = 10_000


class CollectionRoutes:
    """What the owner says of collection."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._instance = instance
        self._gate = gate

    async def run(self, request: Request) -> Response:
        """Mark one session, or every one with unread records; the collector reads them next."""
        self._gate.operator(request)
        named = (await fields_of(request, _BODY_BYTES_MAX)).get("session")
        session_id = None if named is None else _number(str(named))
        marked = await self._instance.collecting.mark(session_id)
        return JSONResponse({"marked": marked, "stopping": self._instance.halt.asked})

    async def requeue(self, request: Request) -> Response:
        """Read a parked session again."""
        self._gate.operator(request)
        session_id = _number(request.path_params["id"])
        return JSONResponse({"requeued": await self._instance.collecting.requeue(session_id)})


def _number(named: str) -> int:
    number = read("session", named)
    if number is None:
        raise NotFound(f"there is no session {named}", safe="Nothing was changed.", hint="keepsaid collect ls")
    return number
