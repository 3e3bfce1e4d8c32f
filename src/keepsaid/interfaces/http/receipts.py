"""The operator's routes for receipts: a turn explained, where a memory came up, and that it was wrong."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import read, show
from keepsaid.domain.memory import Listener, Memory
from keepsaid.interfaces.absence import absence, listened
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.problems import BadRequest, NotFound, written_aside
from keepsaid.interfaces.judging import judge
from keepsaid.interfaces.shapes import USES_MAX, absent_shape, came_up_shape, turn_shape

_BODY_BYTES_MAX = 10_000
_OWNER = Listener(None, everything=True)


class ReceiptRoutes:
    """Why a turn was shown what it was shown, and a person's word on that."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._instance = instance
        self._gate = gate

    async def turn(self, request: Request) -> Response:
        """One turn with its context, steps and receipts."""
        self._gate.operator(request)
        turn_id = read("turn", request.path_params["id"])
        story = None if turn_id is None else await self._instance.operations.turn(turn_id)
        if story is None:
            raise NotFound("there is no such turn", hint="keepsaid why")
        return await written_aside(lambda: {"turn": turn_shape(story)})

    async def absent(self, request: Request) -> Response:
        """Why a turn was not shown a memory."""
        self._gate.operator(request)
        turn_id = read("turn", request.path_params["id"])
        story = None if turn_id is None else await self._instance.operations.turn(turn_id)
        if story is None:
            raise NotFound("there is no such turn", hint="keepsaid why")
        memory = await self._memory(request.path_params["memory"])
        heard = await self._instance.memories.get(listened(story), memory.id) is not None
        return JSONResponse(absent_shape(story, memory, absence(story, memory, heard=heard)))

    async def came_up(self, request: Request) -> Response:
        """The turns a memory was shown to, opened in or left out of, and what was said of that."""
        self._gate.operator(request)
        memory = await self._memory(request.path_params["id"])
        uses = await self._instance.operations.uses(memory.id, USES_MAX)
        return JSONResponse(came_up_shape(memory, uses, await self._instance.operations.feedback(memory.id)))

    async def _memory(self, name: str) -> Memory:
        memory_id = read("memory", name)
        memory = None if memory_id is None else await self._instance.memories.get(_OWNER, memory_id)
        if memory is None:
            raise NotFound("there is no such memory", hint="keepsaid memory ls")
        return memory

    async def wrong(self, request: Request) -> Response:
        """A memory was wrong for a turn, or that is withdrawn."""
        self._gate.operator(request)
        fields = await fields_of(request, _BODY_BYTES_MAX)
        memory_id, turn, undo = read("memory", request.path_params["id"]), fields.get("turn"), fields.get("undo", False)
        if memory_id is None:
            raise NotFound("there is no such memory", hint="keepsaid memory ls")
        turn_id = read("turn", turn) if isinstance(turn, str) else None
        if turn_id is None or not isinstance(undo, bool):
            raise BadRequest("say the turn that was shown the memory as text, and undo as true or false")
        done = await judge(self._instance, memory_id, turn_id, undo=undo)
        return JSONResponse({"memory": show("memory", memory_id), "turn": show("turn", turn_id), "done": done})
