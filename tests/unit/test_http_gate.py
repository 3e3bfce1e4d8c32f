"""The gate and the server behind it: who may call which route, where it listens, what it leaves in the home."""

from __future__ import annotations

import json
import os
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from time import monotonic

import httpx2
import pytest
import pytest_asyncio
from tests.unit.http_cast import Site, refused, site

from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.errors import ConfigError, HomeError
from keepsaid.interfaces.http.gate import is_loopback
from keepsaid.interfaces.http.server import Address, listening

pytestmark = pytest.mark.asyncio(loop_scope="module")

HELLO = {"text": "hello", "sender": "ann", "conversation": "room"}
PUBLIC = {"host": "0.0.0.0", "port": 0, "token": "the client's"}
CLIENT = {"Authorization": "Bearer the client's"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """On loopback, without a client's token."""
    async with site(tmp_path_factory.mktemp("home"), answering=False) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def public(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """Reachable by others, with a client's token."""
    async with site(tmp_path_factory.mktemp("home"), answering=False, server=PUBLIC) as running:
        yield running


OPERATOR = [
    ("GET", "/v1/status"),
    ("GET", "/v1/replies?channel=http&conversation=room"),
    ("POST", "/v1/replies/rep_0000000000001/seen"),
    ("POST", "/v1/batches/bat_0000000000001/requeue"),
    ("POST", "/v1/batches/bat_0000000000001/drop"),
    ("POST", "/v1/memories"),
]
WRONG = [None, "Bearer wrong", "Bearer", "Basic {}", "{}", "Bearer {}x", "Bearer \xff"]


def bearing(wrong: str | None, token: str) -> dict[bytes, bytes]:
    """The header that a caller sends who knows the token, but not how to show it, or who does not know it."""
    return {} if wrong is None else {b"authorization": wrong.format(token).encode("latin-1")}


@pytest.mark.parametrize(("method", "path"), OPERATOR)
async def test_the_owners_routes_need_the_token_of_the_running_instance(one: Site, method: str, path: str) -> None:
    token = one.owner["Authorization"].removeprefix("Bearer ")
    for wrong in WRONG:
        told = refused(await one.client.request(method, path, headers=bearing(wrong, token), content=b"{}"), 401)
        assert "Authorization: Bearer" in told["hint"]
        assert token not in str(told)
    response = await one.client.request(method, path, headers=one.owner, content=b'{"text": "known"}')
    assert response.status_code in (200, 201)


async def test_only_the_owner_speaks_on_another_channel(one: Site) -> None:
    refused(await one.put({**HELLO, "channel": "terminal"}), 401)
    assert (await one.put({**HELLO, "channel": "terminal"}, one.owner)).status_code == 201
    assert one.rows("SELECT channel, trust FROM message JOIN lane ON lane.id = lane_id") == [("terminal", "owner")]


# Pages and names


@pytest.mark.parametrize(
    ("host", "origin", "passes"),
    [
        ("127.0.0.1:{port}", None, True),
        ("localhost:{port}", None, True),
        ("LOCALHOST:{port}", None, True),
        ("[::1]:{port}", None, True),
        ("localhost:9", None, True),
        ("evil.example:{port}", None, False),
        ("evil.example", None, False),
        ("localhost.evil.example:{port}", None, False),
        ("127.0.0.1.evil.example", None, False),
        ("localhost@evil.example", None, False),
        ("127.0.0.2:{port}", None, False),
        ("0.0.0.0:{port}", None, False),
        ("[::1", None, False),
        ("", None, False),
        ("127.0.0.1:{port}", "http://127.0.0.1:{port}", True),
        ("localhost:{port}", "http://LocalHost:{port}", True),
        ("localhost:9", "http://localhost:9", True),
        ("127.0.0.1:{port}", "http://127.0.0.1:9", False),
        ("127.0.0.1:{port}", "http://127.0.0.1", False),
        ("127.0.0.1:{port}", "https://127.0.0.1:{port}", False),
        ("127.0.0.1:{port}", "http://localhost:{port}", False),
        ("127.0.0.1:{port}", "http://evil.example", False),
        ("127.0.0.1:{port}", "null", False),
        ("127.0.0.1:{port}", "", False),
        ("127.0.0.1:{port}", "file://", False),
        ("127.0.0.1:{port}", "http://[::1", False),
    ],
)
async def test_no_page_of_another_place_calls_in(one: Site, host: str, origin: str | None, passes: bool) -> None:
    headers = {"Host": host.format(port=one.address.port)}
    if origin is not None:
        headers["Origin"] = origin.format(port=one.address.port)
    response = await one.client.get("/v1/messages/msg_1", headers=headers)
    assert refused(response, 404 if passes else 403)["code"] == ("KS-NONE" if passes else "KS-HTTP-HOST")
    known = await one.client.get("/v1/replies", headers={**headers, **one.owner})
    if passes or origin is None:
        assert known.json() == {"replies": []}
    else:
        refused(known, 403)


MESSAGES = [("POST", "/v1/messages"), ("GET", "/v1/messages/msg_1"), ("GET", "/v1/messages/msg_1/events")]


async def test_every_route_under_v1_minds_who_calls(one: Site) -> None:
    for method, path in (*MESSAGES, *OPERATOR):
        for foreign in ({"Host": "evil.example"}, {"Origin": "https://evil.example", **one.owner}):
            headers = {"Content-Type": "application/json", **foreign}
            refused(await one.client.request(method, path, headers=headers, content=json.dumps(HELLO).encode()), 403)


@pytest.mark.parametrize("header", ["Forwarded", "X-Forwarded-For", "x-forwarded-for"])
async def test_what_a_proxy_passes_on_needs_a_token(one: Site, header: str) -> None:
    before = one.rows("SELECT count(*) FROM message")
    for method, path in MESSAGES:
        headers = {"Content-Type": "application/json", header: "for=203.0.113.7"}
        told = refused(await one.client.request(method, path, headers=headers, content=json.dumps(HELLO).encode()), 403)
        assert "server.token" in told["hint"]
    assert one.rows("SELECT count(*) FROM message") == before
    assert (await one.put(HELLO, {header: "203.0.113.7", **one.owner})).status_code == 201


async def test_with_the_clients_token_a_proxy_on_this_machine_may_pass_calls_on(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False, server={"port": 0, "token": "the client's"}) as running:
        proxied = {"Host": "keepsaid.example", "X-Forwarded-For": "203.0.113.7"}
        assert (await running.put(HELLO, {**proxied, **CLIENT})).status_code == 201
        refused(await running.put(HELLO, proxied), 403)
        refused(await running.put(HELLO, {"X-Forwarded-For": "203.0.113.7"}), 401)
        refused(await running.put(HELLO, {"Host": "keepsaid.example", "Authorization": "Bearer wrong"}), 403)


async def test_an_empty_token_is_none(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False, server={"port": 0, "token": ""}) as running:
        assert (await running.put(HELLO)).status_code == 201
        refused(await running.put(HELLO, {"Host": "keepsaid.example", "Authorization": "Bearer"}), 403)


async def test_health_tells_anybody_and_only_that(one: Site) -> None:
    for path, told in (("/healthz", {"ok": True}), ("/readyz", {"ready": True})):
        response = await one.client.get(path, headers={"Host": "evil.example", "Origin": "null"})
        assert (response.status_code, response.json()) == (200, told)


async def test_a_home_that_only_takes_commands_is_not_ready(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    config, _ = load(home.config_file, {"models": {"chat": "none"}, "server": {"port": 0}})
    async with (
        opened(home, config) as instance,
        listening(instance) as address,
        httpx2.AsyncClient(base_url=address.url, trust_env=False) as client,
    ):
        ready, healthy = await client.get("/readyz"), await client.get("/healthz")
    assert (ready.status_code, ready.json(), healthy.status_code) == (503, {"ready": False}, 200)


# Where others can reach it


async def test_a_public_address_needs_the_clients_token_for_messages(public: Site) -> None:
    for wrong in WRONG:
        headers = bearing(wrong, "the client's")
        refused(await public.client.post("/v1/messages", content=b"{}", headers=headers), 401)
        refused(await public.client.get("/v1/messages/msg_0000000000001", headers=headers), 401)
        refused(await public.client.get("/v1/messages/msg_0000000000001/events", headers=headers), 401)
    assert public.rows("SELECT count(*) FROM message") == [(0,)]
    put = await public.put(HELLO, {**CLIENT, "Host": "keepsaid.example", "Origin": "https://keepsaid.example"})
    path = f"/v1/messages/{put.json()['id']}"
    assert put.status_code == 201
    assert (await public.client.get(path, headers=CLIENT)).status_code == 200
    assert (await public.client.get(path, headers=public.owner)).status_code == 200


async def test_the_clients_token_does_not_open_the_owners_routes(public: Site) -> None:
    for method, path in OPERATOR:
        refused(await public.client.request(method, path, headers=CLIENT, content=b"{}"), 401)
    refused(await public.put({**HELLO, "channel": "terminal"}, CLIENT), 401)


@pytest.mark.parametrize("server", [{"host": "0.0.0.0"}, {"host": "0.0.0.0", "token": ""}, {"host": "::"}])
async def test_a_public_address_without_a_token_is_refused(tmp_path: Path, server: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"server\.token must be set") as caught:
        async with site(tmp_path, server={"port": 0, **server}):
            pytest.fail("it listens")
    assert caught.value.safe == "No data was touched."
    assert not Home.at(tmp_path).runtime_file.exists()


async def test_loopback_is_what_only_this_machine_reaches() -> None:
    local = ["localhost", "127.0.0.1", "127.8.8.8", "::1"]
    others = ["0.0.0.0", "::", "10.0.0.1", "example.com", "localhost.example.com", "", "127.1"]
    assert [is_loopback(host) for host in local + others] == [True] * len(local) + [False] * len(others)


# Where it listens


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "http://127.0.0.1:8"),
        ("localhost", "http://localhost:8"),
        ("0.0.0.0", "http://127.0.0.1:8"),
        ("::", "http://[::1]:8"),
        ("::1", "http://[::1]:8"),
    ],
)
async def test_an_address_is_told_as_it_is_called(host: str, url: str) -> None:
    assert Address(host, 8).url == url
    assert httpx2.URL(url).port == 8


