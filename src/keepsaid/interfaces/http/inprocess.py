"""In process: a route of the server, called as its owner by a command that holds the home itself, without a server."""

from __future__ import annotations

import asyncio
import secrets
from urllib.parse import unquote, urlsplit

from starlette.types import Message

from keepsaid.app.instance import Instance
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.server import application

_HOST = "127.0.0.1"


async def call(instance: Instance, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
    """Post to a route; returns the status and the body of the response."""
    token = secrets.token_urlsafe()
    app = application(instance, Gate(_HOST, token, None), asyncio.Event())
    sent = {"Host": _HOST, "Authorization": f"Bearer {token}", "Content-Type": "application/json", **headers}
    place = urlsplit(path)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": unquote(place.path),
        "raw_path": place.path.encode(),
        "query_string": place.query.encode(),
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in sent.items()],
        "client": (_HOST, 0),
        "server": (_HOST, 0),
    }
    given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    answered: list[Message] = []

    async def receive() -> Message:
        return given.pop() if given else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        answered.append(message)

    try:
        await app(scope, receive, send)
    finally:
        app.state.bodies.readers.close()
    return answered[0]["status"], b"".join(one.get("body", b"") for one in answered[1:])
