"""Forgetting over HTTP: what would go, or a request to forget and its receipt so far."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.interfaces.forgetting import asked_in, forgotten, undone, would_go
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import BadRequest

_BODY_BYTES_MAX = 1_000_000
_WAIT_S_MAX = 60.0


async def forget(instance: Instance, gate: Gate, request: Request) -> Response:
    """Count what would go; with `yes` forget it: nobody is told it when this is answered."""
    gate.operator(request)
    fields = await fields_of(request, _BODY_BYTES_MAX)
    yes = fields.get("yes", False)
    if not isinstance(yes, bool):
        raise BadRequest("yes must be true or false")
    told = await (forgotten if yes else would_go)(instance, asked_in(fields))
    return JSONResponse({**told, "stopping": instance.halt.asked})


async def settled(instance: Instance, gate: Gate, request: Request) -> Response:
    """Wait until nothing is left to be forgotten, `wait_s` seconds at most; say whether."""
    gate.operator(request)
    wait_s = (await fields_of(request, _BODY_BYTES_MAX)).get("wait_s", _WAIT_S_MAX)
    if isinstance(wait_s, bool) or not isinstance(wait_s, int | float) or not 0 <= wait_s <= _WAIT_S_MAX:
        raise BadRequest(f"wait_s must be a number of at most {_WAIT_S_MAX:.0f}")
    return JSONResponse({"settled": await instance.forgetter.settled(wait_s * 1_000)})


async def undo(instance: Instance, gate: Gate, request: Request) -> Response:
    """Put back what a request took, while it can be undone."""
    gate.operator(request)
    name = (await fields_of(request, _BODY_BYTES_MAX)).get("id")
    if not isinstance(name, str):
        raise BadRequest("id must name a request to forget: fgt_...")
    return JSONResponse(await undone(instance, name))
