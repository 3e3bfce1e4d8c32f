"""The inbox by calls: a message of the caller put in; batches leased, held for longer, answered or given back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import show
from keepsaid.domain.message import Content, Inbound, ProviderMarks
from keepsaid.domain.principal import Principal, Scope
from keepsaid.errors import InputError
from keepsaid.interfaces.agent_fields import KEY_CHARS_MAX, LEASE_S, LEASE_S_MAX, LEASES_MAX, WAIT_S_MAX
from keepsaid.interfaces.fields import bounded_field, text_field
from keepsaid.interfaces.shapes import Shape, receipt_shape
from keepsaid.interfaces.worker_shapes import lease_in, leased_shape
from keepsaid.services.assistant import check_scope

_UNSTORED = "Nothing was stored."
_WORKER_CHARS_MAX = 100

Fields = Mapping[str, object]


async def put(here: Instance, who: Principal, fields: Fields) -> Shape:
    """Store `text` as said by the caller in `conversation`; the agent answers it. Under a `key` it is stored once."""
    check_scope(who, Scope.TALK)
    here.life.terms.check_takes_in()
    text, conversation = (text_field(fields, name) for name in ("text", "conversation"))
    if not text.strip() or not conversation.strip():
        raise InputError("a message needs a text and the name of its conversation", safe=_UNSTORED)
    optional = ("key", "provider_id", "reply_to", "topic")
    key, provider_id, reply_to, topic = (text_field(fields, name, "") or None for name in optional)
    if key is not None and len(key) > KEY_CHARS_MAX:
        raise InputError(f"key needs at most {KEY_CHARS_MAX} characters", safe=_UNSTORED)
    origin = replace(who.origin(conversation), name=text_field(fields, "name", ""))
    content = Content(text.encode("utf-8", "surrogatepass"), text)
    settings = here.config.channels[who.channel]
    marks = ProviderMarks(key, provider_id, reply_to)
    return receipt_shape(await here.receive(Inbound(origin, content, marks, settings.priority, topic)))


async def pull(here: Instance, who: Principal, fields: Fields) -> Shape:
    """Lease at most `limit` batches for `lease_s` seconds; waits for the first, for `wait_s` seconds at most."""
    check_scope(who, Scope.OPERATE)
    if here.config.turns.answered_by != "workers":
        what = "this runtime answers batches itself"
        raise InputError(what, safe="Nothing was leased.", hint="keepsaid config set turns.answered_by workers")
    limit = bounded_field(fields, "limit", (1, LEASES_MAX), 1)
    lease_s = bounded_field(fields, "lease_s", (1, LEASE_S_MAX), LEASE_S)
    wait_s = bounded_field(fields, "wait_s", (0, WAIT_S_MAX), 0)
    service = here.services.batches
    found = await service.lease(limit, lease_s * 1_000, wait_s * 1_000)
    return {"batches": [leased_shape(one, service.bounded_ms(one, lease_s * 1_000) // 1_000) for one in found]}


async def renew(here: Instance, who: Principal, fields: Fields) -> Shape:
    """Hold a `lease` for longer: for `lease_s` seconds from now on. Raises LeaseLost."""
    check_scope(who, Scope.OPERATE)
    batch_id, fence = _lease(fields)
    lease_s = bounded_field(fields, "lease_s", (1, LEASE_S_MAX), LEASE_S)
    await here.services.batches.renew(batch_id, fence, lease_s * 1_000)
    return {"lease_s": lease_s}


async def done(here: Instance, who: Principal, fields: Fields) -> Shape:
    """Settle the batch of a `lease` with a `reply`, in one commit; repeated under this lease it changes nothing."""
    check_scope(who, Scope.OPERATE)
    service, reply = here.services.batches, text_field(fields, "reply", "")
    worker = text_field(fields, "worker", "")[:_WORKER_CHARS_MAX] or who.name
    if (claimed := await service.find(*_lease(fields))) is None:
        return {"state": "done", "reply": None, "duplicate": True}
    reply_id = await service.done(claimed, reply, worker)
    return {"state": "done", "reply": None if reply_id is None else show("reply", reply_id), "duplicate": False}


async def fail(here: Instance, who: Principal, fields: Fields) -> Shape:
    """Charge the batch of a `lease` an attempt; returns the state that this led to. Raises LeaseLost."""
    check_scope(who, Scope.OPERATE)
    service, reason = here.services.batches, text_field(fields, "reason", "") or "the worker gave no reason"
    if (claimed := await service.find(*_lease(fields))) is None:
        return {"state": "done"}
    return {"state": await service.fail(claimed, reason)}


async def release(here: Instance, who: Principal, fields: Fields) -> Shape:
    """Queue the batch of a `lease` again without charging it an attempt. Raises LeaseLost."""
    check_scope(who, Scope.OPERATE)
    return {"state": await here.services.batches.release(*_lease(fields))}


def _lease(fields: Fields) -> tuple[int, int]:
    handle = text_field(fields, "lease")
    if (found := lease_in(handle)) is None:
        raise InputError("a lease is bat_.../FENCE, as a leased batch names it", safe="Nothing was changed.")
    return found
