"""GitHub as tests play it: issues with comments, a diff, and deliveries of a webhook, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from urllib.parse import parse_qs

from keepsaid.domain.prompt import Json
from keepsaid.testing.listener import ListeningServer
from keepsaid.testing.model_http import JSON, Connection, GoneError, HttpRequest
from keepsaid.testing.webhooks import sign
from keepsaid.values import frozen

TOKEN = "ghs_of_a_test"
DIFF = "diff --git a/lamp.py b/lamp.py\n+light = on\n"


@frozen
class Refused:
    """An answer that GitHub gives instead of doing what was asked."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    message: str = "no"


TAKE_AND_RESET = Refused(-1)
"""Do what was asked, and reset the connection instead of an answer."""

TAKE_AND_HANG = Refused(-2)
"""Do what was asked, and never answer."""

DROP = Refused(-3)
"""Reset the connection before anything was read."""


class GitHubServer(ListeningServer):
    """Plays the API on a loopback port; an async context manager.

    `reactions` are those to the next requests whose method and path contain a text; without one all is done.
    """

    def __init__(self, page: int = 100) -> None:
        super().__init__(self._serve, 0)
        self.comments: list[dict[str, Json]] = []
        self.reactions: list[tuple[str, Refused]] = []
        self.requests: list[HttpRequest] = []
        self.deliveries: list[dict[str, Json]] = []
        self.diff = DIFF
        self._page = page
        self._news = asyncio.Condition()

    async def wait_for(self, method: str, count: int, within_s: float = 120.0) -> None:
        """Wait until so many requests with this method have come; raises TimeoutError."""
        async with asyncio.timeout(within_s), self._news:
            await self._news.wait_for(lambda: sum(one.method == method for one in self.requests) >= count)

    async def _serve(self, connection: Connection) -> None:
        try:
            with suppress(GoneError):
                await self._answer(connection)
        finally:
            await connection.close()

    async def _answer(self, connection: Connection) -> None:
        if self.reactions and self.reactions[0][1] is DROP:
            self.reactions.pop(0)
            await connection.reset()
            return
        request = await connection.receive()
        reaction = self._reaction(request)
        if reaction is None or reaction.status < 0:
            status, kind, body, extra = self._done(request)
        else:
            body = json.dumps({"message": reaction.message}).encode()
            status, kind, extra = reaction.status, JSON, dict(reaction.headers)
        async with self._news:
            self.requests.append(request)
            self._news.notify_all()
        if reaction is TAKE_AND_RESET:
            await connection.reset()
        elif reaction is TAKE_AND_HANG:
            await connection.pause(None)
        else:
            await connection.send(status, body, kind, {"connection": "close", **extra})

    def _reaction(self, request: HttpRequest) -> Refused | None:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return Refused(401, message="Bad credentials")
        if self.reactions and self.reactions[0][0] in f"{request.method} {request.path}":
            return self.reactions.pop(0)[1]
        return None

    def _done(self, request: HttpRequest) -> tuple[int, str, bytes, Mapping[str, str]]:
        if request.path.endswith("/comments") and request.method == "POST":
            made = {"id": 900 + len(self.comments), "path": request.path, **json.loads(request.body)}
            self.comments.append(made)
            return 201, JSON, json.dumps(made).encode(), {}
        if request.path.endswith("/comments"):
            page = int(parse_qs(request.query)["page"][0])
            shown = [one for one in self.comments if one["path"] == request.path][self._page * (page - 1) :]
            return 200, JSON, json.dumps(shown[: self._page]).encode(), {}
        if "/pulls/" in request.path:
            return 200, "text/plain", self.diff.encode(), {}
        if request.path.endswith("/attempts"):
            return 202, JSON, b"{}", {}
        if request.path.endswith("/deliveries"):
            start = int(parse_qs(request.query).get("cursor", ["0"])[0])
            shown = self.deliveries[start : start + self._page]
            following = start + self._page
            link = f'<{self.url}{request.path}?per_page=100&cursor={following}>; rel="next"'
            return 200, JSON, json.dumps(shown).encode(), {"link": link} if following < len(self.deliveries) else {}
        return 404, JSON, b'{"message": "Not Found"}', {}


SECRET = "a fine secret"  # gitleaks:allow


def hook_headers(event: str, body: bytes, delivery: str = "d-1") -> dict[str, str]:
    """The headers of a webhook."""
    signature = sign(SECRET, body)
    told = {"x-github-event": event, "x-github-delivery": delivery, "x-hub-signature-256": signature}
    return {"content-type": "application/json", **told}


def comment_event(text: str, number: int = 7) -> bytes:
    """The body of a webhook about a comment on an issue."""
    told: Json = {
        "action": "created",
        "issue": {"id": 34, "number": number, "title": "The lamp is dark"},
        "comment": {"id": 12, "body": text},
        "repository": {"id": 9, "full_name": "acme/api"},
        "sender": {"id": 4, "login": "ann"},
    }
    return json.dumps(told).encode()


def pull_event(number: int = 7) -> bytes:
    """The body of a webhook about a pull request that was opened."""
    told: Json = {
        "action": "opened",
        "pull_request": {"id": 9, "number": number, "title": "Mend the lamp", "body": "It was dark."},
        "repository": {"id": 9, "full_name": "acme/api"},
        "sender": {"id": 4, "login": "ann"},
    }
    return json.dumps(told).encode()
