"""Reload over HTTP: the settings are read again, and the answer says what of them is in force."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.shapes import reloaded_shape


async def reload(instance: Instance, gate: Gate, request: Request) -> Response:
    """Read the config again; what is wrong with it is the answer, and nothing was changed then."""
    gate.operator(request)
    return JSONResponse(reloaded_shape(await instance.reloading.reload()))
