"""Forgetting over HTTP: what would go, or a request to forget and its receipt so far."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.interfaces.forgetting import asked_in, forgotten, would_go
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import BadRequest, body_of, parsed

_BODY_BYTES_MAX = 1_000_000


async def forget(instance: Instance, gate: Gate, request: Request) -> Response:
    """Count what would go; with `yes` forget it: nobody is told it when this is answered."""
    gate.operator(request)
    fields = parsed(await body_of(request, _BODY_BYTES_MAX))
    yes = fields.get("yes", False)
    if not isinstance(yes, bool):
        raise BadRequest("yes must be true or false")
    told = await (forgotten if yes else would_go)(instance, asked_in(fields))
    return JSONResponse({**told, "stopping": instance.halt.asked})
