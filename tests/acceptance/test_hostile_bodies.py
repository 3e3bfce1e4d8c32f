"""Hostile bodies of 25 MB, six at once, to a real `serve`: it answers others, its memory is bounded, and it stops."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.acceptance.program import WITHIN_S, Program, Running
from tests.waits import slowed

SIZE = 24_900_000
AT_ONCE = 6
HEALTH_P99_S = 0.1
STOP_S = 5.0
TIMES_DECLARED = 5.0
"""What a body takes in memory, in its own size: as sent, as read, and as the store writes it."""

HEAD = b'{"text": "hello", "sender": "ann", "conversation": "room", "data": '
BODIES: dict[str, Callable[[], bytes]] = {
    "two million members": lambda: b"{" + b",".join(b'"%d":0' % n for n in range(SIZE // 11)) + b"}",
    "a list": lambda: HEAD + b"[" + b"0," * (SIZE // 2 - 60) + b"0]}",
    "nested": lambda: HEAD + b"[" * (SIZE - 100),
    "one name twice": lambda: b"{" + b'"a":0,' * (SIZE // 6 - 2) + b'"a":0}',
    "escapes": lambda: HEAD + b'"' + b"\\n\\u00e9" * (SIZE // 8 - 20) + b'"}',
    "one text": lambda: HEAD + b'"' + b"x" * (SIZE - 100) + b'"}',
}


def peak_mb(server: Running) -> float:
    """The most memory that a process ever had, in megabytes."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text("ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) / 1_000


async def answered(server: Running, body: bytes, key: str) -> int:
    """The status that one body is answered with; 0 where the server went before it answered."""
    place = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    head = f"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(body)}\r\nIdempotency-Key: {key}\r\n"
    writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n")
    try:
        for start in range(0, len(body), 500_000):
            writer.write(body[start : start + 500_000])
            await writer.drain()
        status = await asyncio.wait_for(reader.read(12), WITHIN_S)
    except ConnectionError:
        return 0
    finally:
        writer.close()
    return int(status[9:12] or b"0")


async def health(server: Running, over: asyncio.Event) -> list[float]:
    """Seconds that each answer of /healthz took until `over` is set."""
    took = []
    async with httpx2.AsyncClient(base_url=server.url, timeout=WITHIN_S, verify=False) as client:
        while not over.is_set():
            began = monotonic()
            assert (await client.get("/healthz")).status_code == 200
            took.append(monotonic() - began)
    return sorted(took)


async def attacked(server: Running, body: bytes) -> tuple[list[int], list[float]]:
    """The statuses of six bodies at once, and how long /healthz took meanwhile."""
    over = asyncio.Event()
    looking = asyncio.ensure_future(health(server, over))
    statuses = await asyncio.gather(*(answered(server, body, f"k{n}") for n in range(AT_ONCE)))
    over.set()
    return statuses, await looking


async def stopped(server: Running, body: bytes) -> float:
    """Seconds from SIGTERM to the end of a server that is at work on six bodies."""
    sending = [asyncio.ensure_future(answered(server, body, f"s{n}")) for n in range(AT_ONCE)]
    async with httpx2.AsyncClient(base_url=server.url, timeout=WITHIN_S, verify=False) as client:
        while not any(one.done() for one in sending):
            assert (await client.get("/healthz")).status_code == 200
    began = monotonic()
    server.process.terminate()
    assert await asyncio.to_thread(server.process.wait, WITHIN_S) == 0
    took = monotonic() - began
    await asyncio.gather(*sending)
    return took


@pytest.mark.alone
@pytest.mark.parametrize("name", BODIES)
def test_hostile_bodies_leave_health_memory_and_stopping(tmp_path: Path, name: str) -> None:
    body = BODIES[name]()
    program = Program(tmp_path)
    program.configure(json.dumps({"models": {"chat": "none"}}))
    with program.serving(is_cold=True) as server:
        before = peak_mb(server)
        statuses, took = asyncio.run(attacked(server, body))
        grown = peak_mb(server) - before
        stop_s = asyncio.run(stopped(server, body))
    p99 = took[len(took) * 99 // 100]
    sys.stdout.write(
        f"{name}: {statuses}, p99 {p99:.3f} s, at most {took[-1]:.3f} s, {grown:.0f} MB, stopped in {stop_s:.2f} s\n"
    )
    assert set(statuses) <= {201, 400, 503}
    assert p99 <= slowed(HEALTH_P99_S)
    assert grown * 1_000_000 <= TIMES_DECLARED * AT_ONCE * SIZE
    assert stop_s <= slowed(STOP_S)
