"""Routes for who may talk (short: the service decides): who was sent a code or let in, and the owner's word."""

from __future__ import annotations

from keepsaid.app.instance import Instance
from keepsaid.interfaces.channel_shapes import let_in_shape, pairings_shape
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute
from keepsaid.interfaces.http.responses import read_limit
from keepsaid.interfaces.schema import FLAG, TEXT, TIME, gives, many, named, perhaps, takes
from keepsaid.interfaces.shapes import Shape

_ROWS = 100
_WHO = "who must be a code, or CHANNEL:ACCOUNT:SENDER"


async def list_people(instance: Instance, call: OwnerCall) -> Shape:
    """Those who were sent a code or let in, newest first."""
    found = await instance.services.pairing.list(read_limit(call.request, _ROWS))
    return pairings_shape(found, instance.clock.now_ms())


async def approve(instance: Instance, call: OwnerCall) -> Shape:
    """Let a person in; with `owner` as the owner."""
    [who] = call.texts("who", otherwise=_WHO)
    return let_in_shape(await instance.services.pairing.let_in(who, as_owner=call.flag("owner")))


async def revoke(instance: Instance, call: OwnerCall) -> Shape:
    """Let a person in no longer."""
    [who] = call.texts("who", otherwise=_WHO)
    return {"revoked": (await instance.services.pairing.shut_out(who)).person}


_PAIRING = gives(**named(TEXT, "who", "name", "state"), **named(perhaps(TEXT), "conversation", "code"), at=TIME)
_LET_IN = gives(**named(TEXT, "who", "name", "state"), dropped=many(TEXT))

ROUTES = (
    OwnerRoute("GET", "/v1/channels/people", list_people, query=("limit",), gives=gives(people=many(_PAIRING))),
    OwnerRoute(
        "POST", "/v1/channels/approve", approve, 100_000, takes=takes("who", who=TEXT, owner=FLAG), gives=_LET_IN
    ),
    OwnerRoute("POST", "/v1/channels/revoke", revoke, 100_000, takes=takes("who", who=TEXT), gives=gives(revoked=TEXT)),
)
