"""The operator's routes: what the owner's commands ask of a running instance."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import read, show
from keepsaid.domain.text import normalise
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import BadRequest, NotFound, body_of, parsed
from keepsaid.interfaces.notes import note
from keepsaid.interfaces.shapes import reply_shape

_BODY_BYTES_MAX = 1_000_000


class OperatorRoutes:
    """Replies to pull, batches to requeue, memories to add."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._instance = instance
        self._gate = gate

    async def replies(self, request: Request) -> Response:
        """Replies of a channel's conversation that nobody has seen."""
        self._gate.operator(request)
        query = request.query_params
        unseen = await self._instance.operations.unseen(query.get("channel", ""), query.get("conversation", ""))
        return JSONResponse({"replies": [reply_shape(reply) for reply in unseen]})

    async def seen(self, request: Request) -> Response:
        """A person has seen a reply."""
        self._gate.operator(request)
        reply_id = read("reply", request.path_params["id"])
        if reply_id is None:
            raise NotFound("there is no such reply")
        return JSONResponse({"seen": await self._instance.shown(reply_id)})

    async def requeue(self, request: Request) -> Response:
        """Queue a dead, dropped or parked batch again."""
        self._gate.operator(request)
        fields = parsed(await body_of(request, _BODY_BYTES_MAX))
        batch_id = read("batch", request.path_params["id"])
        if batch_id is None:
            raise NotFound("there is no such batch", hint="keepsaid inbox ls --state dead")
        reason = normalise(str(fields.get("reason") or "requeued by the owner"))
        return JSONResponse({"requeued": await self._instance.requeue(batch_id, reason)})

    async def remember(self, request: Request) -> Response:
        """Add a memory by hand."""
        self._gate.operator(request)
        fields = parsed(await body_of(request, _BODY_BYTES_MAX))
        text, kind = fields.get("text"), fields.get("kind", "fact")
        if not isinstance(text, str) or not isinstance(kind, str):
            raise BadRequest("a memory needs a text")
        memory = note(text, kind, self._instance.clock.now_ms())
        ids = await self._instance.memories.keep([memory], memory.said_at)
        return JSONResponse({"id": show("memory", ids[0])}, 201)
