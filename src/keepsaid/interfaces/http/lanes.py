"""The operator's routes for lanes: begin anew, summarise."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.lane import Lane
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import BadRequest, NotFound

_BODY_BYTES_MAX = 100_000
_FIND = "keepsaid lanes ls"
_PARTS = ("channel", "account", "conversation", "key")


class LaneRoutes:
    """What the owner does to a lane."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._instance = instance
        self._gate = gate

    async def reset(self, request: Request) -> Response:
        """Begin a lane anew; what was said stays stored."""
        lane, _ = await self._lane(request)
        return JSONResponse({"records": await self._instance.reset(lane)})

    async def compact(self, request: Request) -> Response:
        """Summarise a lane if it is due; with `now`, all but its newest messages."""
        lane, at_once = await self._lane(request)
        return JSONResponse({"told": await self._instance.compactor.asked(lane, at_once=at_once)})

    async def _lane(self, request: Request) -> tuple[Lane, bool]:
        """The lane a call names, and whether it is in a hurry; raises BadRequest, NotFound for one nobody spoke in."""
        self._gate.operator(request)
        fields = await fields_of(request, _BODY_BYTES_MAX)
        given = [fields.get(part) for part in _PARTS]
        names = [part for part in given if isinstance(part, str) and part]
        if len(names) != len(_PARTS):
            raise BadRequest(f"a lane is named by {', '.join(_PARTS)}, each a text")
        lane = Lane(*names)
        if await self._instance.operations.line(lane) is None:
            place = f"{lane.conversation} on {lane.channel}, account {lane.account}"
            raise NotFound(f"there is no lane {lane.key} of {place}", safe="Nothing was changed.", hint=_FIND)
        return lane, fields.get("now") is True
