"""Routes for the owner's commands on a running instance: settings, lanes, extraction."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import read, show
from keepsaid.domain.lane import Lane
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.responses import BadRequest, NotFound, read_limit, render_in_thread
from keepsaid.interfaces.shapes import maintained_shape, prune_shape, reloaded_shape, reply_shape
from keepsaid.text.normal import normalise

_BODY_BYTES_MAX = 1_000_000
_NAME_CHARS_MAX = 200
_DEFAULT_ROWS = 100
_PRUNE_MS = 5_000
"""How long one request may prune or maintain; what is left is for the next."""


class OperatorRoutes:
    """Replies to pull or settle, batches to drop or requeue, memories to add."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._instance = instance
        self._gate = gate
        self._inbox = instance.services.inbox

    async def replies(self, request: Request) -> Response:
        """The first replies of a channel's conversation that nobody has seen."""
        self._gate.operator(request)
        query, limit = request.query_params, read_limit(request, _DEFAULT_ROWS)
        place = query.get("channel", ""), query.get("conversation", "")
        unseen = await self._instance.operations.unseen(*place, limit)
        return await render_in_thread(lambda: {"replies": [reply_shape(reply) for reply in unseen]})

    async def seen(self, request: Request) -> Response:
        """A person has seen a reply, maybe under a name that its medium gave it."""
        self._gate.operator(request)
        reply_id = read("reply", request.path_params["id"])
        if reply_id is None:
            raise NotFound("there is no such reply")
        given = (await fields_of(request, _BODY_BYTES_MAX, empty=True)).get("provider_id")
        if given is not None and not (isinstance(given, str) and 0 < len(given) <= _NAME_CHARS_MAX):
            raise BadRequest(f"provider_id must be text of 1 to {_NAME_CHARS_MAX} characters")
        return JSONResponse({"seen": await self._inbox.mark_seen(reply_id, given and normalise(given))})

    async def resend(self, request: Request) -> Response:
        """Send a dead reply again, or accept that it will not arrive."""
        self._gate.operator(request)
        fields = await fields_of(request, _BODY_BYTES_MAX)
        reply_id, accept = read("reply", request.path_params["id"]), fields.get("accept", False)
        if reply_id is None:
            raise NotFound("there is no such reply", hint="keepsaid inbox ls --reply dead")
        if not isinstance(accept, bool):
            raise BadRequest("accept must be true or false")
        return JSONResponse({"done": await self._inbox.settle_reply(reply_id, again=not accept)})

    async def requeue(self, request: Request) -> Response:
        """Queue a dead, dropped or parked batch again."""
        batch_id, reason = await self._decided(request, "dead")
        return JSONResponse({"requeued": await self._inbox.requeue(batch_id, reason or "requeued by the owner")})

    async def drop(self, request: Request) -> Response:
        """Drop a batch that waits; it can be requeued."""
        batch_id, reason = await self._decided(request, "batched")
        return JSONResponse({"dropped": await self._inbox.drop(batch_id, reason or "dropped by the owner")})

    async def _decided(self, request: Request, state: str) -> tuple[int, str]:
        """The batch a call decides about, and why; `state` is where such batches are listed."""
        self._gate.operator(request)
        fields = await fields_of(request, _BODY_BYTES_MAX)
        batch_id = read("batch", request.path_params["id"])
        if batch_id is None:
            raise NotFound("there is no such batch", hint=f"keepsaid inbox ls --state {state}")
        return batch_id, str(fields.get("reason") or "")

    async def prune(self, request: Request) -> Response:
        """Remove what was settled long ago, for a few seconds; `over` says whether that was all."""
        self._gate.operator(request)
        run = await self._instance.pruner.run(_PRUNE_MS)
        return JSONResponse(prune_shape(run, stopping=self._instance.halt.is_set))

    async def maintain(self, request: Request) -> Response:
        """Look after memory, for a few seconds; `over` says whether that was all."""
        self._gate.operator(request)
        done = await self._instance.maintenance.run(_PRUNE_MS)
        return JSONResponse(maintained_shape(done, stopping=self._instance.halt.is_set))

    async def remember(self, request: Request) -> Response:
        """Add a memory by hand."""
        self._gate.operator(request)
        fields = await fields_of(request, _BODY_BYTES_MAX)
        text, kind = fields.get("text"), "fact" if fields.get("kind") is None else fields["kind"]
        if not isinstance(text, str) or not isinstance(kind, str):
            raise BadRequest("kind must be text" if isinstance(text, str) else "a memory needs a text")
        added = await self._instance.services.memories.add(text, kind)
        told = {"id": show("memory", added.id), "redacted": dict(added.redacted), "lifted": added.lifted}
        return JSONResponse(told, 201)


_LANE_BYTES_MAX = 100_000
_FIND = "keepsaid lanes ls"
_PARTS = ("channel", "account", "conversation", "key")


class LaneRoutes:
    """What the owner does to a lane."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._instance = instance
        self._gate = gate

    async def reset(self, request: Request) -> Response:
        """Begin a lane anew; what was said stays stored."""
        lane, _ = await self._lane(request)
        return JSONResponse({"records": await self._instance.services.inbox.reset_lane(lane)})

    async def compact(self, request: Request) -> Response:
        """Summarise a lane if it is due; with `now`, all but its newest messages."""
        lane, at_once = await self._lane(request)
        return JSONResponse({"told": await self._instance.compactor.compact_on_request(lane, at_once=at_once)})

    async def _lane(self, request: Request) -> tuple[Lane, bool]:
        """The lane a call names, and whether it is in a hurry; raises BadRequest, NotFound for one nobody spoke in."""
        self._gate.operator(request)
        fields = await fields_of(request, _LANE_BYTES_MAX)
        given = [fields.get(part) for part in _PARTS]
        names = [part for part in given if isinstance(part, str) and part]
        if len(names) != len(_PARTS):
            raise BadRequest(f"a lane is named by {', '.join(_PARTS)}, each a text")
        lane = Lane(*names)
        if await self._instance.operations.line(lane) is None:
            place = f"{lane.conversation} on {lane.channel}, account {lane.account}"
            raise NotFound(f"there is no lane {lane.key} of {place}", safe="Nothing was changed.", hint=_FIND)
        return lane, fields.get("now") is True


_EXTRACTION_BYTES_MAX = 10_000


class CollectionRoutes:
    """What the owner says of collection."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._instance = instance
        self._gate = gate

    async def run(self, request: Request) -> Response:
        """Mark one session, or every one with unread records; the collector reads them next."""
        self._gate.operator(request)
        named = (await fields_of(request, _EXTRACTION_BYTES_MAX)).get("session")
        session_id = None if named is None else _number(str(named))
        marked = await self._instance.collecting.mark(session_id)
        return JSONResponse({"marked": marked, "stopping": self._instance.halt.is_set})

    async def requeue(self, request: Request) -> Response:
        """Read a parked session again."""
        self._gate.operator(request)
        session_id = _number(request.path_params["id"])
        return JSONResponse({"requeued": await self._instance.collecting.requeue(session_id)})


def _number(named: str) -> int:
    number = read("session", named)
    if number is None:
        raise NotFound(f"there is no session {named}", safe="Nothing was changed.", hint="keepsaid collect ls")
    return number


async def reload(instance: Instance, gate: Gate, request: Request) -> Response:
    """Read the config again; what is wrong with it is the answer, and nothing was changed then."""
    gate.operator(request)
    return JSONResponse(reloaded_shape(await instance.reloading.reload()))
