"""The operator's routes for lanes: begin anew, summarise."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.lane import Lane
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import BadRequest, NotFound, body_of, parsed

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
        left = await self._instance.reset(lane)
        if left < 0 and not (await self._instance.operations.context(lane, 1)).head:
            place = f"{lane.conversation} on {lane.channel}, account {lane.account}"
            raise NotFound(f"there is no lane {lane.key} of {place}", safe="Nothing was changed.", hint=_FIND)
        return JSONResponse({"records": left})

    async def compact(self, request: Request) -> Response:
        """Summarise a lane if it is due; with `now`, all but its newest messages."""
        lane, at_once = await self._lane(request)
        return JSONResponse({"told": await self._instance.compactor.asked(lane, at_once=at_once)})

    async def _lane(self, request: Request) -> tuple[Lane, bool]:
        self._gate.operator(request)
        fields = parsed(await body_of(request, _BODY_BYTES_MAX))
        given = [fields.get(part) for part in _PARTS]
        names = [part for part in given if isinstance(part, str) and part]
        if len(names) != len(_PARTS):
            raise BadRequest(f"a lane is named by {', '.join(_PARTS)}, each a text")
        return Lane(*names), fields.get("now") is True