async def test_an_answer_does_not_wait_for_a_sign_of_the_caller(one: Site) -> None:
    took = []
    for _ in range(40):
        began = monotonic()
        await one.client.get("/healthz")
        took.append(monotonic() - began)
    # Where the system holds back the second half of an answer, every one but the first few takes forty milliseconds.
    assert min(took[20:]) < 0.035


async def test_a_port_in_use_is_told_with_another_way(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(HomeError, match=f"port {port} of 127.0.0.1 cannot be used") as caught:
            async with site(tmp_path, server={"port": port}):
                pytest.fail("it listens")
    assert (
        caught.value.hint
        == "stop what listens there (a chat of another home listens, too), or: keepsaid serve --port 0"
    )
    assert not Home.at(tmp_path).runtime_file.exists()


async def test_an_address_of_another_machine_is_told(tmp_path: Path) -> None:
    server = {"host": "203.0.113.7", "port": 0, "token": "t"}
    with pytest.raises(HomeError, match=r"of 203\.0\.113\.7 cannot be used") as caught:
        async with site(tmp_path, server=server):
            pytest.fail("it listens")
    assert caught.value.hint == "keepsaid config show server"


# What it leaves in the home


async def test_address_and_token_are_for_the_owner_alone_and_gone_at_the_end(tmp_path: Path) -> None:
    file = Home.at(tmp_path).runtime_file
    before = os.umask(0)
    try:
        file.parent.mkdir(parents=True)
        file.with_suffix(".partial").write_text("left by a crash, and readable by all")
        file.with_suffix(".partial").chmod(0o666)
        async with site(tmp_path) as running:
            told = json.loads(file.read_text("utf-8"))
            mode = stat.S_IMODE(file.stat().st_mode)
            assert sorted(path.name for path in file.parent.iterdir()) == ["lock", "runtime.json"]
    finally:
        os.umask(before)
    assert (sorted(told), told["url"], told["pid"]) == (
        ["model", "pid", "token", "url"],
        running.address.url,
        os.getpid(),
    )
    assert len(told["token"]) >= 32
    assert mode == 0o600
    assert not file.exists()


async def test_every_start_has_a_token_of_its_own(tmp_path: Path) -> None:
    tokens = []
    for _ in range(2):
        async with site(tmp_path) as running:
            tokens.append(running.owner)
    assert tokens[0] != tokens[1]


async def test_a_home_that_takes_no_runtime_file_is_told_and_the_port_is_free_again(tmp_path: Path) -> None:
    home = Home.at(tmp_path)
    home.runtime_file.with_suffix(".partial").mkdir(parents=True)
    with pytest.raises(HomeError, match=r"runtime\.json cannot be written"):
        async with site(tmp_path):
            pytest.fail("it listens")
    home.runtime_file.with_suffix(".partial").rmdir()
    async with site(tmp_path) as running:
        assert (await running.say("hello")).status_code == 201
