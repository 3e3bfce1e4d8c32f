"""Media over HTTP: whoever runs a bot hands over what its medium sent, as it came."""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.media import MEDIA
from keepsaid.config import Config
from keepsaid.domain.attachment import Posted, Unsaid
from keepsaid.domain.message import Inbound
from keepsaid.interfaces.http.inbound import inbound_of
from keepsaid.interfaces.http.messages import Messages
from keepsaid.interfaces.http.problems import BadRequest, NotFound

_ASKED = ("channel", "account", "reply_url")


class Media:
    """The routes under /v1/media; what comes in there goes the way of all messages."""

    def __init__(self, config: Config, messages: Messages) -> None:
        self._config = config
        self._messages = messages

    async def put(self, request: Request) -> Response:
        """Take the message of a raw object in; 200 with the reason where it holds none."""
        body, fields = await self._messages.taken(request)
        medium = request.path_params["medium"]
        if medium not in MEDIA:
            hint = "webhooks of GitHub go to /hooks/github" if medium == "github" else "see docs/reference/http.md"
            raise NotFound(f"there is no medium {medium!r}; known: {', '.join(sorted(MEDIA))}", hint=hint)
        for name in request.query_params:
            if name not in _ASKED:
                raise BadRequest(f"unknown parameter {name!r}; known: {', '.join(_ASKED)}")
        posted = MEDIA[medium](fields)
        if isinstance(posted, Unsaid):
            return JSONResponse({"ignored": posted.reason})
        return await self._messages.keep(request, self._inbound(request, posted, body))

    def _inbound(self, request: Request, posted: Posted, body: bytes) -> Inbound:
        fields: dict[str, object] = {
            "text": posted.text,
            "sender": posted.sender,
            "conversation": posted.conversation,
            "name": posted.name,
            "direct": posted.direct,
            "topic": posted.topic,
            "provider_id": posted.provider_id,
            "reply_to": posted.reply_to,
            **request.query_params,
        }
        key = request.headers.get("idempotency-key", posted.delivery)
        inbound = inbound_of(self._config, fields, body, key)
        return replace(inbound, content=replace(inbound.content, event=posted.event))
