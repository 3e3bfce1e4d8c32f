"""Hostile bodies to every route: no callback of the event loop takes longer than 20 ms of processor time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from tests.unit.fuzz_cast import SECRET
from tests.unit.http_cast import Site, site
from tests.unit.loop_cast import holds
from tests.unit.test_http_fuzz import targets_of

from keepsaid.domain.task import NewTask
from keepsaid.interfaces.task_shapes import parse_schedule
from keepsaid.testing.webhooks import sign

pytestmark = pytest.mark.asyncio(loop_scope="module")

HELD_S_MAX = 0.020
_PIECE = 65_536
LARGE = ("/v1/messages", "/v1/media/", "/hooks/", "/v1/memories/import")
"""Routes that take megabytes; bodies for others are refused by their declared size."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """A server that lets nobody answer."""
    root: Path = tmp_path_factory.mktemp("home")
    async with site(root, answering=False, channels={"github": {"secret": SECRET}}) as running:
        yield running


def members(size: int) -> bytes:
    return b"{" + b",".join(b'"%d":0' % n for n in range(size // 11)) + b"}"


FIELDS = ("text", "sender", "conversation", "channel", "account", "topic", "filter", "reason", "name", "task", "key")
BODIES: dict[str, Callable[[int], bytes]] = {
    "members": members,
    "one name twice": lambda n: members(n)[:-1] + b',"0":1}',
    "nested": lambda n: b'{"data":' + b"[" * (n - 10),
    "objects": lambda n: b'{"data":[' + b"{}," * ((n - 20) // 3) + b"0]}",
    "one text": lambda n: b'{"text":"' + b"x" * (n - 20) + b'"}',
    "escapes": lambda n: b'{"text":"' + b"\\n\\ud800" * ((n - 20) // 8) + b'"}',
    "one name": lambda n: b'{"' + b"x" * (n - 20) + b'":1}',
    "digits": lambda n: b'{"data":' + b"1" * (n - 10) + b"}",
    "fields": lambda n: json.dumps(dict.fromkeys(FIELDS, "x \u0301" * (n // 80))).encode()[:n],
}


async def pieces(body: bytes) -> AsyncIterator[bytes]:
    """A body as a client sends it that does not hold this same loop for copying megabytes at once."""
    for start in range(0, len(body), _PIECE):
        yield body[start : start + _PIECE]


async def longest_hold(one: Site, path: str, body: bytes) -> tuple[float, str]:
    """The longest callback while a body is sent to a route, and which it was."""
    headers = {"Content-Type": "application/json", "X-GitHub-Event": "issues", "X-GitHub-Delivery": "d", **one.owner}
    headers["X-Hub-Signature-256"] = sign(SECRET, body)
    headers["Content-Length"] = str(len(body))
    with holds() as longest:
        response = await one.client.post(path, content=pieces(body), headers=headers)
    assert response.status_code < 500, response.text
    return longest.seconds, longest.what


async def quickest(one: Site, path: str, body: bytes) -> tuple[float, str]:
    """The same, the shortest of up to four times: a machine that is busy with others may take one for longer."""
    held = await longest_hold(one, path, body)
    for _ in range(3):
        if held[0] > HELD_S_MAX:
            held = min(held, await longest_hold(one, path, body))
    return held


@pytest.mark.parametrize("name", BODIES)
async def test_no_body_to_any_route_holds_the_loop(one: Site, name: str) -> None:
    paths = [target.path for target in targets_of(one) if "POST" in target.methods]
    assert len(paths) > 30
    slow = []
    for route in paths:
        filled = route.replace("{medium}", "telegram").replace("{name}", "github").replace("{verb}", "run")
        path = "/".join("mem_1000000000000" if part.startswith("{") else part for part in filled.split("/"))
        size = 1_000_000 if path.startswith(LARGE) else 9_900
        held = await quickest(one, path, BODIES[name](size))
        if held[0] > HELD_S_MAX:
            slow.append((path, size, *held))
    assert slow == []


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/media/telegram", "/hooks/github", "/v1/memories/import"])
@pytest.mark.parametrize("name", ["members", "one text"])
async def test_no_body_at_its_limit_holds_the_loop(one: Site, name: str, path: str) -> None:
    held = await quickest(one, path, BODIES[name](24_900_000))
    assert held[0] <= HELD_S_MAX, held


async def test_no_list_however_long_holds_the_loop(one: Site) -> None:
    """Three thousand schedules and tasks; each list is asked for up to four times, as bodies are."""
    zone = one.instance.config.schedules.timezone
    for start in range(0, 3_000, 100):
        schedules = [parse_schedule({"every_s": 86_400, "say": f"{n} " * 20}, zone) for n in range(start, start + 100)]
        tasks = [NewTask(0, f"{n} " * 2_000, "", outside=False) for n in range(start, start + 100)]
        await asyncio.gather(
            *map(one.instance.services.schedules.add, schedules), *map(one.instance.services.tasks.create, tasks)
        )
    slow = []
    for path, rows in (("/v1/schedules?all=1&limit=1000", 1_000), ("/v1/tasks?limit=1000", 1_000)):
        tries = []
        for _ in range(4):
            with holds() as longest:
                response = await one.client.get(path, headers=one.owner)
            assert len(response.json()[path[4:].partition("?")[0]]) == rows
            tries.append((longest.seconds, longest.what))
            if longest.seconds <= HELD_S_MAX:
                break
        slow += [(path, min(tries))] if min(tries)[0] > HELD_S_MAX else []
    assert slow == []
