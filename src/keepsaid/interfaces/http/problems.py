"""Problems: every error as `application/problem+json` (RFC 9457), with what happened, data safety and a hint."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from keepsaid.domain.json_reader import Unreadable, read_json
from keepsaid.domain.text import kind_of
from keepsaid.errors import (
    ConfigError,
    Forged,
    HookClosed,
    InputError,
    KeepsaidError,
    KeyConflict,
    Stopping,
    StoreError,
    TooLarge,
)

_log = logging.getLogger("keepsaid.http")
_PAGE = "see docs/reference/http.md"
Endpoint = Callable[[Request], Awaitable[Response]]


class Unauthorised(KeepsaidError):
    """The request carries no token, or the wrong one."""

    code = "KS-HTTP-AUTH"
    safe = "Nothing was stored."
    hint = "send Authorization: Bearer TOKEN"


class Refused(KeepsaidError):
    """The request comes from a page or host that may not call this server."""

    code = "KS-HTTP-HOST"
    safe = "Nothing was stored."
    hint = "call it by its own address"


class NotFound(KeepsaidError):
    """There is no such thing."""

    code = "KS-HTTP-NONE"


class WrongMethod(KeepsaidError):
    """The route is there, but not for this method."""

    code = "KS-HTTP-METHOD"
    safe = "Nothing was stored."
    hint = _PAGE


class BadRequest(InputError):
    """The body cannot be read as what the route takes."""

    code = "KS-HTTP-BODY"
    hint = _PAGE


_STATUS: tuple[tuple[type[KeepsaidError], int], ...] = (
    (BadRequest, 400),
    (Unauthorised, 401),
    (Forged, 401),
    (Refused, 403),
    (NotFound, 404),
    (HookClosed, 404),
    (WrongMethod, 405),
    (KeyConflict, 409),
    (TooLarge, 413),
    (InputError, 422),
    (ConfigError, 422),
    (StoreError, 503),
    (Stopping, 503),
)
"""The first that fits; what fits none is 500."""


def problem(error: KeepsaidError, *, owner: bool = False) -> JSONResponse:
    """The response for an error; a client cannot run the commands that the owner is told to run."""
    status = next((code for kind, code in _STATUS if isinstance(error, kind)), 500)
    is_command = error.hint.startswith("keepsaid ") and status < 500
    body = {"type": "about:blank", "title": error.what, "status": status, "code": error.code}
    body |= {"safe": error.safe, "hint": _PAGE if is_command and not owner else error.hint}
    headers = {"Retry-After": "5"} if status == 503 else {}
    return JSONResponse(body, status, headers, media_type="application/problem+json")


def unrouted(request: Request, error: Exception) -> Response:
    """The response where no route takes a request."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        response = problem(WrongMethod(f"{request.url.path} does not take {request.method}"))
        response.headers.update(error.headers or {})
        return response
    return problem(NotFound(f"there is nothing at {request.url.path}", hint=_PAGE))


def guarded(endpoint: Endpoint) -> Endpoint:
    """An endpoint that answers what it raises with a problem, never a traceback; who has left is told nothing."""

    async def wrapped(request: Request) -> Response:
        try:
            return await endpoint(request)
        except KeepsaidError as error:
            if isinstance(error, StoreError):
                _log.error("%s refused: %s", request.url.path, error.what, extra={"code": error.code})
            return problem(error, owner=getattr(request.state, "owner", False))
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:  # noqa: BLE001  # guard: HTTP boundary - a bug is answered and logged, not shown
            _log.error("%s failed", request.url.path, exc_info=error)
            return problem(KeepsaidError("an internal error", safe="Unknown for this request.", hint="keepsaid logs"))

    return wrapped


async def body_of(request: Request, bytes_max: int) -> bytes:
    """The raw body; raises TooLarge before more than the limit was read."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > bytes_max:
        raise TooLarge(f"the body has {int(declared):,} bytes; {bytes_max:,} are allowed")
    read = bytearray()
    async for piece in request.stream():
        read += piece
        if len(read) > bytes_max:
            raise TooLarge(f"the body has more than {bytes_max:,} bytes")
    return bytes(read)


def parsed(body: bytes, wanted: Callable[[], bool] | None = None) -> dict[str, object]:
    """The body as a JSON object; raises BadRequest saying what is wrong with it, Abandoned once it is not `wanted`."""
    try:
        value = read_json(body, wanted)
    except Unreadable as error:
        raise BadRequest(f"the body is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise BadRequest(f"the body must be a JSON object, not {kind_of(value)}")
    return value
