"""Bodies of requests: read within the budget that all of them share, as JSON, on threads of their own where large."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from io import BytesIO
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from starlette.requests import ClientDisconnect, Request

from keepsaid.errors import TooLarge
from keepsaid.interfaces.http import responses
from keepsaid.text import json_reader, normal

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

    Raises UnknownEncoding for a compressed body: how large that is would be known only once it was read.

    What it holds of the budget is given back when the request is answered.
    """
    if (encoding := request.headers.get("content-encoding", "identity").strip().lower()) not in ("", "identity"):
        raise responses.UnknownEncoding(f"the body is encoded as {normal.cut(encoding, 40)!r}: send it as it is")
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
