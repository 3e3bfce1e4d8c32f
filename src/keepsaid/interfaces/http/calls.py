"""Calls: the owner's routes as a table, and one way to read the ids and fields that they are called with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keepsaid.app.instance import Instance
from keepsaid.domain.ids import PREFIXES, read
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.responses import BadRequest, Endpoint, NotFound, ending, guarded

_LISTED_BY = {
    "delivery": "keepsaid events dead",
    "memory": "keepsaid memory ls",
    "session": "keepsaid collect ls",
    "task": "keepsaid task ls",
    "turn": "keepsaid why",
}
"""The command that lists things of a kind."""

_PLURALS = {"memory": "memories", "task": "tasks"}


class OwnerCall(NamedTuple):
    """A request that the gate let pass as the owner's, and the fields of its body."""

    request: Request
    fields: Mapping[str, object]

    def id_of(self, kind: str, hint: str | None = None, name: str = "id") -> int:
        """The id in the path. Raises NotFound for one that no thing of this kind can have."""
        number = read(kind, self.request.path_params[name])
        if number is None:
            raise no_such(kind, hint)
        return number

    def text(self, name: str) -> str:
        """A field that may be absent, which is as "". Raises BadRequest."""
        value = self.fields.get(name) or ""
        if not isinstance(value, str):
            raise BadRequest(f"{name} must be text")
        return value

    def texts(self, *names: str, otherwise: str) -> list[str]:
        """Fields that are all needed. Raises BadRequest, which says `otherwise`."""
        values = [value for name in names if isinstance(value := self.fields.get(name), str)]
        if len(values) < len(names):
            raise BadRequest(otherwise)
        return values

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A field that is true or false. Raises BadRequest."""
        value = self.fields.get(name, default)
        if not isinstance(value, bool):
            raise BadRequest(f"{name} must be true or false")
        return value

    def ids(self, name: str, kind: str, *, least: int = 0) -> list[int]:
        """A field with a list of at least so many ids; an absent one is as an empty list. Raises BadRequest."""
        given = self.fields.get(name, [])
        names = given if isinstance(given, list) else [None]
        known = [number for one in names if isinstance(one, str) and (number := read(kind, one)) is not None]
        if len(known) < max(least, len(names)):
            raise BadRequest(f"{name} must be a list of {_PLURALS[kind]}: {PREFIXES[kind]}_...")
        return known


def no_such(kind: str, hint: str | None = None) -> NotFound:
    """The error for an id that no thing has."""
    return NotFound(f"there is no such {kind}", hint=hint or _LISTED_BY.get(kind))


class OwnerRoute(NamedTuple):
    """One route of the owner: what answers it, and how many bytes its body may have, 0 for a body that is not read.

    What is `long` is broken off when the runtime stops.
    """

    method: str
    path: str
    answer: Callable[[Instance, OwnerCall], Awaitable[Any]]
    """Returns JSON or a response."""
    body_max: int = 0
    long: bool = False
    empty: bool = False
    """Whether the body may be left out."""

    def bound(self, instance: Instance, gate: Gate) -> Route:
        """The route of an instance, behind its gate."""

        async def endpoint(request: Request) -> Response:
            gate.operator(request)
            fields = await fields_of(request, self.body_max, empty=self.empty) if self.body_max else {}
            answer = await self.answer(instance, OwnerCall(request, fields))
            return answer if isinstance(answer, Response) else JSONResponse(answer)

        guard: Endpoint = ending(endpoint, instance.halt) if self.long else endpoint
        return Route(self.path, guarded(guard), methods=[self.method])
