"""Responses: errors as `application/problem+json` (RFC 9457), and responses that act once their body was sent."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from keepsaid import errors
from keepsaid.ports.runtime import StopToken, point
from keepsaid.text.normal import cut

T = TypeVar("T")

_log = logging.getLogger("keepsaid.http")
_PAGE = "see docs/use/reference/http.md"
_TITLE_CHARS_MAX = 500
_SURROGATES = re.compile("[\ud800-\udfff]")
Endpoint = Callable[[Request], Awaitable[Response]]


class Unauthorised(errors.KeepsaidError):
    """The request carries no token, or the wrong one."""

    code = "KS-HTTP-AUTH"
    safe = "Nothing was changed."
    hint = "send Authorization: Bearer TOKEN"


_TOKENS = "send Authorization: Bearer TOKEN; server.token is a client's, server.operator_token the operator's"


def unauthorised(request: Request, needed: str) -> Unauthorised:
    """The error for a request with no token, or with one that a route does not take."""
    sent = "; the one that was sent is another" if "authorization" in request.headers else ""
    return Unauthorised(f"this route needs {needed}{sent}", hint=_TOKENS)


class ForeignCaller(errors.KeepsaidError):
    """The request comes from a page or host that may not call this server."""

    code = "KS-HTTP-HOST"
    safe = "Nothing was changed."
    hint = "call it by its own address"


class NotFound(errors.KeepsaidError):
    """There is no such thing."""

    code = "KS-NONE"


class MethodNotAllowed(errors.KeepsaidError):
    """The route exists, but does not support this method."""

    code = "KS-HTTP-METHOD"
    safe = "Nothing was changed."
    hint = _PAGE


class ServerBusy(errors.KeepsaidError):
    """Other requests take all that the server gives to requests at the same time."""

    code = "KS-HTTP-BUSY"
    safe = "Nothing was changed."
    hint = "send it again in some seconds"


class NotAnswered(errors.KeepsaidError):
    """Nobody has answered the message, and nobody will without a person's word."""

    code = "KS-HTTP-UNANSWERED"
    safe = "The message is stored."
    hint = "keepsaid inbox ls"


class TooManyCalls(errors.KeepsaidError):
    """As many calls of a memory proxy run as its settings allow."""

    code = "KS-HTTP-CALLS"
    safe = "Nothing was changed."
    hint = "send it again in some seconds"


class BadRequest(errors.InputError):
    """The body, or a parameter of the address, cannot be read as what the route takes."""

    code = "KS-HTTP-BODY"
    hint = _PAGE


class UnknownEncoding(BadRequest):
    """The body is compressed, which no route takes."""

    code = "KS-HTTP-ENCODING"


_STATUS: Mapping[int, tuple[type[errors.KeepsaidError], ...]] = {
    415: (UnknownEncoding,),
    400: (BadRequest,),
    401: (Unauthorised, errors.Forged),
    403: (ForeignCaller, errors.NotAllowed),
    404: (NotFound, errors.HookClosed),
    405: (MethodNotAllowed,),
    409: (errors.KeyConflict, errors.LeaseLost),
    413: (errors.TooLarge,),
    422: (errors.InputError, errors.ConfigError),
    429: (TooManyCalls,),
    503: (errors.StoreError, errors.Stopping, errors.ChannelError, ServerBusy, NotAnswered),
}
"""The first that fits; what fits none is 500."""


_AWAY = "the database cannot be reached"
"""What a client hears: where the database is concerns its owner."""


def status_of(error: errors.KeepsaidError) -> int:
    """The HTTP status of an error."""
    return next((code for code, kinds in _STATUS.items() if isinstance(error, kinds)), 500)


def shown_title(error: errors.KeepsaidError, *, owner: bool = False) -> str:
    """What happened, as a client may read it."""
    what = _AWAY if isinstance(error, errors.StoreUnreachable) and not owner else error.what
    return _SURROGATES.sub("\ufffd", cut(what, _TITLE_CHARS_MAX))


def problem(error: errors.KeepsaidError, *, owner: bool = False) -> JSONResponse:
    """The response for an error; its hints for the owner are left out, because a client cannot run them."""
    status = status_of(error)
    is_command = error.hint.startswith(("keepsaid ", errors.InputError.hint)) and status < 500
    title = shown_title(error, owner=owner)
    body = {"type": "about:blank", "title": title, "status": status, "code": error.code}
    body |= {"safe": error.safe, "hint": _PAGE if is_command and not owner else error.hint}
    headers = {"Retry-After": "5"} if status == 503 else challenge_of(error)
    return JSONResponse(body, status, headers, media_type="application/problem+json")


def challenge_of(error: errors.KeepsaidError) -> dict[str, str]:
    """The `WWW-Authenticate` header for an error of authentication (RFC 9110, 11.6.1); none for any other error."""
    return {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthorised) else {}


