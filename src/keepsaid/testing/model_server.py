"""A scripted model behind real HTTP: the OpenAI chat-completions protocol, no provider, no framework.

In a test: `async with ModelServer(Script(Say("hi"))) as server: ... server.url`. In a synchronous one:
`with ThreadedModelServer(...) as server`. As a process: `python -m keepsaid.testing.model_server`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from math import ceil
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from keepsaid.testing.listener import ListeningServer, serve, surface
from keepsaid.testing.model_http import (
    EVENTS,
    JSON,
    BadHttpError,
    Connection,
    GoneError,
    HttpRequest,
    head,
    http_chunk,
)
from keepsaid.testing.model_script import (
    Answer,
    ChatRequest,
    Cut,
    Garble,
    Hang,
    Reaction,
    Reactor,
    Refuse,
    Script,
    Stall,
    error_body,
)

WAIT_S = 120.0
"""Default limit in seconds of waits for requests. It only ends a test that hangs: a busy machine is never that slow."""

_FIRST_EVENTS = 2
"""Those that carry the role and the first characters."""

_KEPT_HEADERS = frozenset(("authorization", "content-type", "idempotency-key", "user-agent", "x-stainless-retry-count"))


class ModelServer(ListeningServer):
    """A scripted model on a loopback port; an async context manager.

    Everything it does is decided by `script`, which can be replaced at any time. It lists one model, `model`,
    and answers under every name. Ids are counters, and `created` is 0 unless a clock is given. A function of the
    script that raises ends the connection, and leaving the context raises its error. `words` is what is said in every
    recording; the requests to write one down are kept in `recordings`.
    """

    def __init__(
        self,
        script: Script | Reactor | None = None,
        *,
        port: int = 0,
        clock: Callable[[], float] | None = None,
        model: str = "scripted",
    ) -> None:
        self.script = _script(script)
        super().__init__(self._serve, port)
        self._model = model
        self._clock = clock
        self.words = ""
        self.recordings: list[bytes] = []
        self._requests: list[ChatRequest] = []
        self._answering = 0
        self._waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []

    @property
    def url(self) -> str:
        """The base URL for a client, such as `http://127.0.0.1:40123/v1`."""
        return f"{super().url}/v1"

    @property
    def clients(self) -> int:
        """How many are connected."""
        return self._listener.clients

    @property
    def requests(self) -> list[ChatRequest]:
        """Every chat request seen so far, in the order they came."""
        return list(self._requests)

    async def wait_for(self, count: int, within_s: float = WAIT_S) -> list[ChatRequest]:
        """Wait until `count` chat requests were seen, and return all seen; raises TimeoutError."""
        await self._wait(lambda: len(self._requests) >= count, within_s)
        return self.requests

    async def wait_idle(self, within_s: float = WAIT_S) -> None:
        """Wait until no request is being answered: all were, or their clients left; raises TimeoutError."""
        await self._wait(lambda: not self._answering, within_s)

    async def _wait(self, reached: Callable[[], bool], within_s: float) -> None:
        if not reached():
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append((reached, future))
            async with asyncio.timeout(within_s):
                await future

    def _changed(self) -> None:
        for waiter in self._waiters[:]:
            reached, future = waiter
            if future.done() or reached():
                self._waiters.remove(waiter)
                if not future.done():
                    future.set_result(None)

    async def _serve(self, connection: Connection) -> None:
        try:
            while await self._turn(connection):
                pass
        except BadHttpError as error:
            refuse = Refuse(error.status, message=str(error))
            with suppress(GoneError):
                await connection.send(refuse.status, error_body(refuse), extra={"connection": "close"})
                await connection.linger()
        except GoneError:
            pass
        finally:
            await connection.close()

    async def _turn(self, connection: Connection) -> bool:
        http = await connection.receive()
        match http.method, http.path:
            case "POST", "/v1/chat/completions":
                await self._chat(connection, http)
            case "POST", "/v1/audio/transcriptions":
                self.recordings.append(http.body)
                await connection.send(200, json.dumps({"text": self.words}).encode())
            case "GET", "/v1/models":
                model = {"id": self._model, "object": "model", "created": 0, "owned_by": "keepsaid"}
                await connection.send(200, json.dumps({"object": "list", "data": [model]}).encode())
            case "GET", "/__requests":
                await connection.send(200, await self._seen(http.query))
            case "POST", "/__script":
                self.script = _posted_script(http.body)
                await connection.send(200, json.dumps({"reactions": self.script.left}).encode())
            case _:
                refuse = Refuse(404, message=f"Unknown request URL: {http.method} {http.path}.")
                await connection.send(404, error_body(refuse))
        return http.keep_alive

    async def _seen(self, query: str) -> bytes:
        key, _, count = query.partition("=")
        if key == "wait_for" and count.isdecimal():
            with suppress(TimeoutError):
                await self.wait_for(int(count))
        seen = [
            {"number": r.number, "headers": r.headers, "raw": b64encode(r.raw).decode(), "body": r.body}
            for r in self._requests
        ]
        return json.dumps({"requests": seen}).encode()

    async def _chat(self, connection: Connection, http: HttpRequest) -> None:
        headers = {name: value for name, value in http.headers.items() if name in _KEPT_HEADERS}
        request = ChatRequest.parse(len(self._requests) + 1, headers, http.body)
        self._requests.append(request)
        self._answering += 1
        self._changed()
        try:
            reaction = Refuse(400, message=request.problem) if request.problem else self.script.react(request)
            await self._perform(reaction, request, connection)
        finally:
            self._answering -= 1
            self._changed()

    async def _perform(self, reaction: Reaction, request: ChatRequest, connection: Connection) -> None:
        extra = {"x-request-id": f"req_{request.number}"}
        match reaction:
            case Refuse():
                extra |= _retry_headers(reaction.retry_after)
                await connection.send(reaction.status, error_body(reaction), extra=extra)
            case Garble():
                content_type = reaction.content_type or (EVENTS if request.stream else JSON)
                await connection.send(200, reaction.body.encode(), content_type, extra)
            case Hang():
                await connection.pause(reaction.seconds)
                raise GoneError
            case Stall() | Cut():
                await self._break_off(reaction, request, connection)
            case _ if answer := Answer.of(reaction):
                await self._answer(answer, request, connection)
            case _:
                raise TypeError(f"not a reaction: {reaction!r}")

    async def _answer(self, answer: Answer, request: ChatRequest, connection: Connection) -> None:
        if answer.delay_s > 0:
            await connection.pause(answer.delay_s)
        extra, created = {"x-request-id": f"req_{request.number}"}, self._created()
        if not request.stream:
            await connection.send(200, answer.completion(request, created), extra=extra)
            return
        events = [*map(http_chunk, (*answer.opening(request, created), *answer.ending(request, created)))]
        if answer.rest_after_s > 0:
            await connection.write(_stream_head(request), *events[:_FIRST_EVENTS])
            await connection.pause(answer.rest_after_s)
            await connection.write(*events[_FIRST_EVENTS:], http_chunk(b""))
        else:
            await connection.write(_stream_head(request), *events, http_chunk(b""))

    async def _break_off(self, reaction: Stall | Cut, request: ChatRequest, connection: Connection) -> None:
        created = self._created()
        if request.stream:
            opening = Answer(reaction.text[: reaction.after_chars]).opening(request, created)
            await connection.write(_stream_head(request), *map(http_chunk, opening))
        else:
            body = Answer(reaction.text).completion(request, created)
            fields = {"content-type": JSON, "content-length": str(len(body))}
            await connection.write(head(200, fields), body[: len(body) // 2])
        if isinstance(reaction, Stall):
            await connection.pause(None)
        await connection.reset()
        raise GoneError

    def _created(self) -> int:
        return int(self._clock()) if self._clock else 0


class ThreadedModelServer:
    """A `ModelServer` with an event loop and a thread of its own, for tests that are not async."""

    def __init__(
        self, script: Script | Reactor | None = None, *, port: int = 0, clock: Callable[[], float] | None = None
    ) -> None:
        self._server = ModelServer(script, port=port, clock=clock)
        self._thread = ThreadPoolExecutor(1, "model-server")
        self._ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._done: Future[None] | None = None

    @property
    def url(self) -> str:
        """The base URL for a client."""
        return self._server.url

    @property
    def requests(self) -> list[ChatRequest]:
        """Every chat request seen so far, in the order they came."""
        return self._server.requests

    @property
    def script(self) -> Script:
        """What decides the answers; can be replaced."""
        return self._server.script

    @script.setter
    def script(self, script: Script) -> None:
        self._server.script = script

    def __enter__(self) -> Self:
        """Listen."""
        self._done = self._thread.submit(lambda: asyncio.run(self._main()))
        started: list[Future[Any]] = [self._ready, self._done]
        wait(started, return_when=FIRST_COMPLETED)
        if not self._ready.done():
            self._thread.shutdown()
            self._done.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop every client and end the thread."""
        loop, stop = self._ready.result()
        loop.call_soon_threadsafe(stop.set)
        self._thread.shutdown()
        fault = self._done.exception() if self._done else None
        if fault is not None:
            surface(fault, error)

    def wait_for(self, count: int, within_s: float = WAIT_S) -> list[ChatRequest]:
        """Wait until `count` chat requests were seen, and return all seen; raises TimeoutError."""
        loop, _ = self._ready.result()
        return asyncio.run_coroutine_threadsafe(self._server.wait_for(count, within_s), loop).result()

    async def _main(self) -> None:
        stop = asyncio.Event()
        async with self._server:
            self._ready.set_result((asyncio.get_running_loop(), stop))
            await stop.wait()


def _script(script: Script | Reactor | None) -> Script:
    if isinstance(script, Script):
        return script
    return Script(default=script) if script is not None else Script()


def _posted_script(body: bytes) -> Script:
    try:
        return Script.from_json(body)
    except ValueError as error:
        raise BadHttpError(400, f"not a script: {error}") from error


def _stream_head(request: ChatRequest) -> bytes:
    fields = {"content-type": EVENTS, "transfer-encoding": "chunked", "x-request-id": f"req_{request.number}"}
    return head(200, fields)


def _retry_headers(retry_after: float | str | None) -> dict[str, str]:
    if retry_after is None:
        return {}
    if isinstance(retry_after, str):
        return {"retry-after": retry_after}
    return {"retry-after": str(ceil(retry_after)), "retry-after-ms": f"{retry_after * 1000:g}"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; one line of JSON on stdout tells the URL once it listens."""
    parser = argparse.ArgumentParser(prog="python -m keepsaid.testing.model_server", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="the port; 0 takes a free one")
    parser.add_argument("--script", type=Path, help="a JSON file of reactions")
    options = parser.parse_args(arguments)
    script = Script.from_json(options.script.read_bytes()) if options.script else Script()
    asyncio.run(serve(ModelServer(script, port=options.port)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
