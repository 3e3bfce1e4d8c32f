"""Routes for batches: leased to workers that answer in place of turns, and dropped or queued again by the owner."""

from __future__ import annotations

from collections.abc import Mapping

from keepsaid.app.instance import Instance
from keepsaid.domain.principal import Scope
from keepsaid.interfaces import worker_calls
from keepsaid.interfaces.agent_fields import CALL_FIELDS
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute, no_such
from keepsaid.interfaces.http.responses import BadRequest
from keepsaid.interfaces.schema import FLAG, TEXT, Schema, gives, takes
from keepsaid.interfaces.shapes import Shape
from keepsaid.interfaces.worker_shapes import lease_in


async def lease(instance: Instance, call: OwnerCall) -> Shape:
    """Lease batches that are ready; waits for the first, for `wait_s` seconds at most."""
    _check_fields("pull", call.fields)
    return await worker_calls.pull(instance, call.who, call.fields)


async def renew(instance: Instance, call: OwnerCall) -> Shape:
    """Hold a lease for longer, from now on."""
    return await worker_calls.renew(instance, call.who, _with_lease("renew", call))


async def done(instance: Instance, call: OwnerCall) -> Shape:
    """Settle a batch, with the reply in the same commit; told again under the same lease, it changes nothing."""
    return await worker_calls.done(instance, call.who, {"worker": "http", **_with_lease("done", call)})


async def fail(instance: Instance, call: OwnerCall) -> Shape:
    """Charge a batch an attempt; returns the state that this led to."""
    return await worker_calls.fail(instance, call.who, _with_lease("fail", call))


async def release(instance: Instance, call: OwnerCall) -> Shape:
    """Queue a batch again without charging it an attempt."""
    return await worker_calls.release(instance, call.who, _with_lease("release", call))


async def requeue(instance: Instance, call: OwnerCall) -> Shape:
    """Queue a dead, dropped or parked batch again."""
    batch_id, reason = call.id_of("batch", "keepsaid inbox ls --state dead"), str(call.fields.get("reason") or "")
    return {"requeued": await instance.services.inbox.requeue(batch_id, reason or "requeued by the owner")}


async def drop(instance: Instance, call: OwnerCall) -> Shape:
    """Drop a batch that waits; it can be requeued."""
    batch_id, reason = call.id_of("batch", "keepsaid inbox ls --state batched"), str(call.fields.get("reason") or "")
    return {"dropped": await instance.services.inbox.drop(batch_id, reason or "dropped by the owner")}


def _with_lease(name: str, call: OwnerCall) -> dict[str, object]:
    """The fields of a call about the lease in the path. Raises NotFound where that is none."""
    handle = f"{call.request.path_params['id']}/{call.request.path_params['fence']}"
    if lease_in(handle) is None:
        raise no_such("batch")
    _check_fields(name, call.fields)
    return {**call.fields, "lease": handle}


def _check_fields(name: str, fields: Mapping[str, object]) -> None:
    """Raise BadRequest for a field of a call that is not of its type, or not within its bounds."""
    for field, schema in CALL_FIELDS[name].takes["properties"].items():
        value = fields.get(field, schema.get("default", ""))
        if schema["type"] == "string" and value is not None and not isinstance(value, str):
            raise BadRequest(f"{field} must be text")
        if schema["type"] == "integer":
            least, most = schema["minimum"], schema["maximum"]
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise BadRequest(f"{field} must be a whole number from {least} to {most}")


def _worker_route(name: str, route: OwnerRoute) -> OwnerRoute:
    """A route that is a call; of its fields, the lease stands in the path."""
    call = CALL_FIELDS[name]
    fields: dict[str, Schema] = {name: one for name, one in call.takes["properties"].items() if name != "lease"}
    return route._replace(scopes=(Scope.OPERATE,), takes=takes(**fields), gives=call.gives)


_LEASE = "/v1/batches/{id}/{fence}"
_REASON = takes(reason=TEXT)

ROUTES = (
    _worker_route("pull", OwnerRoute("POST", "/v1/batches:lease", lease, 10_000, long=True, empty=True)),
    _worker_route("renew", OwnerRoute("POST", f"{_LEASE}/renew", renew, 10_000, empty=True)),
    _worker_route("done", OwnerRoute("POST", f"{_LEASE}/done", done, 4_000_000)),
    _worker_route("fail", OwnerRoute("POST", f"{_LEASE}/fail", fail, 1_000_000)),
    _worker_route("release", OwnerRoute("POST", f"{_LEASE}/release", release, 10_000, empty=True)),
    OwnerRoute("POST", "/v1/batches/{id}/requeue", requeue, 1_000_000, takes=_REASON, gives=gives(requeued=FLAG)),
    OwnerRoute("POST", "/v1/batches/{id}/drop", drop, 1_000_000, takes=_REASON, gives=gives(dropped=FLAG)),
)
