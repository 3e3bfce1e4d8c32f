"""Routes for batches: leased to workers that answer in place of turns, and dropped or queued again by the owner."""

from __future__ import annotations

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import show, when
from keepsaid.domain.message import StoredMessage
from keepsaid.domain.principal import Scope
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.errors import InputError
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute, no_such
from keepsaid.interfaces.http.responses import BadRequest
from keepsaid.interfaces.schema import FLAG, TEXT, WHOLE, between, gives, many, perhaps, ref, takes
from keepsaid.interfaces.shapes import Shape, fields_of

_LEASES_MAX, _LEASE_S, _LEASE_S_MAX, _WAIT_S_MAX = 64, 60, 3_600, 60
_WORKER_CHARS_MAX = 100


async def lease(instance: Instance, call: OwnerCall) -> Shape:
    """Lease batches that are ready; waits for the first, for `wait_s` seconds at most."""
    if instance.config.turns.answered_by != "workers":
        what = "this runtime answers batches itself"
        raise InputError(what, safe="Nothing was leased.", hint="keepsaid config set turns.answered_by workers")
    limit = _number(call, "limit", 1, _LEASES_MAX, 1)
    lease_s = _number(call, "lease_s", 1, _LEASE_S_MAX, _LEASE_S)
    wait_s = _number(call, "wait_s", 0, _WAIT_S_MAX, 0)
    service = instance.services.batches
    found = await service.lease(limit, lease_s * 1_000, wait_s * 1_000)
    return {"batches": [_leased_shape(one, service.bounded_ms(one, lease_s * 1_000) // 1_000) for one in found]}


async def renew(instance: Instance, call: OwnerCall) -> Shape:
    """Hold a lease for longer, from now on."""
    batch_id, fence = _lease_of(call)
    lease_s = _number(call, "lease_s", 1, _LEASE_S_MAX, _LEASE_S)
    await instance.services.batches.renew(batch_id, fence, lease_s * 1_000)
    return {"lease_s": lease_s}


async def done(instance: Instance, call: OwnerCall) -> Shape:
    """Settle a batch, with the reply in the same commit; told again under the same lease, it changes nothing."""
    service, reply = instance.services.batches, call.text("reply")
    worker = call.text("worker")[:_WORKER_CHARS_MAX] or "http"
    if (claimed := await service.find(*_lease_of(call))) is None:
        return {"state": "done", "reply": None, "duplicate": True}
    reply_id = await service.done(claimed, reply, worker)
    return {"state": "done", "reply": None if reply_id is None else show("reply", reply_id), "duplicate": False}


async def fail(instance: Instance, call: OwnerCall) -> Shape:
    """Charge a batch an attempt; returns the state that this led to."""
    service, reason = instance.services.batches, call.text("reason") or "the worker gave no reason"
    if (claimed := await service.find(*_lease_of(call))) is None:
        return {"state": "done"}
    return {"state": await service.fail(claimed, reason)}


async def requeue(instance: Instance, call: OwnerCall) -> Shape:
    """Queue a dead, dropped or parked batch again."""
    batch_id, reason = call.id_of("batch", "keepsaid inbox ls --state dead"), str(call.fields.get("reason") or "")
    return {"requeued": await instance.services.inbox.requeue(batch_id, reason or "requeued by the owner")}


async def drop(instance: Instance, call: OwnerCall) -> Shape:
    """Drop a batch that waits; it can be requeued."""
    batch_id, reason = call.id_of("batch", "keepsaid inbox ls --state batched"), str(call.fields.get("reason") or "")
    return {"dropped": await instance.services.inbox.drop(batch_id, reason or "dropped by the owner")}


def _lease_of(call: OwnerCall) -> tuple[int, int]:
    """The batch and the fence in the path. Raises NotFound for what is none."""
    fence = str(call.request.path_params["fence"])
    if not (fence.isascii() and fence.isdigit() and len(fence) < len(str(1 << 63))):
        raise no_such("batch")
    return call.id_of("batch"), int(fence)


def _number(call: OwnerCall, name: str, least: int, most: int, default: int) -> int:
    value = call.fields.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise BadRequest(f"{name} must be a whole number from {least} to {most}")
    return value


def _leased_shape(claimed: ClaimedBatch, lease_s: int) -> Shape:
    batch = claimed.batch
    return {
        "id": show("batch", batch.id),
        "fence": batch.fence,
        "lease_s": lease_s,
        "turn": show("turn", claimed.turn_id),
        **fields_of(batch.lane, "channel", "account", "conversation"),
        "lane": batch.lane.key,
        "priority": batch.priority,
        "attempts": batch.attempts,
        "messages": [_message_shape(one) for one in claimed.all_messages],
    }


def _message_shape(message: StoredMessage) -> Shape:
    inbound = message.inbound
    return {
        "id": show("message", message.id),
        **fields_of(inbound.origin, "sender", "name", "direct"),
        "trust": str(inbound.origin.trust),
        "event": inbound.content.event,
        "external_id": inbound.marks.external_id,
        "reply_to": inbound.marks.reply_to,
        "text": message.text,
        "received_at": when(message.received_at),
    }


_LEASE_TIME = between(1, _LEASE_S_MAX, _LEASE_S)
_LEASE = takes(limit=between(1, _LEASES_MAX, 1), lease_s=_LEASE_TIME, wait_s=between(0, _WAIT_S_MAX, 0))
_SETTLED = gives(state=TEXT, reply=perhaps(TEXT), duplicate=FLAG)

ROUTES = (
    OwnerRoute(
        "POST",
        "/v1/batches:lease",
        lease,
        10_000,
        long=True,
        empty=True,
        scopes=(Scope.OPERATE,),
        takes=_LEASE,
        gives=gives(batches=many(ref("LeasedBatch"))),
    ),
    OwnerRoute(
        "POST",
        "/v1/batches/{id}/{fence}/renew",
        renew,
        10_000,
        empty=True,
        scopes=(Scope.OPERATE,),
        takes=takes(lease_s=_LEASE_TIME),
        gives=gives(lease_s=WHOLE),
    ),
    OwnerRoute(
        "POST",
        "/v1/batches/{id}/{fence}/done",
        done,
        4_000_000,
        scopes=(Scope.OPERATE,),
        takes=takes(reply=TEXT, worker=TEXT),
        gives=_SETTLED,
    ),
    OwnerRoute(
        "POST",
        "/v1/batches/{id}/{fence}/fail",
        fail,
        1_000_000,
        scopes=(Scope.OPERATE,),
        takes=takes(reason=TEXT),
        gives=gives(state=TEXT),
    ),
    OwnerRoute(
        "POST", "/v1/batches/{id}/requeue", requeue, 1_000_000, takes=takes(reason=TEXT), gives=gives(requeued=FLAG)
    ),
    OwnerRoute("POST", "/v1/batches/{id}/drop", drop, 1_000_000, takes=takes(reason=TEXT), gives=gives(dropped=FLAG)),
)
