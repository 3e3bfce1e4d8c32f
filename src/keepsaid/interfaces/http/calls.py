"""Calls: routes that an answer of one function serves, behind the gate, and the fields and ids of what is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import PREFIXES, read
from keepsaid.domain.principal import Principal, Scope
from keepsaid.errors import InputError
from keepsaid.interfaces.http import responses
from keepsaid.interfaces.http.bodies import body_of, fields_in
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.schema import ANY, OBJECT, Schema, ref

_LISTED_BY = {
    "delivery": "keepsaid ext events dead",
    "memory": "keepsaid memory ls",
    "session": "keepsaid memory extract ls",
    "task": "keepsaid inbox tasks ls",
    "turn": "keepsaid why",
}
"""The command that lists things of a kind."""

JSON = "application/json"

_PLURALS = {"memory": "memories", "task": "tasks"}


class OwnerCall(NamedTuple):
    """A request that the gate let pass, the fields of its body, and who calls: the owner, or the sender of a key."""

    request: Request
    fields: Mapping[str, object]
    who: Principal

    def id_of(self, kind: str, hint: str | None = None) -> int:
        """The id in the path. Raises NotFound for one that no thing of this kind can have."""
        if (number := read(kind, self.request.path_params["id"])) is None:
            raise no_such(kind, hint)
        return number

    def text(self, name: str) -> str:
        """A field that may be absent, which is as "". Raises BadRequest."""
        value = self.fields.get(name) or ""
        if not isinstance(value, str):
            raise responses.BadRequest(f"{name} must be text")
        return value

    def texts(self, *names: str, otherwise: str) -> list[str]:
        """Fields that are all needed. Raises BadRequest, which says `otherwise`."""
        values = [value for name in names if isinstance(value := self.fields.get(name), str)]
        if len(values) < len(names):
            raise responses.BadRequest(otherwise)
        return values

    def names(self, name: str) -> tuple[str, ...] | None:
        """A field with a list of names; None where it is absent. Raises BadRequest."""
        given = self.fields.get(name)
        if given is None:
            return None
        if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
            raise responses.BadRequest(f"{name} must be a list of names")
        return tuple(given)

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A field that is true or false. Raises BadRequest."""
        value = self.fields.get(name, default)
        if not isinstance(value, bool):
            raise responses.BadRequest(f"{name} must be true or false")
        return value

    def ids(self, name: str, kind: str, *, least: int = 0) -> list[int]:
        """A field with a list of ids and a minimum length; an absent one is an empty list. Raises BadRequest."""
        given = self.fields.get(name, [])
        names = given if isinstance(given, list) else [None]
        known = [number for one in names if isinstance(one, str) and (number := read(kind, one)) is not None]
        if len(known) < max(least, len(names)):
            raise responses.BadRequest(f"{name} must be a list of {_PLURALS[kind]}: {PREFIXES[kind]}_...")
        return known


def no_such(kind: str, hint: str | None = None) -> responses.NotFound:
    return responses.NotFound(f"there is no such {kind}", hint=hint or _LISTED_BY.get(kind))


def from_outside(instance: Instance, endpoint: responses.Endpoint) -> responses.Endpoint:
    """An endpoint that messages come in by; in a worker it answers that there is none."""

    @wraps(endpoint)
    async def answer(request: Request) -> Response:
        check_takes_in(instance)
        return await endpoint(request)

    return answer


def check_takes_in(instance: Instance) -> None:
    """Raise NotFound in a worker: what comes in is taken by another process."""
    try:
        instance.life.terms.check_takes_in()
    except InputError as error:
        raise responses.NotFound(error.what, safe=error.safe, hint=error.hint) from error


class OwnerRoute(NamedTuple):
    """One route of the owner: what answers it, and how many bytes its body may have, 0 for a body that is not read.

    What is `long` is broken off when the runtime stops. Keys that have one of its `scopes` are let in too.
    """

    method: str
    path: str
    answer: Callable[[Instance, OwnerCall], Awaitable[Any]]
    """Returns JSON or a response."""
    body_max: int = 0
    long: bool = False
    empty: bool = False
    """Whether the body may be left out."""
    scopes: tuple[Scope, ...] = ()
    takes: Schema = ANY
    """The fields of its body."""
    query: tuple[str, ...] = ()
    """The parameters of its address; where there are some, any other is refused."""
    gives: Schema = OBJECT
    statuses: tuple[int, ...] = (200,)
    """The statuses of its answers, but for errors."""
    media: str = JSON

    def bound(self, instance: Instance, gate: Gate) -> Route:
        """The route of an instance, behind its gate."""

        async def endpoint(request: Request) -> Response:
            who = gate.caller(request, self.scopes)
            if self.query:
                responses.read_query(request, *self.query)
            body = await body_of(request, self.body_max) if self.body_max else b""
            fields = await fields_in(request, body) if body or (self.body_max and not self.empty) else {}
            with instance.telemetry.continued(request.headers.get("traceparent", "")):
                answer = await self.answer(instance, OwnerCall(request, fields, who))
            return answer if isinstance(answer, Response) else JSONResponse(answer)

        guard: responses.Endpoint = responses.ending(endpoint, instance.halt) if self.long else endpoint
        return Route(self.path, responses.guarded(guard), methods=[self.method])


class OpenRoute(NamedTuple):
    """A route that is not the owner's: its endpoint asks the gate by itself.

    `who` may call it: anybody, a client, a provider with its signature, or keys with `scopes`.
    """

    method: str
    path: str
    endpoint: Callable[..., Awaitable[Any]]
    who: Literal["anybody", "client", "provider", "key"]
    scopes: tuple[Scope, ...] = ()
    takes: Schema = ANY
    query: tuple[str, ...] = ()
    gives: Schema = OBJECT
    statuses: tuple[int, ...] = (200,)
    media: str = JSON
    whole: bool = False
    """Whether the endpoint is an application of its own, which answers its errors."""
    render: responses.Render = responses.problem
    """Makes the answers to errors, which have the form `fails`."""
    fails: Schema = ref("Problem")

    def bound(self) -> Route:
        """The route of a server."""
        endpoint = self.endpoint if self.whole else responses.guarded(self.endpoint, self.render)
        return Route(self.path, endpoint, methods=[self.method])
