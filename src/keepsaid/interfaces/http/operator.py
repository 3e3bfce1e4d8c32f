"""Routes for the owner's commands on a running instance: replies, batches, lanes, extraction, settings."""

from __future__ import annotations

from typing import Any

from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import read, show
from keepsaid.domain.lane import Lane
from keepsaid.interfaces.fields import Shape
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute
from keepsaid.interfaces.http.responses import BadRequest, NotFound, read_limit, render_in_thread
from keepsaid.interfaces.shapes import maintained_shape, prune_shape, reloaded_shape, reply_shape
from keepsaid.text.normal import normalise

_NAME_CHARS_MAX = 200
_DEFAULT_ROWS = 100
_PRUNE_MS = 5_000
"""How long one request may prune or maintain; what is left is for the next."""

_LANE_PARTS = ("channel", "account", "conversation", "key")


async def list_replies(instance: Instance, call: OwnerCall) -> Response:
    """The first replies of a channel's conversation that nobody has seen."""
    query, limit = call.request.query_params, read_limit(call.request, _DEFAULT_ROWS)
    unseen = await instance.operations.unseen(query.get("channel", ""), query.get("conversation", ""), limit)
    return await render_in_thread(lambda: {"replies": [reply_shape(reply) for reply in unseen]})


async def mark_seen(instance: Instance, call: OwnerCall) -> Shape:
    """Record that a person has seen a reply, maybe under a name that its medium gave it."""
    reply_id, name = call.id_of("reply"), call.fields.get("provider_id")
    if name is not None and not (isinstance(name, str) and 0 < len(name) <= _NAME_CHARS_MAX):
        raise BadRequest(f"provider_id must be text of 1 to {_NAME_CHARS_MAX} characters")
    return {"seen": await instance.services.inbox.mark_seen(reply_id, name and normalise(name))}


async def resend(instance: Instance, call: OwnerCall) -> Shape:
    """Send a dead reply again, or accept that it will not arrive."""
    reply_id, accept = call.id_of("reply", "keepsaid inbox ls --reply dead"), call.flag("accept")
    return {"done": await instance.services.inbox.settle_reply(reply_id, again=not accept)}


async def requeue_batch(instance: Instance, call: OwnerCall) -> Shape:
    """Queue a dead, dropped or parked batch again."""
    batch_id, reason = call.id_of("batch", "keepsaid inbox ls --state dead"), str(call.fields.get("reason") or "")
    return {"requeued": await instance.services.inbox.requeue(batch_id, reason or "requeued by the owner")}


async def drop_batch(instance: Instance, call: OwnerCall) -> Shape:
    """Drop a batch that waits; it can be requeued."""
    batch_id, reason = call.id_of("batch", "keepsaid inbox ls --state batched"), str(call.fields.get("reason") or "")
    return {"dropped": await instance.services.inbox.drop(batch_id, reason or "dropped by the owner")}


async def prune(instance: Instance, _call: OwnerCall) -> Shape:
    """Remove what was settled long ago, for a few seconds; `over` says whether that was all."""
    return prune_shape(await instance.pruner.run(_PRUNE_MS), stopping=instance.halt.is_set)


async def maintain(instance: Instance, _call: OwnerCall) -> Shape:
    """Run maintenance of memory, for a few seconds; `over` says whether that was all."""
    return maintained_shape(await instance.maintenance.run(_PRUNE_MS), stopping=instance.halt.is_set)


async def add_memory(instance: Instance, call: OwnerCall) -> Response:
    """Add a memory by hand."""
    text, kind = call.fields.get("text"), "fact" if call.fields.get("kind") is None else call.fields["kind"]
    if not isinstance(text, str) or not isinstance(kind, str):
        raise BadRequest("kind must be text" if isinstance(text, str) else "a memory needs a text")
    added = await instance.services.memories.add(text, kind)
    shape = {"id": show("memory", added.id), "redacted": dict(added.redacted), "lifted": added.lifted}
    return JSONResponse(shape, 201)


async def reset_lane(instance: Instance, call: OwnerCall) -> Shape:
    """Begin a lane anew; what was said stays stored."""
    return {"records": await instance.services.inbox.reset_lane(await _lane(instance, call))}


async def compact_lane(instance: Instance, call: OwnerCall) -> Shape:
    """Summarise a lane if it is due; with `now`, all but its newest messages."""
    lane, at_once = await _lane(instance, call), call.fields.get("now") is True
    return {"told": await instance.compactor.compact_on_request(lane, at_once=at_once)}


async def _lane(instance: Instance, call: OwnerCall) -> Lane:
    """The lane a call names; raises BadRequest, and NotFound for one nobody spoke in."""
    otherwise = f"a lane is named by {', '.join(_LANE_PARTS)}, each a text"
    names = call.texts(*_LANE_PARTS, otherwise=otherwise)
    if not all(names):
        raise BadRequest(otherwise)
    lane = Lane(*names)
    if await instance.operations.line(lane) is None:
        place = f"{lane.conversation} on {lane.channel}, account {lane.account}"
        what = f"there is no lane {lane.key} of {place}"
        raise NotFound(what, safe="Nothing was changed.", hint="keepsaid lanes ls")
    return lane


async def run_extraction(instance: Instance, call: OwnerCall) -> Shape:
    """Mark one session, or every one with unread records; the collector reads them next."""
    name = call.fields.get("session")
    marked = await instance.collecting.mark(None if name is None else _session(str(name)))
    return {"marked": marked, "stopping": instance.halt.is_set}


async def requeue_session(instance: Instance, call: OwnerCall) -> Shape:
    """Read a parked session again."""
    return {"requeued": await instance.collecting.requeue(_session(call.request.path_params["id"]))}


def _session(name: str) -> int:
    number = read("session", name)
    if number is None:
        raise NotFound(f"there is no session {name}", safe="Nothing was changed.", hint="keepsaid collect ls")
    return number


async def reload(instance: Instance, _call: OwnerCall) -> dict[str, Any]:
    """Read the config again; what is wrong with it is the answer, and nothing was changed then."""
    return reloaded_shape(await instance.reloading.reload())


ROUTES = (
    OwnerRoute("GET", "/v1/replies", list_replies),
    OwnerRoute("POST", "/v1/replies/{id}/seen", mark_seen, 1_000_000, empty=True),
    OwnerRoute("POST", "/v1/replies/{id}/resend", resend, 1_000_000),
    OwnerRoute("POST", "/v1/batches/{id}/requeue", requeue_batch, 1_000_000),
    OwnerRoute("POST", "/v1/batches/{id}/drop", drop_batch, 1_000_000),
    OwnerRoute("POST", "/v1/lanes/reset", reset_lane, 100_000),
    OwnerRoute("POST", "/v1/lanes/compact", compact_lane, 100_000, long=True),
    OwnerRoute("POST", "/v1/config/reload", reload),
    OwnerRoute("POST", "/v1/prune", prune, long=True),
    OwnerRoute("POST", "/v1/memories", add_memory, 1_000_000),
    OwnerRoute("POST", "/v1/memories/maintain", maintain, long=True),
    OwnerRoute("POST", "/v1/collection/run", run_extraction, 10_000, long=True),
    OwnerRoute("POST", "/v1/collection/{id}/requeue", requeue_session, 10_000),
)
