"""Bodies that are made to be slow to read: time grows in proportion to their size, and no answer quotes them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from time import thread_time

import httpx2
import pytest
from tests.unit.http_cast import Site, hang_up, refused, site

from keepsaid.config import Config
from keepsaid.interfaces.http.bodies import BodyReaders, parsed
from keepsaid.interfaces.http.messages import inbound_of
from keepsaid.interfaces.http.responses import BadRequest, ServerBusy


def seconds_to_refuse(body: bytes) -> float:
    """Processor time that reading a body takes which is refused; the best of three."""
    took = []
    for _ in range(3):
        began = thread_time()
        with pytest.raises(BadRequest) as caught:
            parsed(body)
        took.append(thread_time() - began)
        assert len(caught.value.what) < 300
    return min(took)


def last_key_twice(count: int) -> bytes:
    """An object of that many keys, the last of which stands twice."""
    return b"{" + b",".join(b'"k%d":0' % min(n, count - 2) for n in range(count)) + b"}"


def test_a_duplicate_key_is_found_in_linear_time() -> None:
    small, large = seconds_to_refuse(last_key_twice(16_000)), seconds_to_refuse(last_key_twice(96_000))
    assert large < 15 * small, (small, large)


def test_an_unknown_field_with_a_giant_name_is_refused_at_once() -> None:
    began = thread_time()
    with pytest.raises(BadRequest, match="unknown field") as caught:
        inbound_of(Config(), {"ab" * 2_000_000: 1}, b"{}", None)
    assert thread_time() - began < 0.2
    assert len(caught.value.what) < 300


# The budget, and the threads that read


async def test_bodies_beyond_the_budget_are_refused_and_small_ones_are_not(tmp_path: Path) -> None:
    server = {"port": 0, "bodies_bytes_max": 2_000_000}
    async with site(tmp_path, answering=False, server=server) as one, AsyncExitStack() as stack:
        held = await half_sent(stack, one, 1_500_000)
        told = refused(await put_until(one, 503), 503)
        assert (told["code"], told["safe"]) == ("KS-HTTP-BUSY", "Nothing was changed.")
        assert (await one.say("hello")).status_code == 201
        secret = {"X-Hub-Signature-256": "sha256=" + "0" * 64}
        hook = await one.client.post("/hooks/github", content=b"x" * 1_000_000, headers=secret)
        assert refused(hook, 503)["code"] == "KS-HTTP-BUSY"
        held.close()
        await put_until(one, 201)
        for _ in range(5):
            assert (await one.put(large(1_900_000))).status_code == 201


async def test_one_body_is_always_taken(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False, server={"port": 0, "bodies_bytes_max": 1_048_576}) as one:
        for _ in range(2):
            assert (await one.put(large(5_000_000))).status_code == 201


async def test_bodies_without_a_declared_size_count_as_they_grow(tmp_path: Path) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        whole = large(900_000)
        for start in range(0, len(whole), 50_000):
            yield whole[start : start + 50_000]

    headers = {"Content-Type": "application/json"}
    async with site(tmp_path, answering=False, server={"port": 0, "bodies_bytes_max": 1_500_000}) as one:
        async with AsyncExitStack() as stack:
            await half_sent(stack, one, 1_000_000)
            await put_until(one, 503)
            refused(await one.client.post("/v1/messages", content=pieces(), headers=headers), 503)
        await put_until(one, 201)
        for _ in range(3):
            assert (await one.client.post("/v1/messages", content=pieces(), headers=headers)).status_code == 201


async def test_a_client_that_left_ends_the_reading_of_its_body() -> None:
    readers = BodyReaders()
    began, looked = threading.Event(), threading.Event()

    def work(wanted: Callable[[], bool]) -> None:
        began.set()
        while wanted():
            looked.wait(0.01)

    first = asyncio.ensure_future(readers.run(work))
    await asyncio.to_thread(began.wait)
    first.cancel()
    assert await asyncio.wait_for(readers.run(lambda wanted: wanted()), 60)
    assert await asyncio.wait_for(readers.run(lambda _: threading.current_thread().daemon), 60)
    readers.close()


async def test_a_full_queue_of_readers_refuses_more() -> None:
    readers, free = BodyReaders(), threading.Event()
    waiting = [asyncio.ensure_future(readers.run(lambda _: free.wait())) for _ in range(64)]
    await asyncio.wait(waiting, timeout=0)
    with pytest.raises(ServerBusy, match="64 large bodies wait"):
        await readers.run(lambda _: None)
    free.set()
    assert await asyncio.gather(*waiting) == [True] * 64
    assert await readers.run(lambda _: 7) == 7
    readers.close()


async def test_what_reading_raises_is_raised_where_it_was_asked() -> None:
    readers = BodyReaders()
    with pytest.raises(BadRequest, match="stands twice"):
        await readers.run(lambda wanted: parsed(last_key_twice(20_000), wanted))
    readers.close()


def large(size: int) -> bytes:
    """A message of about that many bytes."""
    return b'{"text": "large", "sender": "ann", "conversation": "room", "data": "' + b"x" * size + b'"}'


async def half_sent(stack: AsyncExitStack, one: Site, size: int) -> asyncio.StreamWriter:
    """A request whose body is declared with that size and never ends."""
    _, writer = await asyncio.open_connection(one.address.host, one.address.port)
    stack.push_async_callback(hang_up, writer)
    head = (
        f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n"
    )
    writer.write(head.encode() + b'\r\n{"text": "')
    return writer


async def put_until(one: Site, status: int) -> httpx2.Response:
    """The first answer of that status to a large message, which is sent again and again."""
    async with asyncio.timeout(60):
        while (response := await one.put(large(1_000_000))).status_code != status:
            pass
    return response
