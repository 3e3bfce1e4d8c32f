"""Stopping: a request that takes long is answered before the server goes, whatever it was at."""

from __future__ import annotations

import asyncio

from starlette.requests import Request
from starlette.responses import Response

from keepsaid.errors import Stopping
from keepsaid.interfaces.http.problems import Endpoint
from keepsaid.ports.runtime import Halt

_GRACE_S = 0.5
"""So long a request has to end by itself once a stop has begun; the server waits for twice that."""


def ending(endpoint: Endpoint, halt: Halt) -> Endpoint:
    """An endpoint that is broken off soon after a stop has begun, with an answer that says so.

    What works in steps looks at `halt` by itself and tells how far it came; this is for the rest.
    """

    async def wrapped(request: Request) -> Response:
        work = asyncio.ensure_future(endpoint(request))
        stop = asyncio.ensure_future(halt.wait())
        try:
            await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await asyncio.wait((work,), timeout=_GRACE_S)
            if work.done():
                return work.result()
            raise Stopping(f"the runtime is stopping; {request.url.path} was broken off")
        finally:
            stop.cancel()
            work.cancel()

    return wrapped
