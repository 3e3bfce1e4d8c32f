"""Requests: who may call which route; bodies within their budget; fields and ids of calls."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
import secrets
import threading
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from io import BytesIO
from queue import SimpleQueue
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from keepsaid.app.instance import Instance
from keepsaid.config.services import ServerConfig
from keepsaid.domain.ids import PREFIXES, read
from keepsaid.errors import ConfigError, TooLarge
from keepsaid.interfaces.http import responses
from keepsaid.text import json_reader, normal
from keepsaid.values import frozen

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_PASSED_ON = re.compile(
    r"(?:x-)?forwarded(?:-.*)?|via|cdn-loop|proxy-.*"
    r"|(?:.*-)?(?:real|client|remote|source|peer|connecting|connection|proxyuser)-?(?:ip|addr|address|host|port)(?:v6)?"
    r"|(?:cf|fly|fastly|akamai|incap|ngrok|tailscale)-.*"
    r"|x-(?:original|envoy|azure|appengine|arr|amz|amzn|vercel|nf|ngrok|tailscale|proxy|sucuri|varnish)-.*"
)
"""Names of headers that proxies, tunnels and content networks add to a request that they pass on."""


def is_loopback(host: str) -> bool:
    """Whether an address can only be reached from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def client_token(server: ServerConfig) -> str | None:
    """The clients' token, None for none; an empty one is none. Raises ConfigError where others need one."""
    token = server.token.get_secret_value() if server.token else ""
    if not token and not is_loopback(server.host):
        what = f"server.host {server.host} can be reached by others: server.token must be set"
        raise ConfigError(what, hint="keepsaid config set server.token --prompt")
    return token or None


_TOKEN_CHARS_MIN = 32


def operator_token(server: ServerConfig) -> str:
    """The owner's token: the one that is set, else a new one. Raises ConfigError for one that could be guessed."""
    given = server.operator_token.get_secret_value() if server.operator_token else ""
    if given and (len(given) < _TOKEN_CHARS_MIN or not (given.isascii() and given.isprintable()) or " " in given):
        what = f"server.operator_token needs at least {_TOKEN_CHARS_MIN} ASCII characters, without spaces"
        raise ConfigError(what, hint="keepsaid config set server.operator_token --prompt")
    return given or secrets.token_urlsafe(_TOKEN_CHARS_MIN)


@frozen
class Gate:
    """`operator_token` opens everything; `client_token` the routes for messages.

    On loopback those are open without a token, but not to a request that a proxy passed on: everybody who reaches the
    proxy would come in. There a foreign Origin is refused too, and a foreign Host without a right token, so that no
    web page can call in. The request's state says who passed: `owner` for the operator, `known` with any token.
    """

    host: str
    operator_token: str
    client_token: str | None

    def client(self, request: Request) -> None:
        """Check a client's token and origin; raises Unauthorised or Refused."""
        request.state.owner = self.is_operator(request)
        known = request.state.known = request.state.owner or self._carries(request, self.client_token)
        self._same_place(request, known=known)
        if known:
            return
        if self.client_token is not None or not is_loopback(self.host):
            raise responses.unauthorised(request, "a token")
        # A proxy shows itself by a header of its own, or by HTTP/1.0, which nginx speaks to what is behind it.
        if request.scope["http_version"] == "1.0" or any(_PASSED_ON.fullmatch(name) for name in request.headers):
            what = "a proxy passed this call on, and without a token everybody could call through it"
            hint = "behind a proxy set server.token and send Authorization: Bearer TOKEN"
            raise responses.ForeignCaller(what, hint=hint)

    def operator(self, request: Request) -> None:
        """Let the owner's own commands pass; raises Unauthorised or Refused."""
        request.state.owner = self.is_operator(request)
        self._same_place(request, known=request.state.owner)
        if not request.state.owner:
            raise responses.unauthorised(request, "the operator's token")

    def is_operator(self, request: Request) -> bool:
        """Whether the request carries the running instance's token."""
        return self._carries(request, self.operator_token)

    def _carries(self, request: Request, token: str | None) -> bool:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if token is None or scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode(), token.encode())

    def _same_place(self, request: Request, *, known: bool) -> None:
        if not is_loopback(self.host):
            return
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            name = None
        if not known and name not in (*_LOCAL_NAMES, self.host):
            raise responses.ForeignCaller("without a token this address may only be called as what it is: loopback")
        if origin is not None and origin.lower() != f"http://{host}".lower():
            raise responses.ForeignCaller("no page of another place may call this address")


T = TypeVar("T")
Wanted = Callable[[], bool]
"""Whether anybody still waits for the result."""

FREE_BYTES = 64_000
"""Bodies up to this size are not counted: the number of connections bounds them."""

_STEP_BYTES = 1_000_000
_DIGITS_MAX = 18
_THREADS = 2
_WAITING_MAX = 64