def unrouted(
    request: Request, error: Exception, render: Callable[[errors.KeepsaidError], Response] = problem
) -> Response:
    """The response where no route takes a request."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        response = render(MethodNotAllowed(f"{request.url.path} does not take {request.method}"))
        response.headers.update(error.headers or {})
        return response
    return render(NotFound(f"there is nothing at {request.url.path}", hint=_PAGE))


_ROWS_MAX = 1_000
_FLAGS = {"": False, "0": False, "false": False, "1": True, "true": True}


def read_query(request: Request, *known: str) -> Mapping[str, str]:
    """The parameters of the address; raises BadRequest for one that the route does not know."""
    for name in request.query_params:
        if name not in known:
            raise BadRequest(f"unknown parameter {name!r}; known: {', '.join(known)}")
    return request.query_params


def read_flag(request: Request, name: str) -> bool:
    """A parameter of the address that is 1 or 0; raises BadRequest for any other value."""
    if (value := request.query_params.get(name, "").lower()) not in _FLAGS:
        raise BadRequest(f"{name} must be 1 or 0, not {value!r}")
    return _FLAGS[value]


def read_limit(request: Request, usual: int) -> int:
    """The number of rows to return, from `?limit=`; `usual` if it is absent. Raises BadRequest."""
    limit = request.query_params.get("limit", str(usual))
    if not (limit.isascii() and limit.isdecimal() and len(limit) < 9) or not 1 <= int(limit) <= _ROWS_MAX:
        raise BadRequest(f"limit must be a number from 1 to {_ROWS_MAX}")
    return int(limit)


async def render_in_thread(make: Callable[[], Any]) -> Response:
    """Build the JSON response of many rows in a thread, so that the event loop is not blocked."""
    return await asyncio.to_thread(lambda: JSONResponse(make()))


Render = Callable[..., Response]
"""Makes the response for an error; `owner` says whether the caller is the owner."""


def guarded(endpoint: Endpoint, render: Render = problem) -> Endpoint:
    """An endpoint that answers what it raises with a problem, never a traceback; a client that has left gets nothing.

    What the request held of the budget for bodies is given back.
    """

    async def wrapped(request: Request) -> Response:
        try:
            return await endpoint(request)
        except errors.KeepsaidError as error:
            if isinstance(error, errors.StoreFull):
                request.app.state.refused_at = asyncio.get_running_loop().time()
            if isinstance(error, errors.StoreError):
                _log.error("%s refused: %s", request.url.path, error.what, extra={"code": error.code})
            return render(error, owner=getattr(request.state, "owner", False))
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:  # noqa: BLE001  # guard: HTTP boundary - a bug is answered and logged, not shown
            _log.error("%s failed", request.url.path, exc_info=error)
            unknown = "Unknown for this request."
            return render(errors.KeepsaidError("an internal error", safe=unknown, hint="keepsaid data logs"))
        finally:
            if (claim := getattr(request.state, "claim", None)) is not None:
                claim.release()

    return wrapped


_GRACE_S = 0.5
"""So long a request has to end by itself once a stop has begun; the server waits for twice that."""


def ending(endpoint: Endpoint, halt: StopToken) -> Endpoint:
    """An endpoint that is broken off soon after a stop has begun, with an answer that says so.

    What works in steps looks at `halt` by itself and tells how far it came; this is for the rest.
    """

    async def wrapped(request: Request) -> Response:
        work = asyncio.ensure_future(endpoint(request))
        stop = asyncio.ensure_future(halt.wait())
        try:
            await asyncio.wait((work, stop), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await asyncio.wait((work,), timeout=_GRACE_S)
            if work.done():
                return work.result()
            raise errors.Stopping(f"the runtime is stopping; {request.url.path} was broken off")
        finally:
            stop.cancel()
            work.cancel()

    return wrapped


async def client_left(receive: Receive) -> None:
    """Return once the client of a request, whose body was read, has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_there(request: Request, work: Coroutine[object, object, T]) -> T:
    """What `work` returns. If the client disconnects, it is cancelled and ClientDisconnect is raised."""
    doing, gone = asyncio.ensure_future(work), asyncio.ensure_future(client_left(request.receive))
    try:
        await asyncio.wait((doing, gone), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ClientDisconnect
        return doing.result()
    finally:
        doing.cancel()
        gone.cancel()


class Acknowledgement(JSONResponse):
    """A receipt on its way out."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        point("acknowledge.before")
        await super().__call__(scope, receive, send)
        point("acknowledge.after")


class ConfirmedResponse(JSONResponse):
    """A JSON response; `then` is awaited after its body was sent, never when the client left before."""

    def __init__(self, content: Any, then: Callable[[], Awaitable[None]]) -> None:
        super().__init__(content)
        self._then = then

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, all but the last byte before `then`, so that whoever has the whole body sees what `then` did."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body[:-1], "more_body": True})
        # the server lets this wait until the client has read most of the body
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        if await Request(scope, receive).is_disconnected():
            return
        await self._then()
        await send({"type": "http.response.body", "body": self.body[-1:], "more_body": False})
