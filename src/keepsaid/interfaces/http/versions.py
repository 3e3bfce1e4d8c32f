"""The operator's routes for versions: a memory is put right, pinned or merged."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import read, show
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import BadRequest, NotFound, body_of, parsed
from keepsaid.interfaces.versions import edit, merge, pin

_BODY_BYTES_MAX = 100_000


class VersionRoutes:
    """The owner's hand on memories."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._instance = instance
        self._gate = gate

    async def edit(self, request: Request) -> Response:
        """Put a memory right; answers with the one that took its place."""
        memory_id, fields = await self._asked(request)
        text, value = fields.get("text"), fields.get("value") or ""
        if not isinstance(text, str) or not isinstance(value, str):
            raise BadRequest("say the new text, and its value, as text")
        done = await edit(self._instance, memory_id, text, value)
        return JSONResponse({"id": show("memory", done.memory_id), "how": str(done.how)})

    async def pin(self, request: Request) -> Response:
        """Pin a memory, or take the pin out."""
        memory_id, fields = await self._asked(request)
        pinned = fields.get("pinned", True)
        if not isinstance(pinned, bool):
            raise BadRequest("pinned must be true or false")
        await pin(self._instance, memory_id, pinned=pinned)
        return JSONResponse({"id": show("memory", memory_id), "pinned": pinned})

    async def merge(self, request: Request) -> Response:
        """Have a memory stand for others that say the same."""
        memory_id, fields = await self._asked(request)
        named = fields.get("others")
        others = [read("memory", one) for one in named if isinstance(one, str)] if isinstance(named, list) else []
        known = [one for one in others if one is not None]
        if not known or not isinstance(named, list) or len(known) < len(named):
            raise BadRequest("others must be a list of memories: mem_...")
        await merge(self._instance, memory_id, known)
        return JSONResponse({"id": show("memory", memory_id), "merged": [show("memory", one) for one in known]})

    async def _asked(self, request: Request) -> tuple[int, dict[str, object]]:
        self._gate.operator(request)
        fields = parsed(await body_of(request, _BODY_BYTES_MAX))
        memory_id = read("memory", request.path_params["id"])
        if memory_id is None:
            raise NotFound("there is no such memory", hint="keepsaid memory ls")
        return memory_id, dict(fields)
