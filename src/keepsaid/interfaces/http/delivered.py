"""Delivered responses: a response that does something once its body was handed to a client that is still there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send


class Delivered(JSONResponse):
    """A JSON response; `then` is awaited after its body was sent, never when the client left before."""

    def __init__(self, content: Any, then: Callable[[], Awaitable[None]]) -> None:
        super().__init__(content)
        self._then = then

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, all but the last byte before `then`, so that whoever has the whole body sees what `then` did."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body[:-1], "more_body": True})
        # the server lets this wait until the client has read most of the body
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        if await Request(scope, receive).is_disconnected():
            return
        await self._then()
        await send({"type": "http.response.body", "body": self.body[-1:], "more_body": False})