class BodyClaim:
    """The bytes that one request holds of those that all may hold together."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.size = 0

    def grow(self, size: int) -> None:
        """Hold at least `size` bytes; raises Busy when all together would be too many, unless nothing is held yet."""
        bodies, more = self._bodies, max(0, size - self.size)
        if more and bodies.held and bodies.held + more > bodies.bytes_max:
            raise responses.ServerBusy(f"other requests hold {bodies.held:,} of {bodies.bytes_max:,} bytes of bodies")
        bodies.held += more
        self.size += more

    def release(self) -> None:
        self._bodies.held -= self.size
        self.size = 0


class _Job(Generic[T]):
    """Work for a thread, and the coroutine that waits for it."""

    def __init__(self, work: Callable[[Wanted], T]) -> None:
        self.work = work
        self.is_wanted = True
        self.future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def settle(self, done: Callable[[Any], None], outcome: object) -> None:
        """Hand over the result or the error, on the loop."""
        if not self.future.done():
            done(outcome)


class BodyReaders:
    """Threads that read bodies, with a bounded queue. They end with the process, whatever they are at."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._waiting = 0
        self._open = True
        self._threads: list[threading.Thread] = []

    async def run(self, work: Callable[[Wanted], T]) -> T:
        """What `work` returns; a caller that is cancelled ends it at its next look. Raises Busy at a full queue."""
        if self._waiting >= _WAITING_MAX:
            raise responses.ServerBusy(f"{self._waiting} large bodies wait to be read")
        if len(self._threads) < _THREADS:
            self._threads.append(threading.Thread(target=self._work, name="keepsaid-bodies", daemon=True))
            self._threads[-1].start()
        job = _Job(work)
        self._waiting += 1
        self._queue.put(job)
        try:
            return await job.future
        finally:
            self._waiting -= 1
            job.is_wanted = False

    def close(self) -> None:
        """End the threads; what they are at ends at its next look."""
        self._open = False
        for _ in self._threads:
            self._queue.put(None)

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            if job.is_wanted and self._open:
                self._do(job)

    def _do(self, job: _Job[Any]) -> None:
        try:
            told = partial(job.settle, job.future.set_result, job.work(lambda: job.is_wanted and self._open))
        except Exception as failed:  # noqa: BLE001  # guard: HTTP boundary - it is raised where the request is answered
            told = partial(job.settle, job.future.set_exception, failed)
        try:
            job.future.get_loop().call_soon_threadsafe(told)
        except RuntimeError:
            self._open = False  # the loop is closed, and nobody waits any more


class Bodies:
    """The readers of one server, and how many bytes the bodies of all its requests hold, and may hold, together."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held = 0
        self.readers = BodyReaders()


async def body_of(request: Request, bytes_max: int) -> bytes:
    """The raw body; raises TooLarge before more than the limit was read, Busy when too much is held already.

    What it holds of the budget is given back when the request is answered.
    """
    declared = request.headers.get("content-length", "")
    if len(declared) > _DIGITS_MAX:
        raise TooLarge(f"the body has more than {bytes_max:,} bytes")
    size = int(declared) if declared.isdigit() else 0
    if size > bytes_max:
        raise TooLarge(f"the body has {size:,} bytes; {bytes_max:,} are allowed")
    claim = request.state.claim = BodyClaim(_bodies(request))
    claim.grow(size if size > FREE_BYTES else 0)
    blocks: list[bytes] = []
    block, total = BytesIO(), 0
    async for piece in request.stream():
        total += block.write(piece)
        if total > bytes_max:
            raise TooLarge(f"the body has more than {bytes_max:,} bytes")
        if total > max(FREE_BYTES, claim.size):
            claim.grow(claim.size + _STEP_BYTES)
        if block.tell() > _STEP_BYTES:
            blocks.append(block.getvalue())
            block = BytesIO()  # one buffer would be copied whole each time it grows, which would hold the loop
    if not blocks:
        return block.getvalue()
    blocks.append(block.getvalue())
    return await run_on_reader(request, lambda _: b"".join(blocks))


async def fields_in(request: Request, body: bytes) -> dict[str, object]:
    """A body as a JSON object; raises BadRequest saying what is wrong with it."""
    if json_reader.reads_at_once(body):
        return parsed(body)
    return await run_on_reader(request, lambda wanted: parsed(body, wanted))


async def run_on_reader(request: Request, work: Callable[[Wanted], T]) -> T:
    """Return the result of `work` on a body that was read whole.

    It runs on a reader's thread. If the client disconnects, it is cancelled and ClientDisconnect is raised.
    """
    reading = asyncio.ensure_future(_bodies(request).readers.run(work))
    gone = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((reading, gone), return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            raise ClientDisconnect
        return reading.result()
    finally:
        reading.cancel()
        gone.cancel()


def parsed(body: bytes, wanted: Wanted | None = None) -> dict[str, object]:
    """A body as a JSON object; raises BadRequest saying what is wrong with it, ClientDisconnect when not `wanted`."""
    try:
        value = json_reader.read_json(body, wanted)
    except json_reader.Unreadable as error:
        raise responses.BadRequest(f"the body is not valid JSON: {error}") from error
    except json_reader.Abandoned as error:
        raise ClientDisconnect from error
    if not isinstance(value, dict):
        raise responses.BadRequest(f"the body must be a JSON object, not {normal.kind_of(value)}")
    return value


def _bodies(request: Request) -> Bodies:
    bodies: Bodies = request.app.state.bodies
    return bodies


_LISTED_BY = {
    "delivery": "keepsaid ext events dead",
    "memory": "keepsaid memory ls",
    "session": "keepsaid memory extract ls",
    "task": "keepsaid inbox tasks ls",
    "turn": "keepsaid why",
}
"""The command that lists things of a kind."""

_PLURALS = {"memory": "memories", "task": "tasks"}


class OwnerCall(NamedTuple):
    """A request that the gate let pass as the owner's, and the fields of its body."""

    request: Request
    fields: Mapping[str, object]

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
            body = await body_of(request, self.body_max) if self.body_max else b""
            fields = await fields_in(request, body) if body or (self.body_max and not self.empty) else {}
            answer = await self.answer(instance, OwnerCall(request, fields))
            return answer if isinstance(answer, Response) else JSONResponse(answer)

        guard: responses.Endpoint = responses.ending(endpoint, instance.halt) if self.long else endpoint
        return Route(self.path, responses.guarded(guard), methods=[self.method])
