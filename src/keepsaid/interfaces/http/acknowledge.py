"""The acknowledgement: what a provider is told once its message is on disk, and never before."""

from __future__ import annotations

from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from keepsaid.ports.failpoints import point


class Acknowledgement(JSONResponse):
    """A receipt on its way out."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        point("acknowledge.before")
        await super().__call__(scope, receive, send)
        point("acknowledge.after")
