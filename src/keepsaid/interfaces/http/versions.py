"""The operator's routes for versions: a memory is put right, pinned or merged."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import read, show
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import BadRequest, NotFound
from keepsaid.interfaces.versions import edit, merge, pin, put_away

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

    async def put_away(self, request: Request) -> Response:
        """Archive memories, or bring them back."""
        self._gate.operator(request)
        fields = await fields_of(request, _BODY_BYTES_MAX)
        back = fields.get("back", False)
        if not isinstance(back, bool):
            raise BadRequest("back must be true or false")
        done = await put_away(self._instance, _named(fields.get("ids"), "ids"), back=back)
        return JSONResponse({"ids": [show("memory", one) for one in done], "back": back})

    async def merge(self, request: Request) -> Response:
        """Have a memory stand for others that say the same."""
        memory_id, fields = await self._asked(request)
        known = _named(fields.get("others"), "others")
        await merge(self._instance, memory_id, known)
        return JSONResponse({"id": show("memory", memory_id), "merged": [show("memory", one) for one in known]})

    async def _asked(self, request: Request) -> tuple[int, dict[str, object]]:
        self._gate.operator(request)
        fields = await fields_of(request, _BODY_BYTES_MAX)
        memory_id = read("memory", request.path_params["id"])
        if memory_id is None:
            raise NotFound("there is no such memory", hint="keepsaid memory ls")
        return memory_id, dict(fields)


def _named(given: object, field: str) -> list[int]:
    """The memories that a list names."""
    named = given if isinstance(given, list) else []
    known = [number for one in named if isinstance(one, str) and (number := read("memory", one)) is not None]
    if not known or len(known) < len(named):
        raise BadRequest(f"{field} must be a list of memories: mem_...")
    return known
