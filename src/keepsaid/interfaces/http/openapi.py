"""The description of the server by OpenAPI 3.1, made of the tables of its routes.

It holds no text, no name of a user and no setting: anybody may read it, as they may /healthz.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from keepsaid.interfaces.answer_schemas import COMPONENTS
from keepsaid.interfaces.http.calls import JSON, OpenRoute, OwnerRoute
from keepsaid.interfaces.schema import ANY, OBJECT, TEXT, ref

PATH = "/v1/openapi.json"

Described = OpenRoute | OwnerRoute

_PROBLEM = "application/problem+json"
_SECURITY: Mapping[str, Any] = {
    "client": {"type": "http", "scheme": "bearer", "description": "server.token, where it is set"},
    "operator": {"type": "http", "scheme": "bearer", "description": "the operator's token"},
    "key": {"type": "http", "scheme": "bearer", "description": "the token of a key, with one of the scopes named"},
}
_ABOUT = "The message-and-memory runtime of an agent. docs/use/reference/http.md says more of each route."
_PARAMETER = re.compile(r"\{(\w+)\}")


def route(described: Sequence[Described]) -> OpenRoute:
    """The route of the description of these routes, itself among them."""
    made: list[asyncio.Future[bytes]] = []

    async def describe(_request: Request) -> Response:
        """This description, by OpenAPI 3.1."""
        if not made:
            made.append(asyncio.ensure_future(asyncio.to_thread(_written, (*described, own))))
        return Response(await asyncio.shield(made[0]), media_type=JSON)

    own = OpenRoute("GET", PATH, describe, "anybody")
    return own


def _written(described: Sequence[Described]) -> bytes:
    from keepsaid import __version__  # noqa: PLC0415 - all of the library

    return json.dumps(document(described, __version__), ensure_ascii=False).encode()


def document(described: Sequence[Described], version: str) -> dict[str, Any]:
    """The description of these routes as a JSON object."""
    paths: dict[str, dict[str, Any]] = {}
    for one in described:
        paths.setdefault(path_of(one), {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {"title": "keepsaid", "version": version, "description": _ABOUT},
        "paths": paths,
        "components": {"schemas": dict(COMPONENTS), "securitySchemes": dict(_SECURITY)},
    }


def path_of(one: Described) -> str:
    """The address of a route; a parameter that may hold slashes is one as any other."""
    return one.path.replace(":path}", "}")


def _operation(one: Described) -> dict[str, Any]:
    answer = one.answer if isinstance(one, OwnerRoute) else one.endpoint
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": TEXT} for name in _PARAMETER.findall(path_of(one))
    ]
    parameters += [{"name": name, "in": "query", "schema": TEXT} for name in one.query]
    operation: dict[str, Any] = {
        "operationId": re.sub(r"\W+", "_", f"{one.method.lower()}{path_of(one)}").strip("_"),
        "summary": summary_of(answer),
        "security": _security(one),
        "responses": _responses(one),
    }
    if parameters:
        operation["parameters"] = parameters
    if takes_body(one):
        needed = not (isinstance(one, OwnerRoute) and one.empty)
        operation["requestBody"] = {"required": needed, "content": {JSON: {"schema": one.takes or OBJECT}}}
    return operation


def takes_body(one: Described) -> bool:
    """Whether a route reads the body of a request."""
    return one.body_max > 0 if isinstance(one, OwnerRoute) else one.takes is not ANY


def _responses(one: Described) -> dict[str, Any]:
    found: dict[str, Any] = {
        str(status): {"description": "It is done", "content": {one.media: {"schema": one.gives}}}
        for status in one.statuses
        if status != 204
    }
    if 204 in one.statuses:
        found["204"] = {"description": "There is nothing more to come"}
    fails = one.fails if isinstance(one, OpenRoute) else ref("Problem")
    media = _PROBLEM if fails == ref("Problem") else JSON
    return {**found, "default": {"description": "An error", "content": {media: {"schema": fails}}}}


def _security(one: Described) -> list[dict[str, list[str]]]:
    """Who is let in: by any one of these; an empty one is nobody's token."""
    keys = [{"key": [str(scope)]} for scope in one.scopes]
    if isinstance(one, OwnerRoute) or one.who == "key":
        return [*keys, {"operator": []}]
    return [*keys, {"client": []}, {"operator": []}, {}] if one.who == "client" else [{}]


def summary_of(answer: Callable[..., Any]) -> str:
    """The first sentence of what answers a route, of its docstring."""
    while isinstance(answer, partial):
        answer = answer.func
    text = inspect.getdoc(inspect.unwrap(answer)) or ""
    return " ".join(text.partition("\n\n")[0].split())
