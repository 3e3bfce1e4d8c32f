"""Connections: slow, idle, many or hostile ones are closed in time, and leave room for those that ask for something."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from tests.unit.http_cast import Site, hang_up, refused, site
from tests.unit.loop_cast import holds

from keepsaid.interfaces.http.connections import ConnectionLimits, Connections

HELLO = {"text": "hello", "sender": "ann", "conversation": "room"}
HEAD = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def serving(root: Path, **server: object) -> AsyncIterator[Site]:
    """A server with these limits."""
    async with site(root, answering=False, server={"port": 0, **server}) as running:
        yield running


async def connect(stack: AsyncExitStack, one: Site, sent: bytes = b"") -> Pipe:
    """A connection that sends some bytes and then nothing."""
    reader, writer = await asyncio.open_connection(one.address.host, one.address.port)
    stack.push_async_callback(hang_up, writer)
    writer.write(sent)
    return reader, writer


async def ended(pipe: Pipe) -> bytes:
    """What is answered until the server closes a connection."""
    async with asyncio.timeout(60):
        try:
            return await pipe[0].read()
        except ConnectionResetError:
            return b""


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nHost: a\r\n"])
async def test_a_head_that_does_not_come_ends_the_connection(tmp_path: Path, sent: bytes) -> None:
    async with serving(tmp_path, header_timeout_s=0.2) as one, AsyncExitStack() as stack:
        assert (await ended(await connect(stack, one, sent))).startswith(b"HTTP/1.1 408 ")


async def test_a_second_head_that_does_not_come_ends_the_connection(tmp_path: Path) -> None:
    async with serving(tmp_path, header_timeout_s=0.2) as one, AsyncExitStack() as stack:
        reader, writer = await connect(stack, one, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n")
        assert b'{"ok":true}' in await reader.readuntil(b"}")
        writer.write(b"GET /heal")
        assert (await ended((reader, writer))).startswith(b"HTTP/1.1 408 ")


async def test_an_idle_connection_is_closed(tmp_path: Path) -> None:
    async with serving(tmp_path, idle_timeout_s=0.2) as one, AsyncExitStack() as stack:
        answered = await ended(await connect(stack, one, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"))
        assert answered.endswith(b'{"ok":true}')


@pytest.mark.parametrize("framing", [b"Content-Length: 500000", b"Transfer-Encoding: chunked"])
async def test_a_body_without_progress_ends_the_connection(tmp_path: Path, framing: bytes) -> None:
    async with serving(tmp_path, body_timeout_s=0.2) as one, AsyncExitStack() as stack:
        pipe = await connect(stack, one, HEAD + framing + b"\r\n\r\n")
        assert (await ended(pipe)).startswith(b"HTTP/1.1 408 ")
        assert one.rows("SELECT count(*) FROM message") == [(0,)]


async def send_slowly(one: Site, writer: asyncio.StreamWriter, size: int, piece: int = 20_000) -> None:
    """Send a body in pieces, each after an answer to another request, until it ends or nobody takes more."""
    for _ in range(size // piece):
        assert (await one.client.get("/healthz")).status_code == 200
        if writer.transport.is_closing():
            return
        writer.write(b"x" * piece)


async def test_a_body_that_comes_too_slowly_ends_the_connection(tmp_path: Path) -> None:
    async with serving(tmp_path, body_timeout_s=0.2, body_rate_min=10**9) as one, AsyncExitStack() as stack:
        reader, writer = await connect(stack, one, HEAD + b"Content-Length: 24000000\r\n\r\n")
        sending = asyncio.ensure_future(send_slowly(one, writer, 24_000_000, piece=500))
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 408 ")
        await sending


async def test_a_refused_body_is_read_to_its_end_and_the_connection_goes_on(tmp_path: Path) -> None:
    head = b"POST /v1/lanes/reset HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 24000000\r\n"
    async with serving(tmp_path, header_timeout_s=0.1, body_rate_min=1_000) as one, AsyncExitStack() as stack:
        owner = f"Authorization: {one.owner['Authorization']}\r\n\r\n".encode()
        reader, writer = await connect(stack, one, head + owner)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413 ")
        await reader.readuntil(b"}")
        await send_slowly(one, writer, 24_000_000)
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")


async def test_a_refused_body_that_stops_coming_ends_the_connection(tmp_path: Path) -> None:
    head = b"POST /v1/lanes/reset HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 24000000\r\n"
    async with serving(tmp_path, body_timeout_s=0.2) as one, AsyncExitStack() as stack:
        owner = f"Authorization: {one.owner['Authorization']}\r\n\r\n".encode()
        pipe = await connect(stack, one, head + owner)
        await pipe[0].readuntil(b"}")
        pipe[1].write(b"x" * 20_000)
        assert b"408" not in await ended(pipe)


async def test_an_answer_that_nobody_reads_ends_the_connection(tmp_path: Path) -> None:
    async with serving(tmp_path, body_timeout_s=0.2) as one, AsyncExitStack() as stack:
        put = await one.put({**HELLO, "text": "x" * 999_000})
        path = f"GET /v1/messages/{put.json()['id']} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
        _, writer = await connect(stack, one)
        cast(asyncio.ReadTransport, writer.transport).pause_reading()
        writer.write(path * 40)
        async with asyncio.timeout(60):
            while not writer.transport.is_closing():
                assert (await one.client.get("/healthz")).status_code == 200
                writer.write(b"\r\n")


async def test_a_new_connection_takes_the_place_of_the_one_that_waited_longest(tmp_path: Path) -> None:
    async with serving(tmp_path, connections_max=8) as one, AsyncExitStack() as stack:
        pipes = [await connect(stack, one) for _ in range(40)]
        for _ in range(5):
            assert (await one.client.get("/healthz")).status_code == 200
            assert (await one.put(HELLO)).status_code == 201
        for pipe in pipes[:32]:
            assert await ended(pipe) == b""


async def test_a_connection_too_many_is_refused_and_those_at_work_go_on(tmp_path: Path) -> None:
    async with serving(tmp_path, connections_max=8) as one, AsyncExitStack() as stack:
        body = json.dumps(HELLO).encode()
        sent = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body[:-1]
        busy = [await connect(stack, one, sent) for _ in range(8)]
        for reader, _ in busy:
            assert not reader.at_eof()
        more = await connect(stack, one)
        assert b"503 Service Unavailable" in await ended(more)
        for reader, writer in busy:
            writer.write(body[-1:])
            assert b"HTTP/1.1 201 " in await reader.readuntil(b"\r\n")


class Elsewhere:
    """A connection from some address, with no request at work."""

    waits = True

    def __init__(self, address: str, since: float = 0.0) -> None:
        self.address = address
        self.since = since


async def test_one_address_has_its_share_and_loopback_all() -> None:
    connections = Connections(ConnectionLimits(open_max=100, per_address_max=3, header_s=9, body_s=9, progress_bytes=9))
    told = [connections.admit(Elsewhere("192.0.2.7")) for _ in range(4)]  # type: ignore[arg-type] # what admit looks at
    assert told == [True, True, True, False]
    assert connections.admit(Elsewhere("192.0.2.8"))  # type: ignore[arg-type]
    assert all(connections.admit(Elsewhere("127.0.0.1")) for _ in range(20))  # type: ignore[arg-type]
    assert all(connections.admit(Elsewhere("::1")) for _ in range(20))  # type: ignore[arg-type]


# Steps


async def test_small_chunks_and_many_headers_do_not_hold_the_loop(tmp_path: Path) -> None:
    async with serving(tmp_path) as one, AsyncExitStack() as stack:
        with holds() as longest:
            body = json.dumps({**HELLO, "text": "x" * 60_000}).encode()
            chunked = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
            reader, _ = await connect(stack, one, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked)
            assert b"HTTP/1.1 201 " in await reader.readuntil(b"\r\n")
            heads = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
            refusal = await ended(await connect(stack, one, heads + b"a:\r\n" * 60_000 + b"\r\n"))
            assert not refusal or b" 400 " in refusal
            assert b" 422 " in await (await connect(stack, one, heads + b"a:\r\n" * 200 + b"\r\n"))[0].readuntil(
                b"\r\n"
            )
            reader, _ = await connect(stack, one, b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" * 500)
            for _ in range(500):
                await reader.readuntil(b'{"ok":true}')
        assert longest.seconds < 0.02, longest


async def test_what_comes_in_any_pieces_is_read_whole(tmp_path: Path) -> None:
    async with serving(tmp_path) as one:
        for size in (4_095, 4_096, 4_097, 65_535, 65_536, 65_537, 300_000, 3_000_000):
            response = await one.put({**HELLO, "data": "d" * size})
            assert response.status_code == 201
            (row,) = one.rows("SELECT length(payload) FROM message ORDER BY id DESC LIMIT 1")
            assert row == (len(json.dumps({**HELLO, "data": "d" * size})),)


async def test_a_request_with_too_many_headers_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as one:
        headers = {f"X-{n}": "1" for n in range(120)}
        assert "at most 100 headers" in refused(await one.client.get("/healthz", headers=headers), 422)["title"]
